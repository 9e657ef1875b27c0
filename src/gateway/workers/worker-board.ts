/** One answer of all workers to what operators ask one. Invariant: counters never fall: those of the dead are kept. */
import type { Registry } from 'prom-client';
import { type CallPort, type Calls, calls, channelIsClosed } from '../../base/calls.js';
import { type Clock, realClock } from '../../index.js';
import type { OperatorQuestion } from '../shared/gateway-workers.js';
import { oneAnswer } from './one-answer.js';

type PromClient = Pick<typeof import('prom-client'), 'AggregatorRegistry'>;
/** As `getMetricsAsJSON` of prom-client tells them. */
type Metrics = readonly { readonly type: unknown }[];

/** `given` is a file, a signal, or what an operator gave. */
export interface WorkerQuestion {
  readonly what: OperatorQuestion | 'start' | 'reload' | 'close' | 'end';
  readonly given?: unknown;
}

interface Member {
  readonly calls: Calls<WorkerQuestion>;
  /** What it told last; it counts where there is no answer in time. */
  metrics: Metrics;
}

const answerMs = 2_000;

export class WorkerBoard {
  private readonly promClient: PromClient | undefined;
  private readonly clock: Clock;
  private readonly members = new Set<Member>();
  /** Moved thresholds, which a worker that joins hears of. Emptied by the primary, with a file that sets them anew. */
  readonly thresholds: unknown[] = [];
  private gone: Promise<Metrics> = Promise.resolve([]);

  /** Without prom-client workers have no metrics. */
  constructor(promClient: PromClient | undefined, clock: Clock = realClock) {
    this.promClient = promClient;
    this.clock = clock;
  }

  /** How a worker is asked; it is one of all after `join`. */
  meet(worker: CallPort): { readonly calls: Calls<WorkerQuestion>; join(): void } {
    const member: Member = { calls: calls(worker, 'gateway', (asked) => this.together(member, asked)), metrics: [] };
    worker.on('exit', () => {
      this.members.delete(member);
      const counts = member.metrics.filter(({ type }) => type !== 'gauge');
      this.gone = this.gone.then(async (gone) => (await this.sum([gone, counts])?.getMetricsAsJSON()) ?? []);
    });
    const join = (): void => {
      this.members.add(member);
      for (const given of this.thresholds) member.calls.tell({ what: 'thresholds', given });
    };
    return { calls: member.calls, join };
  }

  /** The answers of those that live; within a time, unless it is work. Rejects where one does. */
  async all({ what, given }: WorkerQuestion, asker?: Member, own?: unknown): Promise<unknown[]> {
    const late = new Promise<void>((resolve) => {
      if (what !== 'reload' && what !== 'close') this.clock.setTimeout(resolve, answerMs);
    });
    const answers = [...this.members].map(async (member) => {
      const asked = member === asker ? own : member.calls.ask({ what, given });
      const said = await Promise.race([asked, late]).catch((error) => {
        if (error.message !== channelIsClosed) throw error;
      });
      if (what === 'metrics' && said !== undefined) member.metrics = Object(said);
      return said;
    });
    return (await Promise.all(answers)).filter((answer) => answer !== undefined);
  }

  private async together(asker: Member, { what, given }: WorkerQuestion): Promise<unknown> {
    if (what === 'thresholds') this.thresholds.push(given);
    const isForAll = what === 'thresholds' || what === 'find';
    const said = await this.all({ what, given: isForAll ? given : '' }, what === 'find' ? undefined : asker, given);
    if (what !== 'metrics') return oneAnswer(said);
    return this.sum([...Array.from(this.members, ({ metrics }) => metrics), await this.gone])?.metrics();
  }

  private sum(metrics: Metrics[]): Registry | undefined {
    return this.promClient?.AggregatorRegistry.aggregate(metrics);
  }
}
