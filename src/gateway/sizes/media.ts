/** What stands in a prompt beside text: pictures, sound, documents, video. Their data is read at its ends. */
import { type PictureSize, pictureSize } from './picture-size.js';

export interface Medium {
  /** `link`: a picture whose size is not known, because the server fetches it. */
  readonly kind: 'picture' | 'link' | 'sound' | 'document' | 'video';
  /** As far as its kind and its length tell; a picture of known size takes what a formula says. */
  readonly tokens: number;
  readonly size?: PictureSize | undefined;
  /** Sent with `detail: "low"`. */
  readonly isLow?: boolean | undefined;
}

/** Of a picture of which nothing is known. */
const usualTokens = 1000;
const tokensPerSecond = 25;
const tokensPerPage = 1500;
const bytesPerDocumentToken = 20;
/** Bytes of sound in a second, where its head does not say. */
const bitrateOf = (type: string): number =>
  /pcm|wav/.test(type) ? 48_000 : /flac/.test(type) ? 80_000 : /opus|ogg/.test(type) ? 6_000 : 16_000;
/** Of video; one picture is taken from each second. */
const videoBytesPerSecond = 250_000;
/** Of base64. Most sizes are in the first part; photos with a preview come to theirs in the second. */
const [shortHead, longHead] = [4_096, 262_144];

const dataUrl = /^data:([^,;]{0,100})[^,]{0,100},/;
const picture = /^(?:\xff\xd8|\x89PNG|GIF8|RIFF)/;

/** Reads data, a data URL, a URL or a file's ID, by `field` and its `labels` (type, `detail`). Undefined: text. */
export function mediumOf(body: Buffer, start: number, end: number, field: string, labels: string): Medium | undefined {
  const [prefix = '', named] = dataUrl.exec(textAt(body, start, Math.min(end, start + 256))) ?? [];
  // Some writers of JSON escape slashes.
  const type = named ?? labels.replaceAll('\\', '');
  const kind = kindOf(field, type);
  // Ten seconds of video, half a minute of sound, or a document of a page.
  const unseen = { kind, tokens: kind === 'video' ? 10 * usualTokens : usualTokens, isLow: /\blow\b/.test(labels) };
  if (named === undefined && !field.endsWith('data')) return unseen;
  const from = start + prefix.length;
  const bytes = Math.ceil((end - from) * 0.75);
  const head = decoded(body, from, Math.min(end, from + shortHead));
  const magic = head.toString('latin1', 0, 12);
  if (magic.startsWith('%PDF')) return { kind: 'document', tokens: pdfTokens(body, head, from, end) };
  if (/^RIFF.{4}WAVE/s.test(magic)) return soundOf(bytes, head.length < 32 ? 0 : head.readUInt32LE(28));
  if (picture.test(magic)) {
    const size = pictureSize(head) ?? pictureSize(decoded(body, from, Math.min(end, from + longHead)));
    return { ...unseen, kind: size === undefined ? 'link' : 'picture', tokens: usualTokens, size };
  }
  if (kind === 'sound') return soundOf(bytes, bitrateOf(type));
  if (kind === 'video') return { kind, tokens: Math.ceil(bytes / videoBytesPerSecond) * usualTokens };
  if (kind === 'link') return unseen;
  return /text\/|json|xml/.test(type) ? undefined : { kind, tokens: Math.ceil(bytes / bytesPerDocumentToken) };
}

/** By the type if it is told, else by the field. */
function kindOf(field: string, type: string): Medium['kind'] {
  const told = /\w\//.test(type) ? type : field;
  if (/audio/.test(told)) return 'sound';
  if (/video/.test(told)) return 'video';
  return /image|source/.test(told) ? 'link' : 'document';
}

/** A head may lie about its rate. */
function soundOf(bytes: number, bytesPerSecond: number): Medium {
  const isLikely = bytesPerSecond >= 1_000 && bytesPerSecond <= 10_000_000;
  return { kind: 'sound', tokens: Math.ceil((bytes / (isLikely ? bytesPerSecond : bitrateOf(''))) * tokensPerSecond) };
}

/** The number of pages stands near the end, and in the head of files made for the web; in some it is compressed. */
function pdfTokens(body: Buffer, head: Buffer, from: number, end: number): number {
  const bytes = (end - from) * 0.75;
  // Base64 is read from a multiple of four letters on.
  const tail = decoded(body, Math.max(from, end - ((end - from) % 4) - shortHead), end);
  const counts = [head, tail].flatMap((part) => [...part.toString('latin1').matchAll(/\/(?:Count|N) (\d{1,6})\b/g)]);
  const pages = Math.max(0, ...counts.map(([, count]) => Number(count)));
  // No page is that short.
  return pages > 0 && pages <= bytes / 100 ? pages * tokensPerPage : Math.ceil(bytes / bytesPerDocumentToken);
}

const decoded = (body: Buffer, start: number, end: number): Buffer => Buffer.from(textAt(body, start, end), 'base64');

const textAt = (body: Buffer, start: number, end: number): string =>
  body.toString('latin1', start, end).replaceAll('\\/', '/');
