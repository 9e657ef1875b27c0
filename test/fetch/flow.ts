/** A controller in front of a model server, and the fetch between them. */
import { expect } from 'vitest';
import { type FetchRequest, type FlowFetch, type FlowFetchOptions, flowFetch } from '../../src/fetch/index.js';
import { concurrencyDetector, FlowController, type FlowControllerOptions, type FlowRequest } from '../../src/index.js';
import { audit } from '../../src/testing/index.js';
import { until } from '../integration/support/until.js';

export interface Setup {
  readonly flow: FlowController<FetchRequest>;
  readonly fetch: FlowFetch;
}

/** One seat unless told otherwise. */
export function gated(
  options: FlowFetchOptions = {},
  controller: Partial<FlowControllerOptions<FetchRequest>> = {},
): Setup {
  const flow = new FlowController<FetchRequest>({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    ...controller,
  });
  return { flow, fetch: flowFetch(flow, { random: () => 0, ...options }) };
}

/** Every seat came back, and nothing waits. */
export async function expectIdle<R extends FlowRequest>({ flow }: { readonly flow: FlowController<R> }): Promise<void> {
  await until('no seat is taken', () => flow.stats().inFlight === 0);
  expect(flow.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  expect(audit(flow).violations).toEqual([]);
}
