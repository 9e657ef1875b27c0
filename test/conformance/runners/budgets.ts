/** How long a request may wait, in a pool with endpoints and in an empty one. */
import { expect } from 'vitest';
import { flowKeyFromHeaders } from '../../../src/adapters/http/index.js';
import { waitHeader } from '../../../src/base/headers/header-names.js';
import { Rig, type Ticket } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';

interface Expiry {
  /** 0 or less: none. */
  itemTtlMs: number;
  noEndpointTtlMs: number;
  poolEmpty: boolean;
  /** Null: never. */
  regimeChangedAtMs: number | null;
  elapsedMs: number;
}

interface Step {
  readonly op: string;
  readonly empty?: boolean;
  readonly ms?: number;
}

interface ScopedTtl {
  globalMs: number;
  bandMs: number | null;
  headerMs: number | null;
}

/** Budgets of 0 and less mean for ever in the reference, here 0 does. */
function budget(ms: number): number {
  return Math.max(ms, 0);
}

/**
 * A request that came at 0, in a pool whose regime began when the vector says. Before that instant the pool is empty
 * and waiting costs nothing, so that the request lives to see it; the change itself may then be two changes at one
 * instant.
 */
function waitingSince({ itemTtlMs, noEndpointTtlMs, poolEmpty, regimeChangedAtMs }: Expiry): {
  rig: Rig;
  ticket: Ticket;
} {
  const endpoints = poolEmpty ? 0 : 1;
  const startMs = Math.min(regimeChangedAtMs ?? 0, 0);
  const rig = new Rig({ noEndpointRequestTtl: 0 }, { endpoints: regimeChangedAtMs === null ? endpoints : 0, startMs });
  const begin = (): void => {
    rig.setEndpoints(1);
    rig.setEndpoints(endpoints);
    rig.flow.reconfigure({ noEndpointRequestTtl: budget(noEndpointTtlMs) });
  };
  const changedBefore = regimeChangedAtMs !== null && regimeChangedAtMs <= 0;
  if (regimeChangedAtMs === null) rig.flow.reconfigure({ noEndpointRequestTtl: budget(noEndpointTtlMs) });
  else if (changedBefore) begin();
  rig.advanceTo(0);
  const ticket = rig.enqueue({ ttlMs: budget(itemTtlMs) });
  if (regimeChangedAtMs !== null && !changedBefore) {
    rig.advanceTo(regimeChangedAtMs);
    begin();
  }
  return { rig, ticket };
}

const expiry = runner<Expiry, { outcome: string; expired: boolean }>(
  {
    input: ['itemTtlMs', 'noEndpointTtlMs', 'poolEmpty', 'regimeChangedAtMs', 'elapsedMs'],
    expect: ['outcome', 'expired'],
  },
  ({ input, expect: expected }) => {
    const { rig, ticket } = waitingSince(input);
    rig.advanceTo(input.elapsedMs);
    expect(ticket.state !== 'queued').toBe(expected.expired);
    // The vector names the outcome of the regime also while the time is not up.
    const governing = input.poolEmpty ? input.noEndpointTtlMs : input.itemTtlMs;
    rig.clock.advance(budget(governing));
    expect(ticket.state).toBe(governing > 0 ? expected.outcome : 'queued');
  },
);

const sweepScript = runner<
  { itemTtlMs: number; noEndpointTtlMs: number; steps: readonly Step[] },
  { afterSweeps: readonly string[] }
>({ input: ['itemTtlMs', 'noEndpointTtlMs', 'steps'], expect: ['afterSweeps'] }, (vector) => {
  const { itemTtlMs, noEndpointTtlMs, steps } = vector.input;
  const rig = new Rig({ noEndpointRequestTtl: budget(noEndpointTtlMs) });
  let ticket: Ticket | undefined;
  const afterSweeps: unknown[] = [];
  for (const { op, empty, ms = 0 } of steps) {
    if (op === 'regime') rig.setEndpoints(empty === true ? 0 : 1);
    else if (op === 'enqueue') ticket = rig.enqueue({ ttlMs: budget(itemTtlMs) });
    else if (op === 'advance') rig.clock.advance(ms);
    else if (op === 'cancel') ticket?.abort.abort();
    else if (op === 'sweep') afterSweeps.push(ticket?.state);
    else throw unknownWord(vector, op);
  }
  expect(afterSweeps).toEqual(vector.expect.afterSweeps);
});

interface RegimeStep {
  readonly op: string;
  readonly poolEmpty: boolean;
  readonly atMs: number;
}

const regimeStamp = runner<{ steps: readonly RegimeStep[] }, { sinceMs: readonly (number | null)[] }>(
  { input: ['steps'], expect: ['sinceMs'] },
  (vector) => {
    const rig = new Rig();
    let sinceMs: number | null = null;
    rig.flow.on('regime', () => {
      sinceMs = rig.nowMs;
    });
    const found = vector.input.steps.map(({ op, poolEmpty, atMs }) => {
      if (op !== 'cycle') throw unknownWord(vector, op);
      rig.advanceTo(atMs);
      rig.setEndpoints(poolEmpty ? 0 : 1);
      return sinceMs;
    });
    expect(found).toEqual(vector.expect.sinceMs);
  },
);

/** How long a request waits before it is dropped; 0 when it still waits after a year. */
function effectiveTtlMs(rig: Rig, maxWaitMs?: number): number {
  const ticket = rig.enqueue({ maxWaitMs });
  rig.clock.advance(365 * 86_400_000);
  return ticket.drop?.queuedMs ?? 0;
}

const scopedTtl = runner<ScopedTtl, { saturationTtlMs: number; noEndpointTtlUnaffected: boolean }>(
  { input: ['globalMs', 'bandMs', 'headerMs'], expect: ['saturationTtlMs', 'noEndpointTtlUnaffected'] },
  ({ input: { globalMs, bandMs, headerMs }, expect: expected }) => {
    const headers = headerMs === null ? {} : { [waitHeader]: `${headerMs}ms` };
    const { maxWaitMs } = flowKeyFromHeaders(headers, { trust: true });
    const noEndpointTtlMs = 7000;
    const bands = [{ priority: 0, requestTtl: bandMs ?? undefined }];
    const options = { bands, defaultRequestTtl: globalMs, noEndpointRequestTtl: noEndpointTtlMs };
    expect(effectiveTtlMs(new Rig(options), maxWaitMs)).toBe(expected.saturationTtlMs);
    const isUnaffected = effectiveTtlMs(new Rig(options, { endpoints: 0 }), maxWaitMs) === noEndpointTtlMs;
    expect(isUnaffected).toBe(expected.noEndpointTtlUnaffected);
  },
);

export const budgetRunners: Runners = {
  'budget.expiry': expiry,
  'budget.sweepScript': sweepScript,
  'budget.regimeStamp': regimeStamp,
  'budget.scopedTtl': scopedTtl,
};
