/** A request goes where slot, prefill and KV cache have room. Invariant: an idle endpoint takes all that fits. */
import type { output } from 'zod/v4/core';
import { warnOperator } from '../../base/faults/warn-operator.js';
import { Listeners } from '../../base/listeners.js';
import { type Definition, define } from '../../base/policy-definition.js';
import { put } from '../../base/put.js';
import { requestField } from '../../base/request-field.js';
import type { Duration } from '../../base/schema/duration.js';
import type { Quantity } from '../../base/schema/quantity.js';
import * as s from '../../base/schema/schema.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Constraint, RequestWait } from '../../gate/constraint.js';
import type { CapacityFigure } from '../../gate/reported-figures.js';
import type { SeatView } from '../../gate/server-answer.js';
import type { ItemView } from '../../tiers/views.js';
import { modelOf, validAmount } from '../quotas/request-estimate.js';
import { EndpointLedger, type Need } from './endpoint-ledger.js';
import { OutputLengths } from './output-lengths.js';

/** Limits of an endpoint of weight 1; one of weight 3 has three times as much. What is left out has no limit. */
export interface CapacityLedgerOptions {
  /** Requests that run at a time, from 1 up: `max_num_seqs` of vLLM. */
  slots?: number | undefined;
  /** Prompt tokens of requests without a first token, from 1 up: some steps of `max_num_batched_tokens`. */
  prefillTokens?: Quantity | undefined;
  /** Tokens that the KV cache holds, from 1 up. */
  kvTokens?: Quantity | undefined;
  /** Requests without a first token, from 1 up. */
  unstarted?: number | undefined;
  /** From this priority up requests are judged by their `max_tokens`, below by the likely length. @default 0 */
  guaranteedFrom?: number | undefined;
  /** The length of an answer of which nothing is known, in tokens, from 1 up. @default 256 */
  defaultOutputTokens?: number | undefined;
  /** A request that waited so long keeps an endpoint free of others that do not go first. @default '1s' */
  patience?: Duration | undefined;
}

const type = 'capacity-ledger';
/** An endpoint is kept so long for a request that nobody asks about any more. */
const keptMs = 100;
/** A cache that is 1.4 times larger or smaller than was said is told, in doublings. */
const tellsFrom = 0.5;

const tokens = s.optional(s.fromOne('a number of tokens from 1 up, such as "400k"'));

const parameters = s.object(
  {
    slots: s.optional(s.positiveInteger()),
    prefillTokens: tokens,
    kvTokens: tokens,
    unstarted: s.optional(s.positiveInteger()),
    guaranteedFrom: s.optional(s.integer(), 0),
    defaultOutputTokens: s.optional(s.positiveInteger(), 256),
    patience: s.optional(s.positiveDuration('1s'), 1000),
  },
  ({ slots, prefillTokens, kvTokens, unstarted }, report) => {
    if ((slots ?? prefillTokens ?? kvTokens ?? unstarted) === undefined)
      report('one of slots, prefillTokens, kvTokens, unstarted', [], 'none of them');
  },
);

type Settings = output<typeof parameters>;
const dimensions = ['slots', 'unstarted', 'prefill', 'kv'] as const satisfies CapacityFigure['dimension'][];
type Limits = Readonly<Record<CapacityFigure['dimension'], number>>;

/** What a request waits for at an endpoint. */
interface Lack {
  readonly what: 'slots' | 'prefill' | 'kv' | 'unstarted' | 'size';
  readonly amount: number;
  /** When it will be there; Infinity where that is not known. */
  readonly atMs: number;
  readonly endpoint: EndpointView;
}

/** An endpoint that is kept for a request which waited long. */
interface Kept {
  readonly item: ItemView;
  readonly endpoint: EndpointView;
  askedAtMs: number;
}

const names = {
  slots: 'a slot',
  unstarted: 'the first token of another request',
  prefill: 'tokens of prefill',
  kv: 'tokens of KV',
  size: 'tokens of KV, more than there are',
};

/** A kept place never holds up those that came before: readers, too, ask of requests whose turn has not come. */
function goesBefore(kept: ItemView, { priority, sequence }: ItemView): boolean {
  return kept.priority > priority || (kept.priority === priority && kept.sequence < sequence);
}

class Ledger implements Constraint {
  readonly type: string = type;
  private readonly started = new Listeners();
  readonly subscribe: Listeners['subscribe'] = this.started.subscribe;
  private readonly settings: Settings;
  private readonly lengths = new OutputLengths();
  private readonly ledgers = new WeakMap<EndpointView, EndpointLedger>();
  private kept: Kept | undefined = undefined;
  private isTold = false;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  withRoomFor(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): readonly EndpointView[] {
    const need = this.needOf(item);
    const roomy = endpoints.filter((endpoint) => this.lackAt(endpoint, need, nowMs) === undefined);
    if (this.kept !== undefined && nowMs - this.kept.askedAtMs > keptMs) this.kept = undefined;
    const { kept } = this;
    if (kept?.item.sequence === item.sequence) kept.askedAtMs = nowMs;
    else if (kept !== undefined && goesBefore(kept.item, item))
      return roomy.filter((endpoint) => endpoint !== kept.endpoint);
    else if (roomy.length === 0 && nowMs - item.enqueuedAtMs >= this.settings.patience) {
      const lack = this.firstLack(endpoints, need, nowMs);
      if (lack !== undefined && lack.what !== 'size') this.kept = { item, endpoint: lack.endpoint, askedAtMs: nowMs };
    }
    return roomy;
  }

  waitOf(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): RequestWait {
    const lack = this.firstLack(endpoints, this.needOf(item), nowMs);
    if (lack === undefined)
      return { atMs: nowMs + keptMs, notBeforeMs: nowMs, missing: 'a server kept for a longer wait' };
    const { what, amount, atMs, endpoint } = lack;
    const count = amount === 0 ? '' : `${Math.ceil(amount)} `;
    return {
      atMs: this.kept?.item.sequence === item.sequence ? Math.min(atMs, nowMs + keptMs / 2) : atMs,
      notBeforeMs: what === 'size' ? Infinity : nowMs,
      missing: `${count}${names[what]} at ${endpoint.id}`,
    };
  }

  dispatched(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    if (this.kept?.item.sequence === seat.item.sequence) this.kept = undefined;
    this.ledgerOf(endpoint).take(seat, this.needOf(seat.item), nowMs);
  }

  reported(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    if (this.ledgers.get(endpoint)?.grew(seat, nowMs) === true) this.started.announce();
  }

  released(endpoint: EndpointView, nowMs: number, seat: SeatView): void {
    const claim = this.ledgers.get(endpoint)?.give(seat, nowMs);
    const { completionTokens } = seat.usage;
    if (claim !== undefined && completionTokens > 0) this.lengths.learn(claim.model, completionTokens);
  }

  capacity(endpoints: readonly EndpointView[], nowMs: number): CapacityFigure[] {
    return endpoints.flatMap((endpoint) => {
      const limits = this.limitsOf(endpoint);
      const ledger = this.ledgerOf(endpoint);
      const { unstarted, prefill } = ledger;
      const slots = endpoint.inFlightRequests + ledger.foreignRequests;
      const used: Limits = { slots, unstarted, prefill, kv: ledger.held(nowMs) };
      return dimensions
        .filter((dimension) => limits[dimension] < Infinity)
        .map((dimension) => ({ endpoint: endpoint.id, dimension, used: used[dimension], limit: limits[dimension] }));
    });
  }

  fullness(endpoints: readonly EndpointView[], nowMs: number): number {
    const fullest = (endpoint: EndpointView): number =>
      Math.max(0, ...this.capacity([endpoint], nowMs).map(({ used, limit }) => used / limit));
    return Math.min(1 - Number.EPSILON, ...endpoints.map(fullest));
  }

  private needOf(item: ItemView): Need {
    const { guaranteedFrom, defaultOutputTokens } = this.settings;
    const { estimate, request, priority } = item;
    const model = modelOf(item);
    const input = estimate?.inputTokens ?? validAmount(requestField(request, 'inputTokens')) ?? item.tokens;
    const most = validAmount(requestField(request, 'maxOutputTokens'));
    const likely = estimate?.outputTokens ?? this.lengths.expected(model, 0) ?? defaultOutputTokens;
    const isWorst = priority >= guaranteedFrom && most !== undefined;
    const length = isWorst ? most : Math.min(likely, most ?? Infinity);
    const prompt = Math.max(0, input - (estimate?.cachedTokens ?? 0));
    return { model, prompt, output: Math.max(1, length), isWorst };
  }

  /** What the request lacks there; undefined when it may go. */
  private lackAt(endpoint: EndpointView, need: Need, nowMs: number): Lack | undefined {
    const limits = this.limitsOf(endpoint);
    const ledger = this.ledgerOf(endpoint);
    const lack = (what: Lack['what'], amount: number, ms: number): Lack => ({
      what,
      amount,
      atMs: nowMs + Math.max(1, ms),
      endpoint,
    });
    if (need.prompt >= limits.kv) return lack('size', need.prompt + 1, Infinity);
    if (endpoint.inFlightRequests === 0 && ledger.isEmpty) return undefined;
    ledger.reconcile(endpoint, limits.kv, nowMs);
    if (Math.abs(Math.log2(ledger.scale)) > tellsFrom) this.tellOnce(endpoint.id, limits.kv, ledger.scale);
    if (endpoint.inFlightRequests + ledger.foreignRequests >= limits.slots)
      return lack('slots', 0, ledger.msUntilFree(1, nowMs));
    if (ledger.unstarted >= limits.unstarted) return lack('unstarted', 0, ledger.firstTokenMs);
    const prefill = ledger.prefill === 0 ? 0 : ledger.prefill + need.prompt - limits.prefill;
    if (prefill > 0) return lack('prefill', prefill, ledger.firstTokenMs);
    const kv = limits.kv === Infinity ? 0 : ledger.peak(nowMs, need) - limits.kv;
    return kv > 0 ? lack('kv', kv, ledger.msUntilFree(kv, nowMs)) : undefined;
  }

  /** Of endpoints that all lack something, the one where that will be there first. */
  private firstLack(endpoints: readonly EndpointView[], need: Need, nowMs: number): Lack | undefined {
    const lacks = endpoints.flatMap((endpoint) => this.lackAt(endpoint, need, nowMs) ?? []);
    const order = (a: Lack, b: Lack): Lack => (b.atMs < a.atMs || (a.what === 'size' && b.what !== 'size') ? b : a);
    return lacks.length === 0 ? undefined : lacks.reduce(order);
  }

  private limitsOf({ weight }: EndpointView): Limits {
    const { slots = Infinity, prefillTokens = Infinity, kvTokens = Infinity, unstarted = Infinity } = this.settings;
    return {
      slots: Math.max(1, Math.floor(slots * weight)),
      unstarted: Math.max(1, Math.floor(unstarted * weight)),
      prefill: prefillTokens * weight,
      kv: kvTokens * weight,
    };
  }

  private tellOnce(id: string, kvTokens: number, scale: number): void {
    if (this.isTold) return;
    this.isTold = true;
    const size = `${scale > 1 ? 'less' : 'more'} than ${Math.round(kvTokens / scale)} tokens`;
    const told = `fills its KV cache as if that had ${size}; kvTokens says ${kvTokens}`;
    warnOperator(`${id} ${told}. What it reports counts. This is written once.`);
  }

  private ledgerOf(endpoint: EndpointView): EndpointLedger {
    const expected = (model: string, age: number): number | undefined => this.lengths.expected(model, age);
    return this.ledgers.get(endpoint) ?? put(this.ledgers, endpoint, new EndpointLedger(expected));
  }
}

/**
 * A request goes to an endpoint that has a slot, room for its prompt in prefill until its first token, and room in the
 * KV cache for prompt and answer until its end. Guaranteed requests are judged by the longest answer that they may get
 * (`request.maxOutputTokens`), the others, and those that name none, by the likely length: learnt by model from
 * reported usage, and from how long an answer is already. Where servers report their load, what others run there
 * counts too, and the size of the cache is learnt, from a quarter to four times `kvTokens`. The first report of a token
 * (`lease.report`) ends prefill; without any, the end of the request does.
 * Cost: O(running requests) for each endpoint and question.
 * Source: the capacity ledger that llm-d-router proposes (docs/flow-control-capacity-ledger.md).
 * @throws FlowConfigError
 * @example
 * new FlowController({ pool, constraints: [capacityLedger({ slots: 256, prefillTokens: '16k', kvTokens: '400k' })] })
 */
export function capacityLedger(options: CapacityLedgerOptions): Constraint {
  return new Ledger(s.parse(parameters, options, 'capacityLedger'));
}

export const capacityLedgerPlugin: Definition<Constraint> = define(type, parameters, capacityLedger);
