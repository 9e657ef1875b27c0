/**
 * What the primary asks its workers, and the one answer of all to what operators ask one of them.
 *
 * Invariant: counters never fall, because those of workers that are gone are kept.
 */
import type { Registry } from 'prom-client';
import { type CallPort, type Calls, calls, channelIsClosed } from '../../base/calls.js';
import { type Clock, realClock } from '../../index.js';
import type { OperatorQuestion } from './gateway-workers.js';
import { oneAnswer } from './one-answer.js';

type PromClient = Pick<typeof import('prom-client'), 'AggregatorRegistry'>;

/** `given` is a file, a signal, or what an operator gave. */
export interface WorkerQuestion {
  readonly what: OperatorQuestion | 'start' | 'reload' | 'close' | 'end';
  readonly given?: unknown;
}

/** As `getMetricsAsJSON` of prom-client tells them. */
type Metrics = readonly { readonly type: unknown }[];

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
  /** A worker that joins hears of those that were moved. */
  private readonly thresholds: unknown[] = [];
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

  forgetThresholds(): void {
    this.thresholds.length = 0;
  }

  /** The answers of those that live; within a time, unless it is work. Rejects where one does. */
  async all(question: WorkerQuestion, asker?: Member, own?: unknown): Promise<unknown[]> {
    const isWork = question.what === 'reload' || question.what === 'close';
    const late = new Promise<undefined>((resolve) => {
      if (!isWork) this.clock.setTimeout(() => resolve(undefined), answerMs);
    });
    const answers = [...this.members].map(async (member) => {
      const asked = member === asker ? own : member.calls.ask(question);
      const said = await Promise.race([asked, late]).catch((error) => {
        if (error.message !== channelIsClosed) throw error;
      });
      if (question.what === 'metrics' && said !== undefined) member.metrics = said as Metrics;
      return said;
    });
    return (await Promise.all(answers)).filter((answer) => answer !== undefined);
  }

  private async together(asker: Member, { what, given }: WorkerQuestion): Promise<unknown> {
    if (what === 'thresholds') this.thresholds.push(given);
    if (what === 'find') return oneAnswer(await this.all({ what, given }));
    const said = await this.all({ what, given: what === 'thresholds' ? given : undefined }, asker, given);
    if (what !== 'metrics') return oneAnswer(said);
    const all = [...this.members].map(({ metrics }) => metrics);
    return this.sum([...all, await this.gone])?.metrics();
  }

  private sum(metrics: Metrics[]): Registry | undefined {
    return this.promClient?.AggregatorRegistry.aggregate(metrics);
  }
}
