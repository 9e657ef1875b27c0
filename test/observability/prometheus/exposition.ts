/** Reads what a registry prints. */
import type { Registry } from 'prom-client';

export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export async function scrape(register: Registry): Promise<Series[]> {
  const lines = (await register.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', list = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const labels = Object.fromEntries(
      [...list.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label, text]),
    );
    return { name, labels, value: Number(value) };
  });
}

/** The samples of one metric whose labels include those given. */
export function select(
  series: readonly Series[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Series[] {
  const isIt = (of: Series): boolean => Object.entries(labels).every(([label, value]) => of.labels[label] === value);
  return series.filter((of) => of.name === `inference_extension_flow_control_${name}` && isIt(of));
}

export function sum(series: readonly Series[]): number {
  return series.reduce((total, { value }) => total + value, 0);
}
