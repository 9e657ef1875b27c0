/**
 * Quotas of hosted models as a gate: a request goes when every quota of its groups has room for what it will probably
 * consume.
 *
 *     room? ──► dispatched: hold ──► answered: learn ──► reported: correct ──► released: settle
 *
 * Invariant: each hold of a request is settled exactly once, at its release. Figures of one endpoint never reach the
 * group of another.
 */

import { warnOperator } from '../../base/faults/warn-operator.js';
import { Listeners } from '../../base/listeners.js';
import { type Definition, define } from '../../base/policy-definition.js';
import type { QuotaSource } from '../../base/quota-window.js';
import * as s from '../../base/schema/schema.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Constraint, RequestWait } from '../../gate/constraint.js';
import type { QuotaFigures } from '../../gate/reported-figures.js';
import { isPuttingOff, type SeatView, type ServerAnswer } from '../../gate/server-answer.js';
import type { ItemView } from '../../tiers/views.js';
import { GroupTable } from './group-table.js';
import { correctHolds, type Reserved, settleHolds } from './quota.js';
import { QuotaGroup, waitIn, windowsOf } from './quota-group.js';
import type { QuotaDetectorOptions, ResolvedQuotaOptions } from './quota-options.js';
import { groupOfEachEndpoint, quotaOptions, quotaParameters } from './quota-options.js';
import { readRateLimitHeaders } from './rate-limit-headers.js';
import { averageKey, modelOf, RequestEstimate } from './request-estimate.js';

/** A constraint that also tells how much of its budgets is left. */
export interface QuotaDetector extends Constraint {
  /** The share of the tightest quota that is left at an endpoint for a request, 0…1. For pickers. */
  budgetLeft(endpoint: EndpointView, item: ItemView, nowMs: number): number;
  /** Every quota of every group needed so far, and counts of the reports and figures that could not be used. */
  quotas(nowMs: number): QuotaFigures;
  /**
   * From now on the configured `gcra` quotas are taken from `source`, such as `sharedQuotas` of `headgate/redis`;
   * undefined: from this process. What answers taught is forgotten; running requests settle where their units came
   * from. Other quotas stay here.
   */
  drawFrom(source: QuotaSource | undefined): void;
  /** Gives back what was bought ahead, and lets nothing go by it; for a detector that takes over in this turn. */
  end(): void;
}

/** The largest number below 1: a group without room closes for a request, and not for all. */
const justBelowFull = 0.9999999999999999;

/** Characters of a figure that is ignored. */
const longestExample = 100;

/** What one running request holds at one endpoint, from its dispatch to its end. */
interface Reservation extends Reserved {
  readonly endpoint: EndpointView;
  readonly groups: readonly QuotaGroup[];
  readonly dispatchedAtMs: number;
  /** Its holds at the endpoint that it went to before. */
  previous: Reservation | undefined;
}

class Quotas implements QuotaDetector {
  readonly type = 'quota-detector';
  private readonly options: ResolvedQuotaOptions;
  private table: GroupTable;
  private readonly estimate: RequestEstimate;
  private readonly reservations = new WeakMap<SeatView, Reservation>();
  private readonly listeners = new Listeners();
  /** Also heard from one controller to the other, where two share the detector. */
  readonly subscribe: Listeners['subscribe'] = this.listeners.subscribe;
  private readonly counts = { unreported: 0, ignoredReports: 0, ignoredFigures: 0, refusals: 0 };

  constructor(options: ResolvedQuotaOptions) {
    this.options = options;
    this.table = this.tableFrom(undefined);
    this.estimate = new RequestEstimate(options);
  }

  fullness(endpoints: readonly EndpointView[], nowMs: number): number {
    let least = justBelowFull;
    for (const endpoint of endpoints) least = Math.min(least, this.fullnessAt(endpoint, undefined, nowMs));
    return least;
  }

  withRoomFor(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): readonly EndpointView[] {
    const amounts = this.estimate.of(item);
    const model = modelOf(item);
    const hasRoom = (group: QuotaGroup): boolean => group.hasRoom(amounts, nowMs);
    return endpoints.filter((endpoint) => this.table.of(endpoint, model, nowMs).every(hasRoom));
  }

  waitOf(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): RequestWait {
    const amounts = this.estimate.of(item);
    const model = modelOf(item);
    const waits = endpoints.map((endpoint) => waitIn(this.table.of(endpoint, model, nowMs), amounts, nowMs));
    const first = waits.reduce((a, b) => (b.atMs < a.atMs ? b : a));
    const soonestMs = Math.min(...waits.map(({ notBeforeMs }) => notBeforeMs));
    return { ...first, notBeforeMs: this.options.rejectInfeasible ? soonestMs : nowMs };
  }

  dispatched(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const { item } = seat;
    const amounts = this.estimate.of(item);
    const groups = this.table.of(endpoint, modelOf(item), nowMs);
    const holds = groups.flatMap((group) => group.hold(amounts, nowMs));
    const previous = this.reservations.get(seat);
    const facts = { averageKey: averageKey(item), dispatchedAtMs: nowMs, status: undefined, previous };
    this.reservations.set(seat, { endpoint, groups, holds, ...facts });
  }

  answered(_endpoint: EndpointView, nowMs: number, seat: SeatView, answer: ServerAnswer): void {
    const reservation = this.reservations.get(seat);
    if (reservation === undefined) return;
    reservation.status = answer.status;
    const { groups } = reservation;
    // The answer is about the first group that learns. A refusal is about the first of all if none learns.
    const group = groups.find(({ learns }) => learns) ?? groups[0];
    if (group === undefined) return;
    const report = readRateLimitHeaders(answer, this.options.wallClock());
    if (report.ignored > 0) {
      const figure = JSON.stringify(report.firstIgnored?.slice(0, longestExample));
      const what = `a figure that answers told of ${group.name} cannot be right, and is ignored: ${figure}`;
      this.ignore('ignoredFigures', report.ignored, what);
    }
    if (group.learns) group.learn(report.quotas, nowMs, report.share);
    if (isPuttingOff(answer)) {
      this.counts.refusals++;
      const waitMs = report.waitMs ?? QuotaGroup.untilReset(report.quotas);
      group.refused(reservation.dispatchedAtMs, nowMs, waitMs, (doublings) => {
        const { cooldown, maxCooldown, random } = this.options;
        return Math.min(cooldown * 2 ** doublings * (1 + 0.2 * random()), maxCooldown);
      });
    } else {
      group.accepted(reservation.dispatchedAtMs);
    }
    this.listeners.announce();
  }

  reported(_endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const reservation = this.reservations.get(seat);
    const actual = reservation && this.estimate.actual(seat.usage);
    if (reservation === undefined || actual === undefined) return;
    correctHolds(reservation.holds, actual, nowMs);
    this.listeners.announce();
  }

  released(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const last = this.reservations.get(seat);
    if (last === undefined) return;
    if (last.endpoint !== endpoint) {
      // The request was moved: nothing of it went where it had been.
      for (const hold of last.previous?.holds ?? []) hold.quota.settle(hold, 0, nowMs);
      last.previous = undefined;
      return;
    }
    this.reservations.delete(seat);
    this.settle(last, seat, nowMs);
    if (last.status === undefined) for (const group of last.groups) group.unanswered(seat.isUnsent);
    this.listeners.announce();
  }

  budgetLeft(endpoint: EndpointView, item: ItemView, nowMs: number): number {
    return Math.max(1 - this.fullnessAt(endpoint, modelOf(item), nowMs), 0);
  }

  quotas(nowMs: number): QuotaFigures {
    return { quotas: [...this.table.all()].flatMap((group) => group.figures(nowMs)), ...this.counts };
  }

  end(): void {
    for (const group of this.table.all()) group.end();
  }

  drawFrom(source: QuotaSource | undefined): void {
    this.end();
    this.table = this.tableFrom(source);
    this.listeners.announce();
  }

  private tableFrom(source: QuotaSource | undefined): GroupTable {
    const { groups = [groupOfEachEndpoint], travel } = this.options;
    const windows = windowsOf(travel, source, () => this.listeners.announce());
    return new GroupTable(groups, windows);
  }

  private settle(reservation: Reservation, seat: SeatView, nowMs: number): void {
    const actual = seat.isReported ? this.estimate.actual(seat.usage) : undefined;
    if (seat.isReported && actual === undefined) {
      const { promptTokens, completionTokens } = seat.usage;
      const reported = `${promptTokens} and ${completionTokens} tokens`;
      this.ignore('ignoredReports', 1, `a report of usage cannot be right, and the estimate stands: ${reported}`);
    }
    if (settleHolds(reservation, seat, actual, this.estimate, nowMs)) this.counts.unreported++;
  }

  /** Counts what cannot be right, and writes of the first. */
  private ignore(count: 'ignoredFigures' | 'ignoredReports', times: number, what: string): void {
    if (this.counts[count] === 0) warnOperator(`${what}. This is written once; ${count} of the quotas counts all.`);
    this.counts[count] += times;
  }

  private fullnessAt(endpoint: EndpointView, model: string | undefined, nowMs: number): number {
    let most = 0;
    for (const group of this.table.of(endpoint, model, nowMs)) most = Math.max(most, group.fullness(nowMs));
    return most;
  }
}

/**
 * Lets a request go when each quota of its groups has room for it, and reserves that in the same step. It settles by
 * `lease.report`, learns from `lease.answered`, and rests after a 429 or 529. A request that is larger than a limit
 * goes when all of it is free, and leaves a debt. Without options each endpoint is a group, and what its answers tell
 * is its quota. Two controllers may share one detector.
 *
 * A quota holds back single requests: the reading stays below 1, and `holBlocking` says which requests wait behind
 * another. Costs O(endpoints · quotas) for a dispatch. Source: token-throttle (several quotas at once, reserve,
 * settle); GCRA, ITU-T I.371. @throws FlowConfigError
 */
export function quotaDetector<R = unknown>(options: QuotaDetectorOptions<R> = {}): QuotaDetector {
  return new Quotas(s.parse(quotaOptions, options, 'quotaDetector'));
}

export const quotaPlugin: Definition<Constraint> = define('quota-detector', quotaParameters, quotaDetector);
