/** Tier 3: which request goes first. Policies are asked directly, on views made of the vectors' instants. */
import { expect } from 'vitest';
import { sloTtftMsFromHeaders } from '../../../src/adapters/http/index.js';
import { HeapQueue } from '../../../src/base/queues/heap-queue.js';
import { defaultRegistry, edf, type ItemView, type OrderingPolicy, sloDeadline } from '../../../src/index.js';
import { type Runners, runner } from '../support/runner.js';

interface VectorItem {
  readonly enqueueMs?: number;
  readonly receivedMs?: number;
  /** 0 or less: none. */
  readonly ttlMs?: number;
  /** Null: the request object is missing, and with it the headers. */
  readonly headers?: Readonly<Record<string, string>> | null;
}

type View = ItemView & { readonly isWaiting: boolean };

/** `sequence` is for the caller to say: vectors know instants, not arrival numbers. */
function viewOf({ enqueueMs, receivedMs, ttlMs = 0, headers }: VectorItem, sequence = 0): View {
  const receivedAtMs = receivedMs ?? enqueueMs ?? 0;
  const sloTtftMs = sloTtftMsFromHeaders(headers ?? {});
  return {
    request: { headers },
    fairnessId: 'flow',
    priority: 0,
    byteSize: 0,
    tokens: 0,
    isWaiting: true,
    sequence,
    receivedAtMs,
    enqueuedAtMs: enqueueMs ?? receivedAtMs,
    ttlMs: ttlMs > 0 ? ttlMs : Number.POSITIVE_INFINITY,
    ttftDeadlineAtMs: sloTtftMs === undefined ? Number.POSITIVE_INFINITY : receivedAtMs + sloTtftMs,
  };
}

function policyOf(type: string): OrderingPolicy {
  return defaultRegistry().create(type) as OrderingPolicy;
}

/** Arrival numbers follow the instants of arrival; equal instants share one, so that nothing but the policy decides. */
function less(policy: OrderingPolicy, a: VectorItem | null, b: VectorItem | null): boolean {
  const arrivedAt = (item: VectorItem | null): number => item?.enqueueMs ?? item?.receivedMs ?? 0;
  const viewA = a && viewOf(a, Number(arrivedAt(a) > arrivedAt(b)));
  const viewB = b && viewOf(b, Number(arrivedAt(b) > arrivedAt(a)));
  if (viewA !== null && viewB !== null) return policy.compare(viewA, viewB) < 0;
  // A missing item is a place in line that nobody takes: whoever is there goes first.
  const present = [viewA, viewB].filter((view) => view !== null);
  const line = new HeapQueue<View>((x, y) => policy.compare(x, y), present);
  return viewA !== null && line.peek() === viewA;
}

/** A deadline is found by comparing: no policy tells it. `probe` makes an item with a given deadline. */
function expectDeadline(
  policy: OrderingPolicy,
  item: View,
  probe: (deadlineMs: number) => View,
  expected: Deadline,
): void {
  const farthestMs = 2 ** 50;
  const { deadlineMs } = expected;
  if (deadlineMs === undefined) {
    expect(expected.deadline).toBe('far-future');
    expect(policy.compare(item, probe(farthestMs))).toBeGreaterThan(0);
    return;
  }
  const step = Math.max(1e-3, Math.abs(deadlineMs) * 1e-12);
  expect(policy.compare(item, probe(deadlineMs + step))).toBeLessThan(0);
  expect(policy.compare(item, probe(deadlineMs - step))).toBeGreaterThan(0);
}

interface Deadline {
  deadlineMs?: number;
  deadline?: string;
}

export const orderingRunners: Runners = {
  'ordering.less': runner<{ policy: string; a: VectorItem | null; b: VectorItem | null }, { less: boolean }>(
    { input: ['policy', 'a', 'b'], expect: ['less'] },
    ({ input: { policy, a, b }, expect: expected }) => {
      expect(less(policyOf(policy), a, b)).toBe(expected.less);
    },
  ),

  'ordering.nullRules': runner<{ policy: string }, { nullNull: boolean; itemNull: boolean; nullItem: boolean }>(
    { input: ['policy'], expect: ['nullNull', 'itemNull', 'nullItem'] },
    ({ input, expect: expected }) => {
      const policy = policyOf(input.policy);
      const item = { enqueueMs: 0, ttlMs: 1000 };
      const found = {
        nullNull: less(policy, null, null),
        itemNull: less(policy, item, null),
        nullItem: less(policy, null, item),
      };
      expect(found).toEqual(expected);
    },
  ),

  'ordering.edfDeadline': runner<VectorItem, Deadline>(
    { input: ['enqueueMs', 'ttlMs'], expect: ['deadlineMs', 'deadline'] },
    ({ input, expect: expected }) => {
      const { enqueueMs = 0 } = input;
      const item = viewOf({ ...input, enqueueMs });
      const probe = (deadlineMs: number): View =>
        viewOf({
          enqueueMs: Math.min(enqueueMs, deadlineMs) - 1,
          ttlMs: deadlineMs - (Math.min(enqueueMs, deadlineMs) - 1),
        });
      expectDeadline(edf(), item, probe, expected);
    },
  ),

  'ordering.sloDeadline': runner<VectorItem, Deadline>(
    { input: ['receivedMs', 'headers'], expect: ['deadlineMs', 'deadline'] },
    ({ input, expect: expected }) => {
      const probe = (deadlineMs: number): View => ({ ...viewOf({ receivedMs: 0 }), ttftDeadlineAtMs: deadlineMs });
      expectDeadline(sloDeadline(), viewOf(input), probe, expected);
    },
  ),
};
