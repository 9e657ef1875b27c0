/** What Prometheus scrapes: pieces change nothing. */
import { ExpositionReader, lineFinder } from '../src/upstream/scraping/exposition-reader.js';
import { inPieces, same } from './inputs.js';

const finder = lineFinder(['vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc', 'up']);

function samples(pieces: readonly Buffer[]): unknown[] {
  const all: unknown[] = [];
  const reader = new ExpositionReader(finder, {
    declared: (metric) => all.push(metric),
    sample: (metric, labels, value) => all.push([metric, ...labels, String(value)]),
  });
  for (const piece of pieces) reader.push(piece);
  reader.end();
  return all;
}

export function fuzz(input: Buffer): void {
  const { whole, pieces } = inPieces(input);
  same('samples in pieces', samples(pieces), samples([whole]));
}
