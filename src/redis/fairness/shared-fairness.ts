/**
 * Fair by cost over all replicas: once a second, each charges its flows with the cost that they received in other
 * replicas.
 *
 *     counter here = what was charged here + what others have told since this replica knows the flow
 *
 * Invariant: no request waits for an exchange; without the store every replica is fair by itself. Each cost is told to
 * the others once.
 */

import { letProcessEnd } from '../../base/clock.js';
import {
  type BandView,
  type Duration,
  FlowConfigError,
  type FlowFairnessPolicy,
  type FlowSelector,
  type FlowView,
  schemas,
} from '../../index.js';
import { numbersOf } from '../store/answer.js';
import { fairnessKeys, hashedName } from '../store/keys.js';
import { type RedisClient, storeSchema } from '../store/redis-store.js';
import type { Store } from '../store/store.js';
import { type LinkFigures, StoreLink } from '../store/store-link.js';
import { keyName, type StoreOptions, storeShape } from '../store/store-options.js';
import { exchangeScript } from './exchange-script.js';

export interface SharedFairnessOptions extends StoreOptions {
  /** Replicas with this name exchange what their flows received. */
  readonly name: string;
  /** From one exchange to the next, give or take a tenth. @default '1s' */
  readonly interval?: Duration | undefined;
  /** Whether the store sees a hash of fairness IDs, and not the names. @default false */
  readonly hashKeys?: boolean | undefined;
  /**
   * The most flows of one exchange; only waiting flows take part, and the rest takes part later. An integer from 1 up.
   * @default 2000
   */
  readonly maxFlows?: number | undefined;
}

/** The policy, and its connection to the other replicas. */
export interface SharedFairness extends FlowFairnessPolicy {
  /** Exchanges that were answered. */
  readonly exchanges: number;
  readonly engine: LinkFigures;
  close(): void;
}

const { flag, object, optional, parse, positiveDuration, positiveInteger } = schemas;

const optionsSchema = object({
  ...storeShape,
  name: keyName,
  interval: optional(positiveDuration('1s'), 1_000),
  hashKeys: optional(flag(), false),
  maxFlows: optional(positiveInteger(), 2_000),
});

/** The account of one flow with the other replicas, in thousandths of cost. */
interface Account {
  /** The cost that the flow received here, and that the others were told of. */
  told: number;
  /** The cost that all replicas had received by the last answer; undefined before the first. */
  total: number | undefined;
}

/** A flow of which no replica has told for this many intervals is removed. */
const rememberedIntervals = 10;

/**
 * Makes a policy that shares by cost, such as `virtualTokenCounter()`, fair over all replicas: for tenants whose
 * requests come to some replicas only. If every tenant comes to all replicas, replicas that are fair by themselves are
 * fairer than this. After an exchange the shares of two flows differ by what an interval serves, at most.
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
  const store = parse(storeSchema, client, 'sharedFairness: client');
  const settings = parse(optionsSchema, options, 'sharedFairness');
  const { interval, callTimeout: timeoutMs, clock: time, random, maxFlows, hashKeys } = settings;
  const where = `fairness "${settings.name}"`;
  const link = new StoreLink(store, { timeoutMs, clock: time, random, where });
  const keys = fairnessKeys(settings);
  const bands = new Map<number, { readonly band: BandView; readonly selector: FlowSelector }>();
  const accounts = new WeakMap<FlowView, Account>();
  let exchanges = 0;
  let isClosed = false;
  let timer: unknown;

  function fieldOf(priority: number, fairnessId: string): string {
    return `${priority}:${hashKeys ? hashedName(fairnessId) : fairnessId}`;
  }

  async function exchange(): Promise<void> {
    const told: {
      readonly flow: FlowView;
      readonly selector: FlowSelector;
      readonly account: Account;
      readonly delta: number;
    }[] = [];
    const args: string[] = [];
    for (const [priority, { band, selector }] of bands) {
      for (const flow of band.activeFlows()) {
        if (told.length >= maxFlows) break;
        const received = Math.round((selector.received?.(flow) ?? 0) * 1_000);
        const account = accounts.get(flow) ?? { told: received, total: undefined };
        accounts.set(flow, account);
        const delta = Math.max(0, received - account.told);
        told.push({ flow, selector, account, delta });
        args.push(fieldOf(priority, flow.fairnessId), String(delta));
      }
    }
    if (told.length === 0) return;
    const head = [rememberedIntervals * interval, told.length].map(String);
    const totals = await link.ask(exchangeScript, keys, [...head, ...args], (reply) => numbersOf(reply, told.length));
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

  function later(): void {
    if (isClosed) return;
    const exchangeOnce = (): void => void exchange().then(later, later);
    timer = letProcessEnd(time.setTimeout(exchangeOnce, interval * (0.9 + 0.2 * random())));
  }
  later();

  return {
    type: policy.type,
    get fairnessIndex() {
      return policy.fairnessIndex as number;
    },
    createSelector(band) {
      const selector = policy.createSelector(band);
      if (selector.received === undefined || selector.charge === undefined) {
        const issue = {
          path: 'policy',
          expected: 'a policy that shares by cost, such as virtualTokenCounter()',
          got: policy.type,
        };
        throw new FlowConfigError('sharedFairness', [issue]);
      }
      bands.set(band.priority, { band, selector });
      return selector;
    },
    get exchanges() {
      return exchanges;
    },
    get engine() {
      return link.figures;
    },
    close() {
      isClosed = true;
      time.clearTimeout(timer);
      link.close();
    },
  };
}
