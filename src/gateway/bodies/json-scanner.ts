/**
 * Finds fields of a JSON object while its bytes arrive, and does not parse the rest. A parsed body takes many times the
 * memory of its text, and to parse a large one at once stops the event loop.
 *
 *   { "model" : "llama" , "messages" : [ … ] }
 *             └ start ─ end           └ start … end    offsets of the values of wanted top-level fields
 *
 * Invariant: what `end` accepts is JSON by its structure (strings, numbers and nesting included); UTF-8 is not checked,
 * nor are control characters inside media, which pass at the speed of memory.
 */
import { ApiError } from '../shared/api-error.js';
import { addToHash, type PromptCounter } from '../sizes/prompt-parts.js';

/** Where the value of a field stands: bytes from `start` up to `end`, white space around it not included. */
export interface Span {
  /** Where its name begins, with the quote. */
  readonly name: number;
  readonly start: number;
  readonly end: number;
}

/** The text is no JSON object, or not one that a gateway takes. */
export class JsonFault extends ApiError {
  constructor(message: string) {
    super(400, 'invalid_json', message);
  }
}

/** No honest request is deeper; schemas of tools nest a few dozen levels. */
const maxDepth = 256;
/** More than the wanted names take when every letter is escaped. */
const longestKey = 160;
/** Of numbers and of the words true, false and null. */
const longestScalar = 400;

const scalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

type Between = 'begin' | 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' | 'done';
type State = Between | 'string' | 'escape' | 'scalar';

const quote = 0x22;
const backslash = 0x5c;

export class JsonScanner {
  private readonly wanted: ReadonlySet<string>;
  private readonly found = new Map<string, Span>();
  private state: State = 'begin';
  /** Of the containers that are open: true for an object. */
  private readonly open: boolean[] = [];
  private offset = 0;
  private isKey = false;
  /** Hexadecimal digits that an escape still needs. */
  private digits = 0;
  /** The characters of a top-level key, or of a scalar; bytes beyond ASCII do not matter in either. */
  private text = '';
  private field: string | undefined = undefined;
  private nameStart = 0;
  private start = 0;
  private readonly prompt: PromptCounter | undefined;
  /** Of the name below the top level that was read last. */
  private nameHash = 0;
  /** Of the string that was read last: where it began, and how much longer its escapes are than what they stand for. */
  private textStart = 0;
  private spare = 0;
  /** The digits of an escape so far. */
  private letter = 0;
  private isMedium = false;

  constructor(wanted: ReadonlySet<string>, prompt?: PromptCounter) {
    this.wanted = wanted;
    this.prompt = prompt;
  }

  /** @throws JsonFault as soon as it is clear that the text is not accepted */
  push(bytes: Buffer): void {
    for (let i = 0; i < bytes.length; i++) {
      // Nearly everything is inside strings and numbers, which are passed in runs.
      if (this.state === 'string') i = this.passText(bytes, i);
      else if (this.state === 'scalar') i = this.takeScalar(bytes, i);
      if (i < bytes.length) this.take(bytes[i]!, this.offset + i);
    }
    this.offset += bytes.length;
  }

  /** The spans of the wanted fields that are there. @throws JsonFault when the object is not closed */
  end(): ReadonlyMap<string, Span> {
    if (this.state !== 'done') throw new JsonFault('The body is not a JSON object.');
    return this.found;
  }

  /** Returns where the plain text of a string ends, or the length. */
  private passText(bytes: Buffer, from: number): number {
    if (this.isKey && this.open.length === 1) return from;
    if (this.isKey || !this.isMedium) {
      const end = endOfText(bytes, from);
      if (this.isKey) for (let i = from; i < end; i++) this.nameHash = addToHash(this.nameHash, bytes[i]!);
      return end;
    }
    const end = bytes.indexOf(quote, from);
    const escaped = bytes.subarray(from, end < 0 ? undefined : end).indexOf(backslash);
    // Another search for the quote after each escape would be slow.
    if (escaped >= 0) this.isMedium = false;
    return escaped >= 0 ? from + escaped : end < 0 ? bytes.length : end;
  }

  private take(byte: number, at: number): void {
    if (this.state === 'string') return void this.takeInString(byte, at);
    if (this.state === 'escape') return void this.takeEscaped(byte);
    if (this.state === 'scalar') {
      if (!isScalar(this.text)) throw fault();
      this.prompt?.number();
      this.closeValue(at);
    }
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return;
    this.takeStructure(byte, at);
  }

  private takeStructure(byte: number, at: number): void {
    switch (this.state) {
      case 'begin':
        if (byte !== 0x7b) throw fault();
        this.openContainer(true);
        return;
      case 'value-or-end':
      case 'value':
        if (byte === 0x5d && this.state === 'value-or-end') this.closeContainer(at, false);
        else this.beginValue(byte, at);
        return;
      case 'key-or-end':
      case 'key':
        if (byte === 0x7d && this.state === 'key-or-end') this.closeContainer(at, true);
        else this.beginKey(byte, at);
        return;
      case 'colon':
        if (byte !== 0x3a) throw fault();
        this.state = 'value';
        return;
      case 'comma-or-end':
        if (byte === 0x2c) this.state = this.open.at(-1) === true ? 'key' : 'value';
        else if (byte === 0x7d || byte === 0x5d) this.closeContainer(at, byte === 0x7d);
        else throw fault();
        return;
      default:
        throw fault();
    }
  }

  private beginKey(byte: number, at: number): void {
    if (byte !== quote) throw fault();
    if (this.open.length === 1) this.nameStart = at;
    this.isKey = true;
    this.text = '';
    this.nameHash = 0;
    this.beginText(at);
  }

  private beginText(at: number): void {
    this.state = 'string';
    this.textStart = at + 1;
    this.spare = 0;
  }

  private beginValue(byte: number, at: number): void {
    if (this.open.length === 1) this.start = at;
    if (byte === quote) {
      this.isKey = false;
      this.isMedium = this.prompt?.isMedium() === true;
      this.beginText(at);
    } else if (byte === 0x7b || byte === 0x5b) {
      this.openContainer(byte === 0x7b);
    } else {
      if (isScalarByte[byte] === 0) throw fault();
      this.text = String.fromCharCode(byte);
      this.state = 'scalar';
    }
  }

  private takeInString(byte: number, at: number): void {
    if (byte === quote) {
      if (this.isKey) this.closeKey(at);
      else {
        this.prompt?.string(this.textStart, at, this.spare);
        this.closeValue(at + 1);
      }
      return;
    }
    if (byte < 0x20) throw fault();
    if (byte === backslash) this.state = 'escape';
    this.keep(byte);
  }

  private takeEscaped(byte: number): void {
    this.keep(byte);
    if (this.digits > 0) {
      if (isHex[byte] === 0) throw fault();
      this.letter = this.letter * 16 + ((byte & 15) + (byte > 0x39 ? 9 : 0));
      this.digits -= 1;
      // Two halves of a pair stand for four bytes.
      if (this.digits === 0)
        this.spare += 6 - (this.letter < 0x80 ? 1 : this.letter < 0x800 || this.letter >> 11 === 0x1b ? 2 : 3);
    } else if (byte === 0x75) {
      this.digits = 4;
      this.letter = 0;
    } else if (!escapes.includes(byte)) {
      throw fault();
    } else this.spare += 1;
    if (this.digits === 0) this.state = 'string';
  }

  /** Returns where the scalar ends, or the length. */
  private takeScalar(bytes: Buffer, from: number): number {
    let at = from;
    while (at < bytes.length && isScalarByte[bytes[at]!] === 1) at += 1;
    if (at === from) return at;
    if (this.text.length + at - from > longestScalar) throw fault();
    // A native call costs more than a few characters.
    if (at - from > 8) this.text += bytes.toString('latin1', from, at);
    else for (let i = from; i < at; i++) this.text += String.fromCharCode(bytes[i]!);
    return at;
  }

  private keep(byte: number): void {
    if (this.isKey && this.open.length === 1 && this.text.length < longestKey) this.text += String.fromCharCode(byte);
  }

  private closeKey(at: number): void {
    this.state = 'colon';
    if (this.open.length !== 1) return void this.prompt?.named(this.nameHash, at - this.textStart - this.spare);
    this.prompt?.begin(this.text);
    if (this.text.length >= longestKey) return;
    const name = this.text.includes('\\') ? String(JSON.parse(`"${this.text}"`)) : this.text;
    if (!this.wanted.has(name)) return;
    // If a field comes twice, servers differ in which one they take, and the gateway must not decide by the other one.
    if (this.found.has(name)) throw new JsonFault(`The body has the field ${name} twice.`);
    this.field = name;
  }

  private closeValue(end: number): void {
    this.state = 'comma-or-end';
    if (this.open.length !== 1 || this.field === undefined) return;
    this.found.set(this.field, { name: this.nameStart, start: this.start, end });
    this.field = undefined;
  }

  private openContainer(isObject: boolean): void {
    if (this.open.length === maxDepth) throw new JsonFault(`The body is nested deeper than ${maxDepth} levels.`);
    if (this.open.length > 0) this.prompt?.open();
    this.open.push(isObject);
    this.state = isObject ? 'key-or-end' : 'value-or-end';
  }

  private closeContainer(at: number, isObject: boolean): void {
    if (this.open.pop() !== isObject) throw fault();
    if (this.open.length === 0) this.state = 'done';
    else {
      this.prompt?.close();
      this.closeValue(at + 1);
    }
  }
}

/** The next byte that is not plain text of a string, or the length. */
function endOfText(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at]! !== quote && bytes[at]! !== backslash && bytes[at]! >= 0x20) at += 1;
  return at;
}

/** After a backslash: " \ / b f n r t */
const escapes: readonly number[] = [0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74];

/** By byte: 1 for those that the expression matches. */
const bytesLike = (expression: RegExp): Uint8Array =>
  Uint8Array.from({ length: 256 }, (_, byte) => Number(expression.test(String.fromCharCode(byte))));
const isHex = bytesLike(/[\dA-Fa-f]/);
/** Bytes of numbers, and of the words true, false and null. */
const isScalarByte = bytesLike(/[\da-zE+.-]/);

/** Lists of single digits cost most for each byte, so a single digit is read without a regular expression. */
const isScalar = (text: string): boolean => (text.length === 1 ? text >= '0' && text <= '9' : scalar.test(text));

const fault = (): JsonFault => new JsonFault('The body is not a JSON object.');
