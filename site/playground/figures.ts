/** What the page writes beside the picture. */
import type { Look, Run } from './run.ts';

export interface TenantFigure {
  readonly name: string;
  readonly p50: string;
  readonly p99: string;
  readonly served: string;
  readonly waiting: number;
  readonly dropped: number;
}

export function figuresOf(run: Run, look: Look): TenantFigure[] {
  return run.settings.tenants.map(({ name }, tenant) => {
    const recent = run.firstTokens.recent(tenant, run.reachedMs);
    return {
      name,
      p50: recent === undefined ? '–' : inSeconds(recent.p50Ms),
      p99: recent === undefined ? '–' : inSeconds(recent.p99Ms),
      served: recent === undefined ? '–' : `${recent.perSecond.toFixed(1)}/s`,
      waiting: look.flows[tenant] ?? 0,
      dropped: run.dropped[tenant] ?? 0,
    };
  });
}

/** The picture in a sentence, for those who do not see it. */
export function sentenceOf(run: Run, { waiting, inFlight, saturation, bands, quotas }: Look): string {
  const closed = bands.filter((band) => saturation >= band.ceiling && band.waiting > 0).map(({ priority }) => priority);
  const open =
    waiting > 0 && quotas.length > 0 ? 'there are seats, and a quota holds requests back' : 'the gate is open';
  const gate = closed.length === 0 ? open : `the gate is closed for priority ${closed.join(' and ')}`;
  const spent = quotas.map(({ unit, taken }) => ` Of the quota of ${unit} ${Math.round(taken * 100)} % is taken.`);
  const down = run.servers.filter(({ isDown }) => isDown).map(({ id }) => ` ${id} is down.`);
  const slow = run.servers.filter(({ isDown, isSlow }) => isSlow && !isDown).map(({ id }) => ` ${id} is slow.`);
  return `At ${(run.reachedMs / 1000).toFixed(0)} s ${waiting} requests wait and ${inFlight} run; ${gate}.${[...spent, ...down, ...slow].join('')}`;
}

function inSeconds(ms: number): string {
  return ms < 995 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)} s`;
}
