/**
 * `budgets()`, with the part that parks flows of senders without budget: others pass, and walks do not look at them.
 *
 *     parked ── the instant at which its budget has room, or something is given back ──► its first request is looked at
 *
 * Invariant: an owner for whom a flow is parked is in `queue` for an instant no later than its budget has room.
 */
import TinyQueue from 'tinyqueue';
import { put } from '../base/put.js';
import * as s from '../base/schema/schema.js';
import { BudgetLimit, type Budgets } from '../constraints/budgets/budget-limit.js';
import { type BudgetsOptions, budgetOptions } from '../constraints/budgets/budget-options.js';
import { isTooLate } from '../gate/constraint.js';
import type { Flow } from '../tiers/flow.js';
import type { Reason } from '../tiers/flows-aside.js';
import type { Part, PartHost, PartMaker } from './engine/parts.js';

/** The flows that wait for budgets of one owner. */
class Account implements Reason {
  readonly kind = 'parked';
  readonly flows: Set<Flow> = new Set();
  /** The earliest instant that its owner is in the queue for. Written by budgetParking. */
  dueAtMs = Infinity;
}

function budgetParking(engine: PartHost, budgets: BudgetLimit): Part {
  const { backlog, gate, operation, parking } = engine;
  const accounts = new Map<string, Account>();
  const queue = new TinyQueue<{ owner: string; atMs: number }>([], (a, b) => a.atMs - b.atMs);
  /** Owners whose flows the next walk looks at. */
  const due = new Set<string>();
  function note(owner: string): boolean {
    if (!accounts.has(owner)) return false;
    due.add(owner);
    return true;
  }
  hearWeakly(budgets, note);
  return {
    /** What it takes may leave others of its owners no hope. */
    seated({ item }) {
      if (accounts.size > 0)
        for (const owner of budgets.ownersOf(item.fairnessId, operation.nowMs)) if (note(owner)) operation.want();
    },
    obstacle(item) {
      try {
        const wait = budgets.obstacle(item, operation.nowMs);
        // One that cannot have room in time takes its turn, in which it is dropped.
        if (wait === undefined || isTooLate(wait, backlog.expiry.deadlineOf(item))) return undefined;
        const { owner, atMs } = wait;
        const account = accounts.get(owner) ?? put(accounts, owner, new Account());
        if (atMs < account.dueAtMs) {
          account.dueAtMs = atMs;
          queue.push({ owner, atMs });
          gate.constraints.lookAt(atMs);
        }
        return account;
      } catch {
        // What fails is asked as a constraint next, which reports it.
        return undefined;
      }
    },
    walkBegins(nowMs) {
      for (let next = queue.peek(); next !== undefined; next = queue.peek()) {
        const account = accounts.get(next.owner);
        if (next.atMs > nowMs && account !== undefined && account.flows.size > 0) {
          gate.constraints.lookAt(next.atMs);
          break;
        }
        queue.pop();
        if (account !== undefined && next.atMs === account.dueAtMs) account.dueAtMs = Infinity;
        due.add(next.owner);
      }
      const owners = [...due];
      due.clear();
      for (const owner of owners) {
        const account = accounts.get(owner);
        for (const flow of [...(account?.flows ?? [])]) parking.review(flow);
        if (account?.flows.size === 0) accounts.delete(owner);
      }
    },
  };
}

/** Budgets outlive controllers: `hear` ends with the controller, which nothing here keeps. */
function hearWeakly({ owners }: BudgetLimit, hear: (owner: string) => unknown): void {
  const heard = new WeakRef(hear);
  const stop = owners.subscribe((owner) => {
    const living = heard.deref();
    if (living === undefined) stop();
    else living(owner);
  });
}

class ParkingBudgets extends BudgetLimit implements PartMaker {
  makePart(engine: PartHost): Part {
    return budgetParking(engine, this);
  }
}

/**
 * What senders may spend, by fairness ID and by level of its path: requests, tokens or money, per second to calendar
 * month. A request waits while its budget refills within its time to live, and delays nobody else; otherwise it is
 * dropped at once, with the time at which there will be room. Its estimate is held at its dispatch, and settled at its
 * end. One that is larger than a limit goes when all of it is free. O(budgets) for each request.
 * @throws FlowConfigError
 */
export function budgets<R = unknown>(options: BudgetsOptions<R>): Budgets {
  return new ParkingBudgets(s.parse(budgetOptions, options, 'budgets'));
}
