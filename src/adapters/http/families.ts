/**
 * Families of agents. A session that another one began is of its family, which has the name of the session that began
 * them all, and is one flow of its tenant however many agents it has.
 *
 *     session, parent ──► members ──► fairness ID `tenant/@first session` ──► controller
 *                           └── who is at work ──► the order within the family
 *
 * Invariant: a session has one parent, the first that was told, and is never its own ancestor. Families are joined as
 * sets are (union-find with path compression): O(1) amortized. What is forgotten keeps nobody.
 */
import type { HeaderRecord } from '../../base/headers/header-source.js';
import { type Linked, LinkedList } from '../../base/queues/linked-list.js';
import { requestField } from '../../base/request-field.js';
import * as s from '../../base/schema/schema.js';
import type { Clock, Duration, FlowKey, FlowRequest, ItemView, Lease, OrderingPolicy, Outcome } from '../../index.js';
import { fcfs, realClock } from '../../index.js';
import type { AdapterGate, PlacementHints } from './adapter-options.js';
import { type AgentSession, agentSession } from './agent-session.js';

export interface FamiliesOptions {
  /** How long a session is remembered that sends nothing. @default '30m' */
  inactivity?: Duration | undefined;
  /** Sessions that are remembered, from 1 up; of more, those silent longest are forgotten. @default 100_000 */
  maxSessions?: number | undefined;
  /** Is told of a parent that is ignored because it would close a circle. @default nobody */
  onCycle?: ((cycle: AgentSession & { readonly tenant: string }) => void) | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

type Settings = Readonly<Pick<FamiliesOptions, 'onCycle'> & { inactivity: number; maxSessions: number; clock: Clock }>;

const optionsSchema: s.Schema<Settings> = s.object({
  inactivity: s.optional(s.positiveDuration('30m'), 1_800_000),
  maxSessions: s.optional(s.positiveInteger(), 100_000),
  onCycle: s.optional(s.callable<NonNullable<FamiliesOptions['onCycle']>>()),
  clock: s.optional(s.clock(), realClock),
} satisfies Record<keyof FamiliesOptions, unknown>);

/** Between tenant and family, whose name has no slash: a client gets into no other tenant's path. */
const mark = '/@';
/** Flows with longer names share some with others. */
const longestName = 256;
const mostGroups = 10_000;
/** Lower than with any number of siblings: nobody waits for the child. */
const parentAtWork = -1e9;

/** A session. */
class Member implements Linked<Member> {
  previous: Member | undefined = undefined;
  next: Member | undefined = undefined;
  seenAtMs = 0;
  parent: Member | undefined = undefined;
  /** Children with requests that wait. */
  waitingChildren = 0;
  /** The lease that it got last. */
  lease: WeakRef<Lease> | undefined = undefined;
  waiting = 0;
  /** A member of its family that is nearer to the first. */
  private nearer: Member | undefined = undefined;
  readonly key: string;
  readonly name: string;

  constructor(key: string, name: string) {
    this.key = key;
    this.name = name.replaceAll('%', '%25').replaceAll('/', '%2F');
  }

  /** The first of its family. */
  get first(): Member {
    let member: Member = this;
    while (member.nearer !== undefined) {
      member.nearer = member.nearer.nearer ?? member.nearer;
      member = member.nearer;
    }
    return member;
  }

  /** False where that would close a circle. */
  joins(parent: Member): boolean {
    const { first } = parent;
    if (first === this.first) return false;
    this.first.nearer = first;
    this.parent = parent;
    if (this.waiting > 0) parent.waitingChildren++;
    return true;
  }

  /** Or leaves the table, with 0. */
  counts(waiting: number): void {
    const change = Number(waiting > 0) - Number(this.waiting > 0);
    this.waiting = waiting;
    if (this.parent !== undefined) this.parent.waitingChildren += change;
  }

  waits(asked: Promise<unknown>): void {
    this.counts(this.waiting + 1);
    const end = (): void => this.counts(Math.max(this.waiting - 1, 0));
    asked.then(end, end);
  }
}

type Entry = Readonly<{ key: FlowKey; member?: Member }>;
type Answer = Outcome | Promise<Outcome>;

/** What `families()` makes. */
export class Families {
  /** Parents that were ignored because they would have closed a circle. */
  cycles = 0;
  private readonly members = new Map<string, Member>();
  /** The one that was silent longest stands first. */
  private readonly bySilence = new LinkedList<Member>();
  /** How many went of each group that was told. */
  private readonly groups = new Map<string, number>();
  private readonly byRequest = new WeakMap<object, Member>();
  private readonly settings: Settings;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  /** Sessions that are remembered. */
  get sessions(): number {
    return this.members.size;
  }

  /** The family of a request in the queue, for `sessionLimit({ by })`; undefined for none. */
  readonly familyOf = ({ fairnessId }: ItemView): string | undefined =>
    fairnessId.includes(mark) ? fairnessId : undefined;

  /**
   * An order within a family: the child goes whose siblings wait for it. That is the last of its `group`, else the one
   * with the fewest siblings in the queue while its parent is idle. Ties, each ninth turn: by arrival. O(32) a turn.
   */
  readonly lastChildFirst: OrderingPolicy = {
    ...fcfs(),
    type: 'last-child-first',
    scores: { lookahead: 32, overtakings: 8, score: (item) => this.score(item), dispatched: (item) => this.went(item) },
  };

  /** The key in whose flow a request of the session goes; `key` itself without a session, or if it names a family. */
  flowKey(key: FlowKey, session: AgentSession): FlowKey {
    return this.enter(key, session).key;
  }

  /** The controller as adapters, `flowFetch` and `flowMiddleware` take it: requests go in the flows of families. */
  gate<R extends FlowRequest & PlacementHints>(flow: AdapterGate<R>): AdapterGate<R> {
    const enter = (request: R, given: FlowKey, waiting = () => request): Answer => {
      const { key, member } = this.asked(request, given);
      if (member === undefined) return flow.enter?.(request, key, waiting) ?? flow.enqueue(waiting(), key);
      const noted = (asked: R): R => {
        this.byRequest.set(asked, member);
        return asked;
      };
      const decided = (outcome: Outcome): void => {
        if (outcome.type === 'Dispatched') member.lease = new WeakRef(outcome.lease);
      };
      const answer = flow.enter?.(noted(request), key, () => noted(waiting())) ?? flow.enqueue(noted(waiting()), key);
      if ('then' in answer) member.waits(answer.then(decided));
      else decided(answer);
      return answer;
    };
    return {
      controller: flow.controller ?? flow,
      bandHeadroom: (priority) => flow.bandHeadroom?.(priority),
      enqueue: async (request, key) => enter(request, key),
      enter,
    };
  }

  /** Foreign objects may throw when they are read; the controller says what is wrong with the call. */
  private asked(request: FlowRequest & PlacementHints, key: FlowKey): Entry {
    try {
      const headers = requestField(requestField(request, 'req'), 'headers');
      return this.enter(key, request.sessionId === undefined && isObject(headers) ? agentSession(headers) : request);
    } catch {
      return { key };
    }
  }

  private enter(key: FlowKey, { sessionId, parentSessionId }: AgentSession): Entry {
    const { fairnessId: tenant, priority } = key;
    if (!isName(sessionId) || tenant.includes(mark)) return { key };
    const { clock, maxSessions, inactivity, onCycle } = this.settings;
    const nowMs = clock.now();
    const parent = isName(parentSessionId) ? this.member(tenant, parentSessionId, nowMs) : undefined;
    const member = this.member(tenant, sessionId, nowMs);
    if (parent !== undefined && member.parent === undefined && !member.joins(parent)) {
      this.cycles++;
      onCycle?.({ tenant, sessionId, parentSessionId });
    }
    for (let silent = this.bySilence.first; silent !== undefined; silent = this.bySilence.first) {
      if (this.sessions <= maxSessions && nowMs - silent.seenAtMs < inactivity) break;
      this.bySilence.remove(silent);
      this.members.delete(silent.key);
      silent.counts(0);
      silent.parent = undefined;
    }
    const fairnessId = `${tenant}${mark}${member.first.name}`;
    return fairnessId.length > longestName ? { key } : { key: { fairnessId, priority }, member };
  }

  private member(tenant: string, name: string, nowMs: number): Member {
    const key = `${tenant}\u0000${name}`;
    const known = this.members.get(key);
    const member = known ?? new Member(key, name);
    if (known === undefined) this.members.set(key, member);
    else this.bySilence.remove(known);
    this.bySilence.push(member);
    member.seenAtMs = nowMs;
    return member;
  }

  private score({ request, fairnessId }: ItemView): number {
    const group = groupOf(request, fairnessId);
    if (group !== undefined) return (this.groups.get(group.id) ?? 0) + 1 - group.of;
    const parent = isObject(request) ? this.byRequest.get(request)?.parent : undefined;
    if (parent === undefined) return 0;
    const isAtWork = parent.waiting > 0 || parent.lease?.deref()?.isReleased === false;
    return isAtWork ? parentAtWork : 1 - parent.waitingChildren;
  }

  private went({ request, fairnessId }: ItemView): void {
    const group = groupOf(request, fairnessId);
    if (group === undefined) return;
    const gone = (this.groups.get(group.id) ?? 0) + 1;
    this.groups.delete(group.id);
    if (gone < group.of) this.groups.set(group.id, gone);
    if (this.groups.size > mostGroups) this.groups.clear();
  }
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && name !== '' && name.length <= longestName;
}

function isObject(value: unknown): value is HeaderRecord {
  return typeof value === 'object' && value !== null;
}

/** A group by a name that no other family has. */
function groupOf(request: unknown, family: string): PlacementHints['group'] {
  const group = requestField(request, 'group');
  const [id, of] = [requestField(group, 'id'), requestField(group, 'of')];
  return typeof id === 'string' && typeof of === 'number' && of >= 1 ? { id: `${family}\u0000${id}`, of } : undefined;
}

/**
 * A table of the families of agents: each is one flow in its tenant: for fairness, caps, `sessionLimit({ by })`.
 * `hierarchical()`, with one level more than tenants have, shares a tenant between its families. A request says its
 * `sessionId` and `parentSessionId`; else `agentSession` reads its `req`. What is set for single fairness IDs, or `by:
 * 'flow'`, holds for each family: `by: 'path'` holds for the tenant, too. @throws FlowConfigError
 * @example
 * const agents = families();
 * const fairness = hierarchical({ levels: ['virtual-token-counter', 'virtual-token-counter'] });
 * const bands = [{ priority: 0, fairness, ordering: agents.lastChildFirst, maxInFlightPerFlow: 8 }];
 * app.use(flowControl(agents.gate(new FlowController({ maxConcurrency: 32, bands })), { classify }));
 */
export function families(options: FamiliesOptions = {}): Families {
  return new Families(s.parse(optionsSchema, options, 'families'));
}
