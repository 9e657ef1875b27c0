import { beforeEach, describe, it, vi } from 'vitest';
import type { AdmissionPolicy } from '../../../src/admission/admission-policy.js';
import { saturationDetectorShape } from '../../../src/gate/saturation-detector.js';
import {
  concurrencyDetector,
  edf,
  FlowConfigError,
  type FlowControllerOptions,
  roundRobin,
  staticUsageLimit,
  weightedBands,
} from '../../../src/index.js';
import { selectorMethods } from '../../../src/tiers/2-fairness/fairness-policy.js';
import { live } from '../../support/life.js';

/**
 * Every member that the controller reads, of the policies that a host may replace: `read` is called at each reading,
 * with what is there.
 */
type Read = (member: unknown) => unknown;

function fair(policy: object): Partial<FlowControllerOptions> {
  return { bands: [{ priority: 0, fairness: { type: 'x', ...policy } as never }], flowIdleTimeout: 50 };
}

function watched<T extends object>(plugin: T, name: string, read: Read): T {
  return new Proxy(plugin, {
    get: (target, key) => (key === name ? read(Reflect.get(target, key)) : Reflect.get(target, key)),
  });
}

const members: Readonly<Record<string, (read: Read) => Partial<FlowControllerOptions>>> = {
  ...Object.fromEntries(
    selectorMethods.map((name) => [
      `${name} of a selector`,
      (read: Read) => fair({ createSelector: (band: never) => watched(roundRobin().createSelector(band), name, read) }),
    ]),
  ),
  ...Object.fromEntries(
    [...saturationDetectorShape.required, ...saturationDetectorShape.optional, 'isGuessing'].map((name) => [
      `${name} of a detector`,
      (read: Read) => ({ saturationDetector: watched(concurrencyDetector({ maxConcurrency: 1 }), name, read) }),
    ]),
  ),
  ...Object.fromEntries(
    ['computeLimits', 'dispatched', 'constant', 'reopens'].map((name) => [
      `${name} of a usage limit`,
      (read: Read) => ({ usageLimitPolicy: watched(staticUsageLimit(), name, read) }),
    ]),
  ),
  ...Object.fromEntries(
    ['compare', 'arrivalOrder', 'isInfeasible', 'firstToken', 'scores'].map((name) => [
      `${name} of an ordering`,
      (read: Read) => ({ bands: [{ priority: 0, ordering: watched(edf(), name, read) }] }),
    ]),
  ),
  ...Object.fromEntries(
    ['rank', 'recordDispatch'].map((name) => [
      `${name} of an order of bands`,
      (read: Read) => ({ bandOrder: watched(weightedBands(), name, read) }),
    ]),
  ),
  ...Object.fromEntries(
    ['admit', 'released'].map((name) => [
      `${name} of an admission policy`,
      (read: Read) => ({
        admission: watched({ type: 'x', admit: () => 'admit', released: () => {} } as AdmissionPolicy, name, read),
      }),
    ]),
  ),
};

beforeEach(() => {
  const quiet = vi.spyOn(console, 'error').mockImplementation(() => {});
  return () => quiet.mockRestore();
});

describe('a member of foreign code that throws once when it is read', () => {
  it.each(Object.entries(members))('%s: breaks no caller, at whichever reading', async (_name, optionsFor) => {
    let total = 0;
    const count: Read = (member) => {
      total++;
      return member;
    };
    await live(optionsFor(count));
    // Every one of the first readings, and then ever fewer of them.
    for (let at = 0; at < total; at += 1 + (at >> 3)) {
      let reads = 0;
      const throwOnce: Read = (member) => {
        if (reads++ === at) throw new Error('once');
        return member;
      };
      await live(optionsFor(throwOnce)).catch((error: unknown) => {
        // A plugin that cannot be read when it is installed is not installed.
        if (!(error instanceof FlowConfigError)) throw new Error(`broken at reading ${at}`, { cause: error });
      });
    }
  });
});
