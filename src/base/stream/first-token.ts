/** Finds a stream's first content token. A role, comments, keep-alives are none; `mostHeldBytes` count as one. */
import { contentPieces, parseJson } from './content-pieces.js';
import { GatheredBytes } from './gathered-bytes.js';
import type { PieceSource } from './read-ahead.js';
import { SseData } from './sse-data.js';

/** Servers send fewer bytes before their first token. */
const mostHeldBytes = 1_048_576;

/** Whether an answer is a stream of server-sent events. */
export function isEventStream(headers: { get(name: string): string | null }): boolean {
  return headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
}

/** Reads along with a stream of events. */
export class FirstTokenWatch {
  private readonly decoder = new TextDecoder();
  private readonly events: SseData;
  private hasContent = false;
  private bytes = 0;

  constructor() {
    this.events = new SseData(mostHeldBytes, (data) => {
      this.hasContent ||= contentPieces(parseJson(data)) > 0;
    });
  }

  /** True once content has come, or so much that it counts as begun. */
  get hasBegun(): boolean {
    return this.hasContent || this.bytes > mostHeldBytes;
  }

  push(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    this.events.push(this.decoder.decode(chunk, { stream: true }));
  }
}

/** What comes up to the chunk with the first content token, or to the end. Rejects as the reader does. */
export async function readToFirstToken(reader: Pick<PieceSource<Uint8Array>, 'read'>): Promise<Uint8Array[]> {
  const watch = new FirstTokenWatch();
  const held = new GatheredBytes();
  while (!watch.hasBegun) {
    const { done, value } = await reader.read();
    if (done || value === undefined) break;
    held.push(value);
    watch.push(value);
  }
  return held.parts();
}

/** How long the streams of a model may go without a content token, ms; Infinity: as long as it takes. */
export function firstTokenMsOf(
  model: unknown,
  otherwise: number | undefined = Infinity,
  byModel: Readonly<Record<string, number>> = {},
): number {
  return typeof model === 'string' && Object.hasOwn(byModel, model) ? (byModel[model] ?? otherwise) : otherwise;
}
