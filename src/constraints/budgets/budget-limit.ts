/**
 * Budgets of senders as a constraint: a request goes when each budget above it has room for what it will probably
 * consume.
 *
 *     room? ──► dispatched: hold ──► reported: correct ──► released: settle
 *
 * Invariant: each hold of a request is settled exactly once, at its release, wherever it went. A sender without budget
 * delays no other: its flows are parked, see `makePart` of `budgets()`.
 */
import { warnOperator } from '../../base/faults/warn-operator.js';
import { Listeners } from '../../base/listeners.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Constraint, RequestWait } from '../../gate/constraint.js';
import type { QuotaFigure, QuotaFigures } from '../../gate/reported-figures.js';
import type { SeatView, ServerAnswer } from '../../gate/server-answer.js';
import type { ItemView } from '../../tiers/views.js';
import { correctHolds, type Reserved, settleHolds } from '../quotas/quota.js';
import { waitIn } from '../quotas/quota-group.js';
import { type Amounts, averageKey, modelOf, RequestEstimate } from '../quotas/request-estimate.js';
import type { ResolvedBudgets } from './budget-options.js';
import { type BudgetGroup, BudgetTable, type SavedBudget } from './budget-table.js';
import { PriceList } from './price-list.js';

/** A constraint that also tells what senders have left. */
export interface Budgets extends Constraint {
  /** What a sender may spend: its budgets, and those of the paths above it. */
  budgetsOf(fairnessId: string, nowMs: number): readonly QuotaFigure[];
  /** What is used of every limit, as JSON can hold it; of requests that run, by their estimates. */
  saved(nowMs: number): Iterable<SavedBudget>;
  /** Goes on with what was saved, also by another process. Before the first request. */
  restore(saved: Iterable<SavedBudget>, nowMs: number): void;
}

/** What one running request holds. */
interface Reservation extends Reserved {
  readonly endpoint: EndpointView;
  readonly groups: readonly BudgetGroup[];
  readonly model: string;
  /** As it was estimated. */
  readonly cost: number;
}

export class BudgetLimit implements Budgets {
  readonly type = 'budgets';
  private readonly estimate: RequestEstimate;
  private readonly prices: PriceList | undefined;
  private readonly table: BudgetTable;
  private readonly reservations = new WeakMap<SeatView, Reservation>();
  private readonly listeners = new Listeners();
  readonly subscribe: Listeners['subscribe'] = this.listeners.subscribe;
  /** Hears before the others when budgets of an owner may have room again. */
  readonly owners: Listeners<[owner: string]> = new Listeners();
  private isWarned = false;
  private unreported = 0;

  constructor({ budgets, prices, estimate, wallClock }: ResolvedBudgets) {
    this.estimate = new RequestEstimate({ estimate, output: 'max-tokens', defaultOutputTokens: 1024 });
    this.prices = prices && new PriceList(prices);
    this.table = new BudgetTable(budgets, wallClock);
  }

  withRoomFor(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): readonly EndpointView[] {
    return this.obstacle(item, nowMs) === undefined ? endpoints : [];
  }

  waitOf(_endpoints: readonly EndpointView[], item: ItemView, nowMs: number): RequestWait {
    return this.obstacle(item, nowMs) ?? { atMs: nowMs, notBeforeMs: nowMs, missing: '' };
  }

  /** What the request waits for, and the first owner whose budgets have no room for it; undefined while all have. */
  obstacle(item: ItemView, nowMs: number): (RequestWait & { readonly owner: string }) | undefined {
    const amounts = this.amountsOf(item);
    const groups = this.table.of(item.fairnessId, nowMs);
    let owner: string | undefined;
    for (const group of groups) if (!group.hasRoom(amounts, nowMs)) owner ??= group.owner;
    return owner === undefined ? undefined : { ...waitIn(groups, amounts, nowMs), owner, isBudget: true };
  }

  dispatched(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const { item } = seat;
    const known = this.reservations.get(seat);
    // It was moved: the same request goes elsewhere.
    if (known !== undefined) return void Object.assign(known, { endpoint });
    const amounts = this.amountsOf(item);
    const model = modelOf(item);
    const groups = this.table.of(item.fairnessId, nowMs);
    const holds = groups.flatMap((group) => group.hold(amounts, nowMs));
    const facts = { averageKey: averageKey(item), model, cost: amounts.cost, status: undefined };
    this.reservations.set(seat, { endpoint, groups, holds, ...facts });
    if (this.isWarned || this.prices?.has(model) !== false || !holds.some(({ quota }) => quota.unit === 'cost')) return;
    this.isWarned = true;
    const what = `the model ${JSON.stringify(model.slice(0, 100))} has no price, and costs as the dearest`;
    warnOperator(`${what}. This is written of the first such model.`);
  }

  answered(_endpoint: EndpointView, _nowMs: number, seat: SeatView, { status }: ServerAnswer): void {
    const reservation = this.reservations.get(seat);
    if (reservation !== undefined) reservation.status = status;
  }

  reported(_endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const reservation = this.reservations.get(seat);
    const actual = reservation && this.actual(reservation, seat);
    if (reservation === undefined || actual === undefined) return;
    correctHolds(reservation.holds, actual, nowMs);
    this.announce(reservation);
  }

  released(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const reservation = this.reservations.get(seat);
    if (reservation?.endpoint !== endpoint) return;
    this.reservations.delete(seat);
    const actual = seat.isReported ? this.actual(reservation, seat) : undefined;
    if (settleHolds(reservation, seat, actual, this.estimate, nowMs)) this.unreported++;
    this.announce(reservation);
  }

  ownersOf(fairnessId: string, nowMs: number): readonly string[] {
    return this.table.of(fairnessId, nowMs).map(({ owner }) => owner);
  }

  budgetsOf(fairnessId: string, nowMs: number): readonly QuotaFigure[] {
    return this.table.of(fairnessId, nowMs).flatMap((group) => group.figures(nowMs));
  }

  /** The budgets of which most is used. */
  quotas(nowMs: number): QuotaFigures {
    const { unreported } = this;
    return { quotas: this.table.mostUsed(nowMs), unreported, ignoredReports: 0, ignoredFigures: 0, refusals: 0 };
  }

  saved(nowMs: number): Iterable<SavedBudget> {
    return this.table.saved(nowMs);
  }

  restore(saved: Iterable<SavedBudget>, nowMs: number): void {
    this.table.restore(saved, nowMs);
  }

  private amountsOf(item: ItemView): Amounts {
    const amounts = this.estimate.of(item);
    // The host's own estimate of a cost wins.
    if (amounts.cost > 0 || this.prices === undefined) return amounts;
    return { ...amounts, cost: this.prices.costOf(modelOf(item), amounts) };
  }

  /** Undefined for figures that cannot be right. Without prices only the host's estimate knows the cost. */
  private actual({ model, cost }: Reservation, { usage }: SeatView): Amounts | undefined {
    const actual = this.estimate.actual(usage);
    return actual && { ...actual, cost: this.prices?.costOf(model, actual, usage.cachedPromptTokens) ?? cost };
  }

  private announce({ groups }: Reservation): void {
    for (const { owner } of groups) this.owners.announce(owner);
    this.listeners.announce();
  }
}
