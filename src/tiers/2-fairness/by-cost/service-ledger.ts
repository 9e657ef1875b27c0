/**
 * Counts how much each fairness ID received, and how much it was owed: every cost is owed, by weight, to those that
 * wait when it is charged.
 *
 *     root ── account 'globex'              level: what one unit of weight among a node's children has been owed so far.
 *        └─ 'acme' ── account 'acme/key'    A cost raises the root's level; those below take their part when they are looked at.
 *
 * A selector keeps a ledger from the first time that somebody asks for its figures; before that it costs nothing.
 * Invariant: the sum of `received` over all accounts is the sum of `owed`, up to rounding; at most `mostAccounts` have
 * names.
 */
import { jainIndex } from '../../../base/jain-index.js';
import type { FlowView } from '../../views.js';
import type { ServiceFigures } from '../service-figures.js';
import type { NamePaths } from './share-tree.js';

const mostAccounts = 1000;
const minuteMs = 60_000;
/** Whole minutes that the window reaches back, beside the one that has begun. */
const minutes = 4;

/** A fairness ID, or one of the names above it. */
class Node {
  weight = 1;
  /** Its part of its parent's `activeWeight`: 0 while nothing waits below it. */
  share = 0;
  activeWeight = 0;
  /** Flows or children that are active. */
  active = 0;
  level = 0;
  /** The parent's level up to which it was given its part; without a meaning while `share` is 0. */
  settledAt = 0;
  /** Children and accounts right below it. */
  size = 0;
  children: Map<string, Node> | undefined = undefined;
  readonly name: string;
  readonly parent: Node | undefined;

  constructor(name: string, parent: Node | undefined) {
    this.name = name;
    this.parent = parent;
    if (parent !== undefined) parent.size++;
  }
}

/** The cost that one fairness ID received, and its state at the beginning of each of the last minutes. */
class Account extends Node {
  received = 0;
  owed = 0;
  settled = 0;
  readonly receivedBefore: Float64Array = new Float64Array(minutes + 1);
  readonly owedBefore: Float64Array = new Float64Array(minutes + 1);
}

const oneLevel: NamePaths = { pathOf: (fairnessId) => [fairnessId], weightOf: () => 1 };

export class ServiceLedger {
  private readonly root = new Node('', undefined);
  private readonly accounts = new Map<string, Account>();
  /** All fairness IDs that came while `accounts` was full; its share is the sum of theirs. */
  private readonly others = new Account('', this.root);
  /** Active flows whose account is `others`, with their weights. */
  private readonly strays = new Map<FlowView, number>();
  private readonly startedAtMs: number;
  private minute: number;
  private readonly paths: NamePaths;

  constructor(nowMs: number, paths: NamePaths = oneLevel) {
    this.startedAtMs = nowMs;
    this.minute = Math.floor(nowMs / minuteMs);
    this.paths = paths;
  }

  /** Something of the flow can be picked. */
  activated(flow: FlowView, weight: number): void {
    const account = this.accountOf(flow.fairnessId);
    if (account === this.others) {
      this.strays.set(flow, weight);
      this.addUnnamed(weight);
      return;
    }
    if (account.active === 0) account.weight = weight;
    this.wake(account);
  }

  /** Nothing of the flow can be picked any more. */
  deactivated(flow: FlowView): void {
    const stray = this.strays.get(flow);
    if (stray !== undefined) {
      this.strays.delete(flow);
      this.addUnnamed(-stray);
      return;
    }
    const account = this.accounts.get(flow.fairnessId);
    if (account !== undefined && account.active > 0) this.rest(account);
  }

  /** A request goes; its cost is owed to all fairness IDs that wait; without `hasWaited` to its own alone. */
  dispatched(fairnessId: string, amount: number, nowMs: number, hasWaited: boolean): void {
    this.tick(nowMs);
    const account = this.accountOf(fairnessId);
    account.received += amount;
    if (!hasWaited) {
      account.owed += amount;
      return;
    }
    const wasLast = account.active === 0 && account !== this.others;
    if (wasLast) this.wake(account);
    this.divide(account, amount);
    if (wasLast) this.rest(account);
  }

  /** Corrects the charge of a running request; `amount` may be negative. */
  corrected(fairnessId: string, amount: number, nowMs: number): void {
    if (amount === 0) return;
    this.tick(nowMs);
    const account = this.accountOf(fairnessId);
    account.received += amount;
    this.divide(account, amount);
  }

  /** A request ended that had cost this much in all; `amount` corrects what it was charged. */
  ended(fairnessId: string, amount: number, cost: number, nowMs: number): void {
    this.corrected(fairnessId, amount, nowMs);
    this.accountOf(fairnessId).settled += cost;
  }

  /** O(accounts). */
  figures(nowMs: number): ServiceFigures {
    this.tick(nowMs);
    const oldest = this.minute - minutes;
    const slot = slotOf(oldest);
    const view = (account: Account): ServiceFigures['others'] => {
      this.settleUp(account);
      const received = account.received - (account.receivedBefore[slot] as number);
      const owed = account.owed - (account.owedBefore[slot] as number);
      return { settled: account.settled, received, owed };
    };
    const flows = Array.from(this.accounts, ([fairnessId, account]) => ({ fairnessId, ...view(account) }));
    const ratios = flows.filter(({ owed }) => owed > 0).map(({ received, owed }) => Math.max(received, 0) / owed);
    const windowMs = nowMs - Math.max(this.startedAtMs, oldest * minuteMs);
    return { windowMs, fairnessIndex: jainIndex(ratios), flows, others: view(this.others) };
  }

  private accountOf(fairnessId: string): Account {
    const known = this.accounts.get(fairnessId);
    if (known !== undefined) return known;
    if (this.accounts.size >= mostAccounts) return this.others;
    const path = this.paths.pathOf(fairnessId);
    let parent = this.root;
    for (let level = 1; level < path.length; level++) parent = this.childOf(parent, path.slice(0, level));
    const account = new Account(fairnessId, parent);
    this.accounts.set(fairnessId, account);
    return account;
  }

  private childOf(parent: Node, path: readonly string[]): Node {
    const name = path[path.length - 1] as string;
    parent.children ??= new Map();
    const known = parent.children.get(name);
    if (known !== undefined) return known;
    const child = new Node(name, parent);
    child.weight = this.paths.weightOf(path);
    parent.children.set(name, child);
    return child;
  }

  private divide(account: Account, amount: number): void {
    if (this.root.active === 0) account.owed += amount;
    else this.root.level += amount / this.root.activeWeight;
  }

  /** Credits the node, and those above it, with what they were owed since the last time. O(levels). */
  private settleUp(node: Node): void {
    const { parent } = node;
    if (parent === undefined) return;
    this.settleUp(parent);
    const due = node.share * (parent.level - node.settledAt);
    node.settledAt = parent.level;
    if (due === 0) return;
    if (node instanceof Account) node.owed += due;
    else node.level += due / node.activeWeight;
  }

  /** One more flow or child of the node is active. */
  private wake(node: Node): void {
    this.settleUp(node);
    node.active++;
    const { parent } = node;
    if (node.active > 1 || parent === undefined) return;
    node.share = node.weight;
    parent.activeWeight += node.share;
    this.wake(parent);
  }

  /** One fewer. */
  private rest(node: Node): void {
    this.settleUp(node);
    node.active--;
    // Sums of fractions leave a remainder.
    if (node.active === 0) node.activeWeight = 0;
    const { parent } = node;
    if (node.active > 0 || parent === undefined) return;
    parent.activeWeight -= node.share;
    node.share = 0;
    this.rest(parent);
  }

  private addUnnamed(weight: number): void {
    const { others, root } = this;
    this.settleUp(others);
    others.share = this.strays.size === 0 ? 0 : others.share + weight;
    root.activeWeight += weight;
    if (weight > 0) this.wake(root);
    else this.rest(root);
  }

  /** When a minute begins, notes what accounts have, and forgets those with nothing in the window. O(accounts) then. */
  private tick(nowMs: number): void {
    if (nowMs < (this.minute + 1) * minuteMs) return;
    const now = Math.floor(nowMs / minuteMs);
    const first = Math.max(this.minute + 1, now - minutes);
    for (const account of [this.others, ...this.accounts.values()]) {
      this.settleUp(account);
      for (let minute = first; minute <= now; minute++) {
        account.receivedBefore[slotOf(minute)] = account.received;
        account.owedBefore[slotOf(minute)] = account.owed;
      }
    }
    this.minute = now;
    const slot = slotOf(now - minutes);
    for (const [fairnessId, account] of this.accounts) {
      const isSilent = account.received === account.receivedBefore[slot] && account.owed === account.owedBefore[slot];
      if (account.active === 0 && isSilent) this.forget(fairnessId, account);
    }
  }

  private forget(fairnessId: string, account: Account): void {
    this.accounts.delete(fairnessId);
    let { parent } = account as Node;
    while (parent !== undefined && --parent.size === 0) {
      parent.parent?.children?.delete(parent.name);
      parent = parent.parent;
    }
  }
}

function slotOf(minute: number): number {
  return ((minute % (minutes + 1)) + minutes + 1) % (minutes + 1);
}
