/**
 * `headgate/fetch` and `headgate/ai` run wherever fetch does: a bundle for browsers and edge runtimes needs nothing of
 * Node.
 */
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { bundle } from '../support/bundle.js';

describe.each(['fetch/index.ts', 'fetch/ai/index.ts'])('%s', (entry) => {
  it.each(['browser', 'neutral'] as const)('bundles for platform %s without anything of Node', async (platform) => {
    const { imports } = await bundle(entry, platform);
    expect(imports.length).toBeGreaterThan(100);
    expect(imports.filter((path) => path.startsWith('node:'))).toEqual([]);
  });
});

it('sends a request where there is no process, no Buffer and no require', async () => {
  const { code } = await bundle('fetch/index.ts', 'browser');
  const answered: unknown = runInNewContext(
    `${code}
    const gate = { enqueue: async () => ({ type: 'Dispatched', lease, queuedMs: 0 }) };
    let released = 0;
    const lease = { signal: new AbortController().signal, answered() {}, report() {}, release() { released += 1; } };
    const fetch = bundled.flowFetch(gate, { fetch: async () => new Response('served') });
    fetch('http://model/').then((response) => response.text()).then((text) => text + released)`,
    {
      AbortController,
      Blob,
      DOMException,
      FormData,
      Headers,
      ReadableStream,
      Request,
      Response,
      TextDecoder,
      URL,
      URLSearchParams,
      performance,
      setTimeout,
      clearTimeout,
    },
  );
  expect(await answered).toBe('served1');
});
