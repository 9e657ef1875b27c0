/** A fetch runtime in a few lines: an application, requests that can be aborted, bodies that are read by hand. */

import type { Context } from 'hono';
import { type Handler, Hono } from 'hono';
import { type FlowControlOptions, flowControl } from '../../../src/adapters/hono/index.js';
import { type CountingGate, countingGate } from '../../integration/support/counting-gate.js';

export interface Runtime {
  readonly app: Hono;
  readonly gate: CountingGate;
  fetch(path?: string, init?: RequestInit): Promise<Response>;
}

export function runtime(
  handler: Handler,
  options: FlowControlOptions<Context> = {},
  gate: CountingGate = countingGate(1),
): Runtime {
  const app = new Hono();
  app.use(flowControl(gate, options));
  app.all('/*', handler);
  return { app, gate, fetch: async (path = '/', init) => app.fetch(new Request(`http://localhost${path}`, init)) };
}

/** A body of chunks that the test hands out, and what became of it. */
export function source() {
  const text = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const seen = { pulls: 0, cancelled: undefined as unknown };
  const stream = new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given;
      },
      pull() {
        seen.pulls += 1;
      },
      cancel(reason) {
        seen.cancelled = reason;
      },
    },
    { highWaterMark: 0 },
  );
  return {
    stream,
    seen,
    send: (chunk: string) => controller!.enqueue(text.encode(chunk)),
    end: () => controller!.close(),
    fail: (error: Error) => controller!.error(error),
  };
}
