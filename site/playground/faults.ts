/** What can be broken by a click, and for how long. Faults are settings: the address carries them, with their times. */
import { type Fault, type FaultKind, lengthS, type Range, type Settings } from './settings.ts';

export const mostFaults = 8;
const usualS = 20;

export const faultRanges = {
  at: { label: 'from', min: 0, max: lengthS - 1, step: 1, unit: 's' },
  for: { label: 'for', min: 1, max: lengthS, step: 1, unit: 's' },
} as const satisfies Record<string, Range>;

/** How many servers or tenants there are that it could befall. */
export function candidates(kind: FaultKind, { servers, tenants }: Pick<Settings, 'servers' | 'tenants'>): number {
  return kind === 'flood' ? tenants.length : kind === 'outage' || kind === 'slow' ? servers : 1;
}

/** Those that befall something that is there. */
export function withFaults(settings: Settings, faults: readonly Fault[] = settings.faults): Settings {
  const known = faults.filter((fault) => fault.of <= candidates(fault.kind, settings));
  return { ...settings, faults: known.slice(0, mostFaults) };
}

export function isOn({ at, for: lengthS }: Fault, second: number): boolean {
  return second >= at && second < at + lengthS;
}

export function active(faults: readonly Fault[], kind: FaultKind, second: number): Fault | undefined {
  return faults.find((fault) => fault.kind === kind && isOn(fault, second));
}

/** The same with a fault that begins at that second, or with the end of the one that holds there. */
export function toggled(settings: Settings, kind: FaultKind, second: number): Settings {
  const { faults, tenants, servers } = settings;
  const on = active(faults, kind, second);
  if (on !== undefined) {
    const ended = { ...on, for: second - on.at };
    return { ...settings, faults: faults.flatMap((fault) => (fault !== on ? fault : ended.for > 0 ? ended : [])) };
  }
  const least = tenants.reduce((least, { rate }, index) => (rate < (tenants[least]?.rate ?? 0) ? index : least), 0);
  const of = kind === 'flood' ? least + 1 : kind === 'outage' || kind === 'slow' ? Math.min(2, servers) : 1;
  // Nobody shares anything while there is one replica.
  const replicas = kind === 'cut' ? Math.max(3, settings.replicas) : settings.replicas;
  return { ...settings, replicas, faults: [...faults, { kind, of, at: second, for: usualS }].slice(-mostFaults) };
}
