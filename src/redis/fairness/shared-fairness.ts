/**
 * Fair by cost over all replicas: once a second, each charges its flows with what they received in the others.
 *
 *     counter here = what was charged here + what others have told since this replica knows the flow
 *
 * Invariant: no request waits for an exchange; without the store each replica is fair by itself. A cost is told once.
 */
import type { output } from 'zod/v4/core';
import { letProcessEnd } from '../../base/clock.js';
import * as s from '../../base/schema/schema.js';
import { type Duration, FlowConfigError, type FlowFairnessPolicy } from '../../index.js';
import type { BandView, FlowSelector, FlowView } from '../../types/index.js';
import { fairnessKeys, hashedName } from '../store/keys.js';
import { type RedisClient, storeSchema } from '../store/redis-store.js';
import type { LinkFigures, Store } from '../store/store.js';
import { numbersOf, StoreLink } from '../store/store-link.js';
import { keyName, type StoreOptions, storeShape } from '../store/store-options.js';
import { exchangeScript } from './exchange-script.js';

/** Among which replicas, and how often, the counts of a policy are exchanged. */
export interface SharedFairnessOptions extends StoreOptions {
  /** Replicas with this name exchange what their flows received. */
  readonly name: string;
  /** From exchange to exchange, give or take a tenth. @default '1s' */
  readonly interval?: Duration | undefined;
  /** Whether the store sees hashes of fairness IDs. @default false */
  readonly hashKeys?: boolean | undefined;
  /** The most waiting flows of one exchange. An integer from 1 up. @default 2000 */
  readonly maxFlows?: number | undefined;
}

/** The policy, and its connection to the other replicas. */
export interface SharedFairness extends FlowFairnessPolicy {
  /** Exchanges that were answered. */
  readonly exchanges: number;
  readonly store: LinkFigures;
  close(): void;
}

const optionsSchema = s.object({
  ...storeShape,
  name: keyName,
  interval: s.optional(s.positiveDuration('1s'), 1_000),
  hashKeys: s.optional(s.flag(), false),
  maxFlows: s.optional(s.positiveInteger(), 2_000),
});

/** The account of one flow with the other replicas, in thousandths of cost. */
interface Account {
  /** The cost that the flow received here, and that the others were told of. */
  told: number;
  /** The cost that all replicas had received by the last answer; undefined before the first. */
  total: number | undefined;
}

type Told = Readonly<{ flow: FlowView; selector: FlowSelector; account: Account; field: string; delta: number }>;

type Settings = output<typeof optionsSchema>;
type Accounts = WeakMap<FlowView, Account>;
type Bands = Map<number, { readonly band: BandView; readonly selector: FlowSelector }>;

/** A flow of which no replica has told for this many intervals is removed. */
const rememberedIntervals = 10;

/**
 * Makes a policy that shares by cost, such as `virtualTokenCounter()`, fair over all replicas, for tenants whose
 * requests come to some only; where every tenant comes to all, replicas fair by themselves are fairer than this. After
 * an exchange the shares of two flows differ by what an interval serves, at most.
 * @throws FlowConfigError for a policy that keeps no account of what flows receive
 * @example
 * const fairness = sharedFairness(client, virtualTokenCounter(), { name: 'chat' });
 * const flow = new FlowController({ saturationDetector, defaultBand: { fairness } });
 */
export function sharedFairness(
  client: RedisClient | Store,
  policy: FlowFairnessPolicy,
  options: SharedFairnessOptions,
): SharedFairness {
  const given = s.parse(storeSchema, client, 'sharedFairness: client');
  const settings = s.parse(optionsSchema, options, 'sharedFairness');
  const { clock, random, name, interval } = settings;
  const link = new StoreLink(given, settings, `fairness "${name}"`);
  const bands: Bands = new Map();
  const accounts: Accounts = new WeakMap();
  let exchanges = 0;
  let isClosed = false;
  let timer: unknown;

  function later(): void {
    if (isClosed) return;
    const exchangeOnce = (): void => void exchange().then(later, later);
    timer = letProcessEnd(clock.setTimeout(exchangeOnce, interval * (0.9 + 0.2 * random())));
  }

  async function exchange(): Promise<void> {
    const told = waitingFlows(bands, accounts, settings);
    if (told.length === 0) return;
    const head = [rememberedIntervals * interval, told.length].map(String);
    const args = told.flatMap(({ field, delta }) => [field, String(delta)]);
    const read = (reply: unknown): number[] | undefined => numbersOf(reply, told.length);
    const totals = await link.ask(exchangeScript, fairnessKeys(settings), [...head, ...args], read);
    exchanges++;
    for (const [index, { flow, selector, account, delta }] of told.entries()) {
      const total = totals[index] ?? 0;
      // A store that knows less than before has begun anew.
      const elsewhere = account.total === undefined ? 0 : total - account.total - delta;
      account.told += delta;
      account.total = total;
      if (elsewhere > 0 && flow.waiting > 0) selector.charge?.(flow, elsewhere / 1_000);
    }
  }

  later();
  return {
    type: policy.type,
    get exchanges() {
      return exchanges;
    },
    get fairnessIndex() {
      return policy.fairnessIndex as number;
    },
    get store() {
      return link.figures;
    },
    createSelector(band) {
      const selector = policy.createSelector(band);
      if (selector.received === undefined || selector.charge === undefined) {
        const expected = 'a policy that shares by cost, such as virtualTokenCounter()';
        throw new FlowConfigError('sharedFairness', [{ path: 'policy', expected, got: policy.type }]);
      }
      bands.set(band.priority, { band, selector });
      return selector;
    },
    close() {
      isClosed = true;
      clock.clearTimeout(timer);
      link.close();
    },
  };
}

function waitingFlows(bands: Bands, accounts: Accounts, { maxFlows, hashKeys }: Settings): Told[] {
  const told: Told[] = [];
  for (const [priority, { band, selector }] of bands) {
    for (const flow of band.activeFlows()) {
      if (told.length >= maxFlows) return told;
      const received = Math.round((selector.received?.(flow) ?? 0) * 1_000);
      const account = accounts.get(flow) ?? { told: received, total: undefined };
      accounts.set(flow, account);
      const field = `${priority}:${hashKeys ? hashedName(flow.fairnessId) : flow.fairnessId}`;
      told.push({ flow, selector, account, field, delta: Math.max(0, received - account.told) });
    }
  }
  return told;
}
