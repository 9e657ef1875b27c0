/**
 * What each tenant has, and received of what it is owed. A flow starves when its oldest request waited `starvesAfterMs`
 * and it got nothing lately while others were served, or in the last minute less than half of its share of its band.
 */
import type { ControllerOverview } from '../../types/index.js';
import type { FlowHistory } from './history.js';
import type { NameOf } from './names.js';

export interface FrameTenant {
  readonly name: string;
  readonly priority: number;
  readonly running: number;
  readonly waiting: number;
  /** Booked by what runs. */
  readonly tokens: number;
  readonly servedPerSecond: number;
  readonly droppedPerSecond: number;
  /** Of its band, 0 … 1: by the fairness policy's cost, or by requests; null where nothing was served lately. */
  readonly receivedShare: number | null;
  readonly owedShare: number | null;
  /** Null: nothing waits, or no request of it was looked at. */
  readonly oldestWaitMs: number | null;
  readonly isStarving: boolean;
  /** Null without a cap. */
  readonly cap: FrameCap | null;
}

/** The cap of a tenant, and what counts towards it; its own cap counts what it runs in all bands. Null: unlimited. */
export interface FrameCap {
  readonly requests: number;
  readonly maxRequests: number | null;
  readonly tokens: number;
  readonly maxTokens: number | null;
  /** Something of it waits for one of its own requests to end. */
  readonly isReached: boolean;
}

const starvesAfterMs = 5_000;

type Standing = ControllerOverview['standings'][number];

/** Starving ones first, then those that wait longest, then those that have most. */
export function tenantTable(
  { standings, bands, dispatchedPerSecond }: ControllerOverview,
  history: FlowHistory | undefined,
  nameOf: NameOf,
  historyNowMs: number,
): FrameTenant[] {
  const isSomebodyServed = dispatchedPerSecond > 0;
  const rows = standings.map((standing): FrameTenant => {
    const { fairnessId, priority, waiting, inFlight, oldestWaitMs, cap, isAtCap } = standing;
    const rates = history?.rates(fairnessId, priority, historyNowMs);
    const shares = sharesOf(standing, standings, bands, history);
    const hasNothing = isSomebodyServed && (rates?.served ?? 0) === 0;
    const hasLess = hasNothing || (shares !== undefined && shares.received < shares.owed / 2);
    return {
      name: nameOf(fairnessId),
      priority,
      running: inFlight,
      waiting,
      tokens: standing.inFlightTokens,
      servedPerSecond: rates?.served ?? 0,
      droppedPerSecond: rates?.dropped ?? 0,
      receivedShare: shares?.received ?? null,
      owedShare: shares?.owed ?? null,
      oldestWaitMs: oldestWaitMs ?? null,
      isStarving: waiting > 0 && (oldestWaitMs ?? 0) >= starvesAfterMs && hasLess,
      cap: cap === undefined ? null : { ...cap, isReached: isAtCap },
    };
  });
  return rows.sort(
    (a, b) =>
      Number(b.isStarving) - Number(a.isStarving) ||
      (b.oldestWaitMs ?? -1) - (a.oldestWaitMs ?? -1) ||
      b.running - a.running,
  );
}

/** By the policy's own account, or by requests and weights. Flows that are not listed count with weight 1. */
function sharesOf(
  { fairnessId, priority, weight }: Standing,
  standings: readonly Standing[],
  bands: ControllerOverview['bands'],
  history: FlowHistory | undefined,
): { readonly received: number; readonly owed: number } | undefined {
  const kept = bands
    .find((band) => band.priority === priority)
    ?.service?.tenants.find((tenant) => tenant.fairnessId === fairnessId);
  if (kept !== undefined) return { received: kept.receivedShare, owed: kept.owedShare };
  const served = history?.servedInBand(priority) ?? 0;
  if (history === undefined || served === 0) return undefined;
  const listed = standings.filter((other) => other.priority === priority);
  let weights = history.othersServed(priority, new Set(listed.map((other) => other.fairnessId)));
  for (const other of listed) {
    const isActive = other.waiting > 0 || history.served(other.fairnessId, priority) > 0;
    if (isActive) weights += other.weight;
  }
  return { received: history.served(fairnessId, priority) / served, owed: weights === 0 ? 0 : weight / weights };
}
