/** Server-sent events: pieces change nothing, and no event is longer than it may be. */
import { SseData } from '../src/base/stream/sse-data.js';
import { inPieces, same } from './inputs.js';

const longest = 200;

function events(pieces: readonly Buffer[]): string[] {
  const all: string[] = [];
  const reader = new SseData(longest, (data) => all.push(data));
  for (const piece of pieces) reader.push(piece.toString('latin1'));
  reader.end();
  return all;
}

export function fuzz(input: Buffer): void {
  const { whole, pieces } = inPieces(input);
  const all = events([whole]);
  same('events in pieces', events(pieces), all);
  if (all.some((data) => data.length > longest)) throw new Error('an event is longer than the longest');
}
