/** The way in: the capacity tests, and what a request that comes is told. */
import { expect } from 'vitest';
import { errorChainOf } from '../support/reference-terms.js';
import { Rig, type Ticket } from '../support/rig.js';
import { type Runners, runner } from '../support/runner.js';

interface Occupancy {
  readonly bytes: number;
  /** 0: unlimited. */
  readonly capacityBytes: number;
  readonly length: number;
  /** 0: unlimited. */
  readonly capacityRequests: number;
}

interface CapacityCheck {
  itemBytes: number;
  priority: number;
  global: Occupancy;
  band: Occupancy | null;
}

interface Limits {
  maxBytes: number;
  maxRequests: number;
}

/**
 * Vectors count bytes apart from requests; here bytes need a request that has them, and a limit moves along by what was
 * added.
 */
function fill(rig: Rig, priority: number, bytes: number, length: number): { addedRequests: number } {
  const needed = Math.max(length, bytes > 0 ? 1 : 0);
  for (let index = 0; index < needed; index++) rig.enqueue({ priority, byteSize: index === 0 ? bytes : 0 });
  return { addedRequests: needed - length };
}

function limitsOf({ capacityBytes, capacityRequests }: Occupancy, addedBytes: number, addedRequests: number): Limits {
  return {
    maxBytes: capacityBytes === 0 ? Number.POSITIVE_INFINITY : capacityBytes + addedBytes,
    maxRequests: capacityRequests === 0 ? Number.POSITIVE_INFINITY : capacityRequests + addedRequests,
  };
}

/** Fills a controller without limits to the state of the vector, sets the limits, and lets the request come. */
function isAccepted({ itemBytes, priority, global, band }: CapacityCheck): boolean {
  const own = band ?? { bytes: 0, capacityBytes: 0, length: 0, capacityRequests: 0 };
  const unlimited = { maxBytes: Number.POSITIVE_INFINITY, maxRequests: Number.POSITIVE_INFINITY };
  const others = priority - 1;
  const bands = [priority, others].map((level) => ({ priority: level, limits: unlimited }));
  const rig = new Rig({ bands, limits: unlimited });
  const inBand = fill(rig, priority, own.bytes, own.length);
  const elsewhere = fill(rig, others, Math.max(global.bytes - own.bytes, 0), Math.max(global.length - own.length, 0));
  const { waiting, waitingBytes } = rig.flow.stats();
  const bandLimits = limitsOf(own, 0, inBand.addedRequests);
  const globalLimits = limitsOf(global, waitingBytes - global.bytes, waiting - global.length);
  expect(elsewhere.addedRequests).toBeLessThanOrEqual(1);
  rig.flow.reconfigure({
    limits: globalLimits,
    bands: [
      { priority, limits: bandLimits },
      { priority: others, limits: unlimited },
    ],
  });
  const { state } = rig.enqueue({ priority, byteSize: itemBytes });
  if (state !== 'queued') expect(state).toBe('RejectedCapacity');
  return state === 'queued';
}

interface Arrival {
  /** A part of the reference that fails. Bands and queues are objects in hand here: nothing does. */
  fault?: string;
  /** It has ended before it gets to its queue. */
  preFinalized?: string;
  queuedRequests?: number;
  queuedBytes?: number;
  saturation?: number;
  priority?: number;
  itemBytes?: number;
  poolEmpty?: boolean;
  bandCapacityBytes?: number;
  bandCapacityRequests?: number;
  globalCapacityBytes?: number;
  globalCapacityRequests?: number;
}

interface ArrivalResult {
  outcome: string | null;
  errorChainIncludes?: readonly string[];
  addedToQueue?: boolean;
}

/** The reference says `NotYetFinalized` of a request that now waits. */
function outcomeName({ state }: Ticket): string {
  return state === 'queued' || state === undefined ? 'NotYetFinalized' : state;
}

export const capacityRunners: Runners = {
  'capacity.check': runner<CapacityCheck, { accepted: boolean }>(
    { input: ['itemBytes', 'priority', 'global', 'band'], expect: ['accepted'] },
    ({ input, expect: expected }) => {
      expect(isAccepted(input)).toBe(expected.accepted);
    },
  ),

  'enqueue.outcome': runner<Arrival, ArrivalResult>(
    {
      input: [
        ...([
          'fault',
          'preFinalized',
          'queuedRequests',
          'queuedBytes',
          'saturation',
          'priority',
          'itemBytes',
          'poolEmpty',
        ] as const),
        ...(['bandCapacityBytes', 'bandCapacityRequests', 'globalCapacityBytes', 'globalCapacityRequests'] as const),
      ],
      expect: ['outcome', 'errorChainIncludes', 'addedToQueue'],
    },
    (vector) => {
      const { input, expect: expected } = vector;
      const { queuedRequests = 0, queuedBytes = 0, priority = 0, preFinalized } = input;
      const limits = { maxBytes: input.bandCapacityBytes, maxRequests: input.bandCapacityRequests };
      const global = {
        maxBytes: input.globalCapacityBytes ?? Number.POSITIVE_INFINITY,
        maxRequests: input.globalCapacityRequests ?? Number.POSITIVE_INFINITY,
      };
      const rig = new Rig(
        { limits: global, bands: [{ priority, limits }] },
        { endpoints: input.poolEmpty === true ? 0 : 1 },
      );
      rig.gate.saturationWhenClosed = input.saturation ?? 1;
      fill(rig, priority, queuedBytes, queuedRequests);
      const waiting = rig.flow.stats().waiting;
      const abort = new AbortController();
      if (preFinalized === 'Dispatched') rig.gate.open(1);
      else if (preFinalized !== undefined) abort.abort();
      const ticket = rig.enqueue({ priority, byteSize: input.itemBytes ?? 100, abort });
      expect(outcomeName(ticket)).toBe(expected.outcome ?? 'NotYetFinalized');
      const chain = ticket.drop === undefined ? [] : errorChainOf(ticket.drop);
      expect(chain).toEqual(expect.arrayContaining([...(expected.errorChainIncludes ?? [])]));
      if (expected.addedToQueue !== undefined) expect(rig.flow.stats().waiting > waiting).toBe(expected.addedToQueue);
    },
  ),
};
