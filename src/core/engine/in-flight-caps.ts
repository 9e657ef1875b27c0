/**
 * Caps on how many requests of one fairness ID run at a time. Says which fairness ID is at its cap, and which flows are
 * unparked when one of its requests ends.
 *
 *     fairness ID ── with a cap of its own ──► one account over all bands
 *                 └─ otherwise ──────────────► one account in each band that has `maxInFlightPerFlow`
 *
 * Both accounts count everything that runs, so that a cap which is set, lifted or changed later counts requests that
 * run already. A request larger than the cap in tokens runs while nothing else of its fairness ID does: it must not
 * wait for ever. Invariant: an account exists exactly while something of it runs; a flow is parked in an account only
 * while that has no room for its head.
 */
import { put } from '../../base/put.js';
import type { Flow, InFlightCap } from '../../tiers/flow.js';
import type { Reason } from '../../tiers/flows-aside.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { ItemView } from '../../tiers/views.js';
import type { ResolvedOptions } from '../options.js';

/** The requests and tokens that one fairness ID runs, in one band or in all. */
export class CapAccount implements Reason {
  readonly kind = 'parked';
  requests = 0;
  tokens = 0;
  readonly flows: Set<Flow> = new Set();
}

type Accounts = Map<string, CapAccount>;
type Capped = Pick<ItemView, 'fairnessId' | 'priority' | 'tokens'>;

/** A cap and what counts towards it. */
export interface CapState {
  readonly cap: InFlightCap;
  readonly account: CapAccount | undefined;
}

/** True when some fairness ID may have a cap. */
export function hasCaps({ flows, bands, defaultBand, defaultNegativeBand }: ResolvedOptions): boolean {
  const all = [...bands, defaultBand, defaultNegativeBand];
  return flows.mayCap || all.some(({ maxInFlightPerFlow }) => maxInFlightPerFlow !== undefined);
}

export class InFlightCaps {
  private readonly ofAllBands: Accounts = new Map();
  private readonly ofBands = new Map<number, Accounts>();
  private flows: ResolvedOptions['flows'];

  /** `running`: what is in flight already. O(in flight). */
  constructor({ flows }: ResolvedOptions, running: Iterable<Capped>) {
    this.flows = flows;
    for (const lease of running) this.taken(lease);
  }

  /** The account that has no room for the request; undefined when it may go. O(1). */
  obstacle(item: ItemView, band: PriorityBand): CapAccount | undefined {
    const state = this.stateOf(item, band);
    if (state?.account === undefined) return undefined;
    const { requests, tokens } = state.account;
    return requests < state.cap.maxRequests && tokens + item.tokens <= state.cap.maxTokens ? undefined : state.account;
  }

  /** The cap that applies to the request; undefined when there is none. */
  stateOf({ fairnessId }: Pick<ItemView, 'fairnessId'>, band: PriorityBand): CapState | undefined {
    const own = this.flows.get(fairnessId)?.maxInFlight;
    if (own !== undefined) return { cap: own, account: this.ofAllBands.get(fairnessId) };
    const cap = band.settings.maxInFlightPerFlow;
    return cap && { cap, account: this.ofBands.get(band.priority)?.get(fairnessId) };
  }

  /** A request was dispatched. */
  taken({ fairnessId, priority, tokens }: Capped): void {
    book(this.ofAllBands, fairnessId, tokens);
    book(this.ofBands.get(priority) ?? put(this.ofBands, priority, new Map()), fairnessId, tokens);
  }

  /** Counts the end of a request; returns the flows that were parked until then. They may still be at their cap. */
  givenBack({ fairnessId, priority, tokens }: Capped): readonly Flow[] {
    const ofBand = this.ofBands.get(priority);
    const parked = unbook(this.ofAllBands, fairnessId, tokens);
    const inBand = ofBand === undefined ? none : unbook(ofBand, fairnessId, tokens);
    if (ofBand?.size === 0) this.ofBands.delete(priority);
    return inBand.length === 0 ? parked : [...parked, ...inBand];
  }

  /** The flows of one fairness ID that are parked. O(bands). */
  parkedOf(fairnessId: string): Flow[] {
    return [this.ofAllBands, ...this.ofBands.values()].flatMap((all) => [...(all.get(fairnessId)?.flows ?? [])]);
  }
}

const none: readonly Flow[] = [];

function book(accounts: Accounts, fairnessId: string, tokens: number): void {
  const account = accounts.get(fairnessId) ?? put(accounts, fairnessId, new CapAccount());
  account.requests++;
  account.tokens += tokens;
}

function unbook(accounts: Accounts, fairnessId: string, tokens: number): readonly Flow[] {
  const account = accounts.get(fairnessId);
  if (account === undefined) return none;
  account.requests--;
  account.tokens -= tokens;
  if (account.requests === 0) accounts.delete(fairnessId);
  return account.flows.size === 0 ? none : [...account.flows];
}
