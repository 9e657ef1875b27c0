/** Writes drops as a few log lines: one line for each period with drops, however many there were. */
import { BoundedLabel } from '../../base/bounded-label.js';
import { type Clock, letProcessEnd, realClock } from '../../base/clock.js';
import * as s from '../../base/schema/schema.js';
import type { FlowEvents } from '../events.js';

/** Where the lines go, and how often. */
export interface LogDropsOptions {
  /**
   * Gets `drops=12 periodMs=10000 reasons=ttl-expired:12 priorities=0:12`, and the same as an object; in mode `shadow`
   * the line begins with `would-be-drops`.
   */
  onLine: (line: string, summary: DropSummary) => void;
  /** From the first drop to the line, ms, above 0. @default 10,000 */
  everyMs?: number | undefined;
  /** Whether lines name the three fairness IDs with the most drops. @default false */
  fairnessIds?: boolean | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

/** The drops of one period, counted by name. */
export interface DropSummary {
  readonly drops: number;
  readonly periodMs: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly priorities: Readonly<Record<string, number>>;
  /** The three with the most drops. */
  readonly fairnessIds?: Readonly<Record<string, number>>;
  /** True in mode `shadow`: these requests would have been dropped. */
  readonly isShadow?: true;
}

type Counted = Required<Pick<DropSummary, 'reasons' | 'priorities' | 'fairnessIds'>>;

const optionsSchema = s.object({
  onLine: s.callable<LogDropsOptions['onLine']>(),
  everyMs: s.optional(s.aboveZero(), 10_000),
  fairnessIds: s.optional(s.flag(), false),
  clock: s.optional(s.clock(), realClock),
});

/** The most names that one period counts apart; the rest is `other`. */
const mostNames = 100;
const namesTold = 3;

interface Source {
  readonly isShadow?: boolean;
  on(event: 'dropped', listener: (payload: FlowEvents['dropped']) => void): () => void;
}

/**
 * Calls `onLine` once for all drops of a period, which begins with the first of them. `stop` writes the last line, if
 * there is one to write. @throws FlowConfigError that lists every problem
 * @example logDrops(flow, { onLine: (line, summary) => logger.warn(summary, line) });
 */
export function logDrops(flow: Source, options: LogDropsOptions): { stop(): void } {
  const { onLine, everyMs, fairnessIds, clock } = s.parse(optionsSchema, options, 'logDrops');
  let period: { readonly beganAtMs: number; drops: number; readonly counts: Record<keyof Counted, Counts> } | undefined;
  let timer: unknown;

  function tell(): void {
    if (period === undefined) return;
    const { beganAtMs, drops, counts } = period;
    const summary: DropSummary = {
      drops,
      periodMs: Math.round(clock.now() - beganAtMs),
      reasons: counts.reasons.most(),
      priorities: counts.priorities.most(),
      ...(fairnessIds && { fairnessIds: counts.fairnessIds.most(namesTold) }),
      ...(flow.isShadow === true && { isShadow: true }),
    };
    period = undefined;
    onLine(lineOf(summary), summary);
  }

  const stopListening = flow.on('dropped', ({ outcome }) => {
    if (period === undefined) {
      const counts = { reasons: new Counts(), priorities: new Counts(), fairnessIds: new Counts() };
      period = { beganAtMs: clock.now(), drops: 0, counts };
      timer = letProcessEnd(clock.setTimeout(tell, everyMs));
    }
    const { counts } = period;
    period.drops++;
    counts.reasons.add(outcome.reason);
    counts.priorities.add(String(outcome.priority));
    if (fairnessIds) counts.fairnessIds.add(outcome.fairnessId);
  });

  return {
    stop() {
      stopListening();
      clock.clearTimeout(timer);
      tell();
    },
  };
}

class Counts {
  private readonly counts = new Map<string, number>();
  private readonly names = new BoundedLabel(mostNames);

  add(name: string): void {
    const kept = this.names.of(name);
    this.counts.set(kept, (this.counts.get(kept) ?? 0) + 1);
  }

  most(limit = mostNames): Record<string, number> {
    return Object.fromEntries([...this.counts].sort((a, b) => b[1] - a[1]).slice(0, limit));
  }
}

/** logfmt. Names from clients are quoted where they hold more than a plain word. */
function lineOf({ drops, periodMs, isShadow, ...counts }: DropSummary): string {
  const list = (of: object): string[] => Object.entries(of).map(([name, count]) => `${plain(name)}:${count}`);
  const lists = Object.entries(counts).map(([key, of]) => `${key}=${list(of)}`);
  return [`${isShadow === true ? 'would-be-' : ''}drops=${drops}`, `periodMs=${periodMs}`, ...lists].join(' ');
}

function plain(name: string): string {
  return /^[\w./@-]+$/.test(name) ? name : JSON.stringify(name);
}
