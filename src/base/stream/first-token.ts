/**
 * Finds the first content token of a streamed answer, for callers that give up an attempt if none comes in time.
 *
 * Comments, keep-alive events and deltas with nothing but a role are no content. Bounded: after `mostHeldBytes` the
 * answer counts as begun, whatever it holds.
 */
import { contentPieces } from './content-pieces.js';
import { GatheredBytes } from './gathered-bytes.js';
import { SseData } from './sse-data.js';

/** The part of a body's reader that is used. */
export interface ChunkReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
}

/** The beginning of a body. */
export interface Beginning {
  readonly chunks: Uint8Array[];
  /** True when this is the whole body. */
  readonly isWhole: boolean;
}

/** Servers send fewer bytes before their first token. */
const mostHeldBytes = 1_048_576;

/** Whether an answer is a stream of server-sent events. */
export function isEventStream(headers: { get(name: string): string | null }): boolean {
  return headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
}

/** Reads a stream of events up to the chunk with its first content token, or to its end. Rejects as the reader does. */
export async function readToFirstToken(reader: ChunkReader): Promise<Beginning> {
  const decoder = new TextDecoder();
  let hasContent = false;
  const events = new SseData(mostHeldBytes, (data) => {
    hasContent ||= contentPieces(eventOf(data)) > 0;
  });
  const held = new GatheredBytes();
  while (held.length <= mostHeldBytes && !hasContent) {
    const { done, value } = await reader.read();
    if (done || value === undefined) return { chunks: held.parts(), isWhole: true };
    held.push(value);
    events.push(decoder.decode(value, { stream: true }));
  }
  return { chunks: held.parts(), isWhole: false };
}

/** Undefined for `[DONE]` and other texts that are no object. */
function eventOf(data: string): unknown {
  if (!data.startsWith('{')) return undefined;
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
