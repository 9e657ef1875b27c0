/** Numbers and states in words, for the page and for terminals. */
import type { GateState } from '../../frame.js';

const whole = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export function count(value: number): string {
  return value < 100_000 ? whole.format(value) : compact.format(value);
}

export function rate(value: number): string {
  return value < 10 ? value.toFixed(1) : count(Math.round(value));
}

export function time(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 100) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${compact.format(ms / 3_600_000)} h`;
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function bytes(value: number): string {
  let left = value;
  let unit = 0;
  for (; left >= 1024 && unit < units.length - 1; unit++) left /= 1024;
  return `${unit === 0 || left >= 100 ? Math.round(left) : left.toFixed(1)} ${units[unit]}`;
}

export function share(value: number): string {
  return `${Math.round(value * 100)} %`;
}

/** One word for each state of a gate. */
export const gateWords: Readonly<Record<GateState, string>> = {
  open: 'open',
  full: 'servers full',
  'endpoints-full': 'its endpoints are full',
  'at-cap': 'tenants at their caps',
  behind: 'higher bands first',
  'no-endpoints': 'no endpoints',
};
