/**
 * One member of a JSON object, an object too, of a text beyond memory: the last, up to `longest` characters.
 * `JsonScanner`, which rejects bad JSON, takes ten times as long.
 */
import { parseJson } from '../../base/stream/content-pieces.js';

const structure = /["{}[\]:]/g;
const inString = /["\\]/g;

export class JsonMember {
  private readonly name: string;
  private readonly longest: number;
  private depth = 0;
  private isInString = false;
  private isEscaped = false;
  /** The last string directly below the root, as far as it can matter. */
  private lastString = '';
  /** The next value is the member's. */
  private isExpected = false;
  private captured: string | undefined = undefined;
  private found: string | undefined = undefined;

  constructor(name: string, longest: number) {
    this.name = name;
    this.longest = longest;
  }

  push(text: string): void {
    let kept = 0;
    for (let at = 0; at < text.length; ) {
      const mark = this.isInString ? inString : structure;
      if (this.isEscaped) {
        this.isEscaped = false;
        at++;
        continue;
      }
      mark.lastIndex = at;
      const index = mark.exec(text)?.index ?? text.length;
      if (this.isInString && this.depth === 1)
        this.lastString = (this.lastString + text.slice(at, index)).slice(0, this.name.length + 1);
      if (index === text.length) break;
      const wasCapturing = this.captured !== undefined;
      this.step(text.charAt(index));
      at = index + 1;
      if (!wasCapturing && this.captured !== undefined) kept = index;
      else if (wasCapturing && this.captured !== undefined && this.depth === 1) {
        this.found = this.captured + text.slice(kept, at);
        this.captured = undefined;
      }
    }
    if (this.captured === undefined) return;
    this.captured += text.slice(kept);
    if (this.captured.length > this.longest) this.captured = undefined;
  }

  /** Undefined while there is none. */
  get value(): unknown {
    return this.found === undefined ? undefined : parseJson(this.found);
  }

  private step(character: string): void {
    if (this.isInString) {
      if (character === '\\') {
        this.isEscaped = true;
        this.lastString += character;
      } else this.isInString = false;
      return;
    }
    const isExpected = this.isExpected;
    this.isExpected = false;
    if (character === '"') {
      this.isInString = true;
      if (this.depth === 1) this.lastString = '';
    } else if (character === ':') {
      this.isExpected = this.depth === 1 && this.lastString === this.name;
    } else if (character === '{' || character === '[') {
      if (isExpected && character === '{') this.captured = '';
      this.depth++;
    } else {
      this.depth--;
    }
  }
}
