/**
 * The data of server-sent events, from text in pieces of any size. An event longer than `longest` characters is left
 * out. Source: the HTML standard. Differs: an event that the end of the stream cuts off is read as well.
 */
const lineEnd = /\r\n?/g;

export class SseData {
  private readonly longest: number;
  private readonly onData: (data: string) => void;
  /** The beginning of a line. */
  private rest = '';
  private data: string | undefined = undefined;
  private isTooLong = false;
  /** A line feed that follows belongs to the end of the last line. */
  private endedWithReturn = false;

  constructor(longest: number, onData: (data: string) => void) {
    this.longest = longest;
    this.onData = onData;
  }

  /** True when the next text begins an event. */
  get isBetweenEvents(): boolean {
    return this.rest === '' && this.data === undefined && !this.isTooLong && !this.endedWithReturn;
  }

  push(text: string): void {
    if (text === '') return;
    let start = this.endedWithReturn && text.startsWith('\n') ? 1 : 0;
    this.endedWithReturn = text.endsWith('\r');
    // A line feed alone is found several times as fast as one of three ends.
    const lines = text.replace(lineEnd, '\n');
    for (let end = lines.indexOf('\n', start); end >= 0; end = lines.indexOf('\n', start)) {
      this.line(this.rest + lines.slice(start, end));
      this.rest = '';
      start = end + 1;
    }
    this.keep(lines.slice(start));
  }

  end(): void {
    if (this.rest !== '') this.line(this.rest);
    this.line('');
    this.rest = '';
  }

  private keep(part: string): void {
    this.isTooLong ||= this.rest.length + part.length > this.longest;
    // One letter is enough to know that the line is not empty.
    this.rest = this.isTooLong ? (this.rest + part).slice(0, 1) : this.rest + part;
  }

  private line(line: string): void {
    if (line === '') return void this.dispatch();
    // Whether it came in one piece or in several.
    this.isTooLong ||= line.length > this.longest;
    if (this.isTooLong || !line.startsWith('data')) return;
    if (line.length > 4 && line.charCodeAt(4) !== 58 /* : */) return;
    const value = line.slice(line.charCodeAt(5) === 32 /* space */ ? 6 : 5);
    this.data = this.data === undefined ? value : `${this.data}\n${value}`;
    this.isTooLong = this.data.length > this.longest;
  }

  private dispatch(): void {
    const { data, isTooLong } = this;
    this.data = undefined;
    this.isTooLong = false;
    if (data !== undefined && !isTooLong) this.onData(data);
  }
}
