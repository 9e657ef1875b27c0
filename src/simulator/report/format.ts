/** Figures as people read them: three digits that count, and a unit. */
import * as s from '../../base/schema/schema.js';
import { checkArguments } from '../check-arguments.js';

export function ms(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  if (value >= 60_000) return `${(value / 60_000).toFixed(1)} min`;
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return value >= 100 ? `${value.toFixed(0)} ms` : `${value.toFixed(value >= 10 ? 1 : 2)} ms`;
}

export function count(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(2)} M`;
  if (Math.abs(value) >= 1e5) return `${(value / 1000).toFixed(0)} k`;
  return Number.isInteger(value) || Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
}

export function percent(value: number): string {
  return Number.isNaN(value) ? '–' : `${(value * 100).toFixed(1)} %`;
}

export function decimals(value: number, digits: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(digits);
}

const anyNumber = s.value('a number', (given): given is number => typeof given === 'number');
const units = s.oneOf('ms', 'ratio', 'per second', 'count');

/** A figure with its unit, such as `3.25 s`, `12.5 %`, `4.10/s`; `–` for NaN. @throws FlowConfigError */
export function figure(value: number, unit: 'ms' | 'ratio' | 'per second' | 'count'): string {
  checkArguments('formatFigure', { value, unit }, { value: anyNumber, unit: units });
  if (unit === 'ms') return ms(value);
  if (unit === 'ratio') return percent(value);
  return unit === 'count' ? count(value) : `${count(value)}/s`;
}

/** Columns of text, the first to the left and the others to the right. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => (row[index] ?? '').length)));
  return rows.map((row) =>
    row
      .map((cell, index) => (index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}
