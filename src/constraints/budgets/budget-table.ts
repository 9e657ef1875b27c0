/** The budgets of senders, while used. O(budgets) for a request; no step looks at all senders, who may be a million. */
import { GcraWindow } from '../../base/gcra-window.js';
import { put } from '../../base/put.js';
import type { QuotaFigure } from '../../gate/reported-figures.js';
import { FixedWindow } from '../quotas/fixed-window.js';
import { type Hold, Quota } from '../quotas/quota.js';
import { QuotaGroup } from '../quotas/quota-group.js';
import type { ResolvedGroup } from '../quotas/quota-options.js';
import type { Amounts } from '../quotas/request-estimate.js';
import { isCalendarSpan, type ResolvedBudget, type ResolvedLimit } from './budget-options.js';
import { calendarSpans, leftOf } from './calendar.js';

/** From this many on, unused ones are removed, because the IDs of senders may change for ever. */
const manyGroups = 10_000;
/** Groups that are looked at for each new one: so the unused are no more than the used. */
const lookedAt = 2;
/** Pages and exporters are told of so many groups. */
const mostShown = 100;
/** Longer paths count at so many levels, and as a whole. */
const mostLevels = 8;

/** The key of a limit, what is used of it, and when all of that is free again, ms of the Unix epoch. */
export type SavedBudget = readonly [key: string, used: number, freeAtMs: number];

const noQuotas: ResolvedGroup = { by: 'pool', perModel: false, learn: false, quotas: [] };

/** One budget of one owner. Nothing teaches it, and it never rests: it is no server's. */
export class BudgetGroup extends QuotaGroup {
  readonly owner: string;
  /** One for each limit: the same after a restart, and in every process. */
  readonly keys: readonly string[];
  private readonly limits: readonly ResolvedLimit[];
  private readonly label: string;
  private readonly wallClock: () => number;

  constructor(owner: string, { name, by, limits }: ResolvedBudget, wallClock: () => number) {
    // Clients read the name, which is without the owner.
    super(name === undefined ? 'its budget' : `its budget ${name}`, noQuotas, () => new GcraWindow(1, 1, 1));
    this.owner = owner;
    this.limits = limits;
    this.wallClock = wallClock;
    this.label = `${name ?? (by === 'path' ? 'path' : 'tenant')} ${owner}`;
    this.keys = limits.map(({ unit, per, zone = 'UTC' }) => `${this.label} ${unit} ${per} ${zone}`);
    for (const { unit, limit, per } of limits) {
      const perMs = isCalendarSpan(per) ? calendarSpans[per] : per;
      const window = isCalendarSpan(per) ? new FixedWindow(limit, perMs) : new GcraWindow(limit, perMs, limit);
      this.quotas.push(new Quota(unit, window, perMs));
    }
  }

  override hold(amounts: Amounts, nowMs: number): Hold[] {
    const holds = super.hold(amounts, nowMs);
    for (const [index, { window }] of this.quotas.entries()) {
      const { per, zone = 'UTC' } = this.limits[index] ?? {};
      if (isCalendarSpan(per) && window.isGuessing) window.endsAt?.(nowMs + leftOf(per, zone, this.wallClock()), nowMs);
    }
    return holds;
  }

  override figures(nowMs: number): QuotaFigure[] {
    return super.figures(nowMs).map((figure, index) => {
      const per = this.limits[index]?.per;
      return { ...figure, group: this.label, owner: this.owner, ...(isCalendarSpan(per) && { calendar: per }) };
    });
  }
}

export class BudgetTable {
  private readonly budgets: readonly ResolvedBudget[];
  private readonly wallClock: () => number;
  private readonly groups = new Map<string, BudgetGroup>();
  /** The next of `groups` to be looked at. */
  private hand = this.groups.entries();
  /** What was saved, until it is needed again. */
  private readonly known = new Map<string, SavedBudget>();

  constructor(budgets: readonly ResolvedBudget[], wallClock: () => number) {
    this.budgets = budgets;
    this.wallClock = wallClock;
  }

  restore(saved: Iterable<SavedBudget>, nowMs: number): void {
    // Of one that was saved twice, the one of which more is used.
    for (const each of saved) if (!((this.known.get(each[0])?.[1] ?? 0) > each[1])) this.known.set(each[0], each);
    for (const group of this.groups.values()) this.recall(group, nowMs);
  }

  /** Figures of the groups of which most is used, among the first 10,000. */
  mostUsed(nowMs: number): readonly QuotaFigure[] {
    const seen: { group: BudgetGroup; share: number }[] = [];
    for (const group of this.groups.values()) {
      seen.push({ group, share: group.fullness(nowMs) });
      if (seen.length === manyGroups) break;
    }
    seen.sort((a, b) => b.share - a.share);
    return seen.slice(0, mostShown).flatMap(({ group }) => group.figures(nowMs));
  }

  /** What is in use, and what was saved of those whom nobody has needed again. */
  *saved(nowMs: number): Generator<SavedBudget, void> {
    const wallMs = this.wallClock();
    for (const { keys, quotas } of this.groups.values())
      for (const [index, { window }] of quotas.entries())
        if (window.used(nowMs) > 0)
          yield [keys[index] ?? '', window.used(nowMs), Math.ceil(window.freeAtMs(nowMs) - nowMs + wallMs)];
    for (const each of this.known.values()) {
      if (each[2] > wallMs) yield each;
      else this.known.delete(each[0]);
    }
  }

  /** The budgets that a request of a sender takes from. They are in use, or to be used before the next call. */
  of(fairnessId: string, nowMs: number): readonly BudgetGroup[] {
    return this.budgets.flatMap((budget, index) => {
      const owners = budget.by === 'flow' ? [fairnessId] : levelsOf(fairnessId);
      return owners.flatMap((owner) => {
        const key = `${index} ${owner}`;
        const known = this.groups.get(key);
        if (known !== undefined) return known;
        return budget.is?.(owner) === false ? [] : this.add(key, new BudgetGroup(owner, budget, this.wallClock), nowMs);
      });
    });
  }

  private add(key: string, group: BudgetGroup, nowMs: number): BudgetGroup {
    for (let looks = this.groups.size < manyGroups ? 0 : lookedAt; looks > 0; looks--) {
      const { value } = this.hand.next();
      if (value === undefined) this.hand = this.groups.entries();
      else if (value[1].isAsNew(nowMs)) this.groups.delete(value[0]);
    }
    if (this.known.size > 0) this.recall(group, nowMs);
    return put(this.groups, key, group);
  }

  /** The limits of a group begin with what is known of them. Each is taken over once. */
  private recall({ keys, quotas }: BudgetGroup, nowMs: number): void {
    for (const [index, { window }] of quotas.entries()) {
      const [key = '', used = 0, freeAtMs = 0] = this.known.get(keys[index] ?? '') ?? [];
      const leftMs = freeAtMs - this.wallClock();
      this.known.delete(key);
      if (!(leftMs > 0)) continue;
      window.take(window.kind === 'gcra' ? Math.min(used, (leftMs * window.limit) / window.perMs) : used, nowMs);
      window.endsAt?.(nowMs + leftMs, nowMs);
    }
  }
}

/** The beginnings of a path from the top: of a long one the first levels, and the whole. */
function levelsOf(path: string): readonly string[] {
  const names = path.split('/', mostLevels);
  const levels = names.map((_, level) => names.slice(0, level + 1).join('/'));
  return levels[levels.length - 1] === path ? levels : [...levels, path];
}
