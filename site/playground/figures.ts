/** What the page writes beside the picture. */
import { active } from './faults.ts';
import type { Look, Run } from './run.ts';
import type { Fault, FaultKind } from './settings.ts';

export interface TenantFigure {
  readonly name: string;
  readonly p50: string;
  readonly p99: string;
  readonly served: string;
  readonly waiting: number;
  readonly dropped: number;
  /** Undefined without budgets. */
  readonly budget: string | undefined;
}

/** What must hold, in words. */
export interface InvariantFigures {
  readonly looks: number;
  readonly violations: readonly string[];
  readonly seats: string;
  readonly requests: string;
  /** Empty where one replica is alone. */
  readonly shares: string;
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
      budget: look.budgets[tenant] === undefined ? undefined : inPercent(look.budgets[tenant]),
    };
  });
}

export function invariantFigures(run: Run, { shares }: Look): InvariantFigures {
  const { looks, violations, books, atMs } = run.invariants;
  const { sent, ended, dropped, waiting, running, seats } = books;
  const atS = (atMs / 1000).toFixed(0);
  const most = run.seats * run.servers.length;
  return {
    looks,
    violations: [...violations],
    seats: `Seats at ${atS} s: ${sumOf(seats)} of ${most} are taken, and ${running} requests run.`,
    requests: `Nothing is lost: of ${sent} requests ${ended} ended, ${dropped} were dropped, ${waiting} wait and ${running} run.`,
    shares:
      shares.length === 0
        ? ''
        : `The replicas may take ${sumOf(shares)} of ${most}.${run.isCut ? ' Redis is cut.' : ''}`,
  };
}

function sumOf(parts: readonly number[]): string {
  const sum = parts.reduce((total, part) => total + part, 0);
  return parts.length < 2 ? String(sum) : `${parts.join(' + ')} = ${sum}`;
}

/** The picture in a sentence, for those who do not see it. */
export function sentenceOf(run: Run, { waiting, inFlight, saturation, bands, quotas, ledger }: Look): string {
  const closed = bands.filter((band) => saturation >= band.ceiling && band.waiting > 0).map(({ priority }) => priority);
  const open =
    waiting > 0 && quotas.length > 0 ? 'there are seats, and a quota holds requests back' : 'the gate is open';
  const gate = closed.length === 0 ? open : `the gate is closed for priority ${closed.join(' and ')}`;
  const spent = quotas.map(({ unit, taken }) => ` Of the quota of ${unit} ${inPercent(taken)} is taken.`);
  const held = ledger === undefined ? [] : [` In the ledger the fullest server is at ${inPercent(ledger)}.`];
  const down = run.servers.filter(({ isDown }) => isDown).map(({ id }) => ` ${id} is down.`);
  const slow = run.servers.filter(({ isDown, isSlow }) => isSlow && !isDown).map(({ id }) => ` ${id} is slow.`);
  return `At ${(run.reachedMs / 1000).toFixed(0)} s ${waiting} requests wait and ${inFlight} run; ${gate}.${[...spent, ...down, ...slow, ...held, ...faultsOf(run)].join('')}`;
}

/** Those that no server shows. */
function faultsOf({ settings: { faults, tenants, flood }, reachedMs, seats, isCut }: Run): string[] {
  const on = (kind: FaultKind): Fault | undefined => active(faults, kind, reachedMs / 1000);
  const flooding = on('flood');
  return [
    ...(isCut ? [' Redis is cut.'] : []),
    ...(flooding === undefined ? [] : [` ${tenants[flooding.of - 1]?.name ?? ''} sends ${flood} times its load.`]),
    ...(on('reload') === undefined ? [] : [` After the reload each server has ${seats} seats.`]),
  ];
}

function inPercent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function inSeconds(ms: number): string {
  return ms < 995 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)} s`;
}
