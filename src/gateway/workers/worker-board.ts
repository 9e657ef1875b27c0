/**
 * One answer of all workers to what operators ask one of them: metrics as one exposition, demand as one, thresholds
 * that move in all. It stands in the primary.
 *
 * Invariant: counters never fall, because those of workers that are gone are kept.
 */
import type { Registry } from 'prom-client';
import { type CallPort, type Calls, calls } from '../../base/calls.js';
import { type Clock, realClock } from '../../index.js';
import type { WorkerQuestion } from './gateway-workers.js';

type PromClient = Pick<typeof import('prom-client'), 'AggregatorRegistry'>;

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
  private readonly thresholds: unknown[] = [];
  private gone: Promise<Metrics> = Promise.resolve([]);

  /** Without prom-client workers have no metrics. */
  constructor(promClient: PromClient | undefined, clock: Clock = realClock) {
    this.promClient = promClient;
    this.clock = clock;
  }

  /** Takes a worker of `node:cluster`, until it exits. `onReady` is called when it serves. */
  join(worker: CallPort, onReady: () => unknown): void {
    const answer = (question: WorkerQuestion): unknown => {
      if (question.what !== 'ready') return this.together(member, question);
      for (const given of this.thresholds) member.calls.tell({ what: 'thresholds', given });
      return onReady();
    };
    const member: Member = { calls: calls(worker, 'gateway', answer), metrics: [] };
    this.members.add(member);
    worker.on('exit', () => {
      this.members.delete(member);
      const counts = member.metrics.filter(({ type }) => type !== 'gauge');
      this.gone = this.gone.then(async (gone) => (await this.sum([gone, counts])?.getMetricsAsJSON()) ?? []);
    });
  }

  tell(signal: NodeJS.Signals): void {
    for (const { calls } of this.members) calls.tell({ what: 'signal', given: signal });
  }

  private async together(asker: Member, { what, given }: WorkerQuestion): Promise<unknown> {
    if (what === 'thresholds') this.thresholds.push(given);
    const question = { what, given: what === 'thresholds' ? given : undefined };
    const late = new Promise<undefined>((resolve) => {
      this.clock.setTimeout(() => resolve(undefined), answerMs);
    });
    const answers = [...this.members].map(async (member) => {
      const asked = member === asker ? given : member.calls.ask(question).catch(() => undefined);
      const said = await Promise.race([asked, late]);
      if (what === 'metrics' && said !== undefined) member.metrics = said as Metrics;
      return said;
    });
    const said = (await Promise.all(answers)).filter((answer) => answer !== undefined);
    if (what === 'demand') return (said as Figures[]).reduce(added);
    const all = [...this.members].map(({ metrics }) => metrics);
    return what === 'metrics' ? this.sum([...all, await this.gone])?.metrics() : given;
  }

  private sum(metrics: Metrics[]): Registry | undefined {
    return this.promClient?.AggregatorRegistry.aggregate(metrics);
  }
}

type Figures = { readonly [figure: string]: unknown };

/** Of these the highest counts; other numbers are added. */
const highest = /^(?:saturation|endpoints|availableEndpoints|priority|timeToDrainMs)$/;

/** As `/demand` tells it. What one worker does not know, all together do not. */
function added(a: Figures, b: Figures): Figures {
  const sum: Record<string, unknown> = { ...a };
  for (const [name, value] of Object.entries(b)) {
    const before = name in a ? a[name] : value;
    if (typeof value === 'object' && value !== null) sum[name] = added(Object(a[name]), value as Figures);
    else if (typeof value !== 'number' || typeof before !== 'number') sum[name] = before === null ? before : value;
    else sum[name] = !(name in a) || highest.test(name) ? Math.max(before, value) : before + value;
  }
  return sum;
}
