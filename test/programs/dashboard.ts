/** What is in docs/grafana, as Prometheus gets to see it. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const folder = new URL('../../docs/grafana/', import.meta.url);

export const alertsFile: string = fileURLToPath(new URL('alerts.yaml', folder));

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly {
    readonly expr: string;
    readonly refId: string;
    readonly datasource: { readonly uid: string };
  }[];
}

export interface Dashboard {
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[];
  };
}

export const dashboard: Dashboard = JSON.parse(readFileSync(new URL('headgate.json', folder), 'utf8'));

/** How a dashboard refers to a variable. */
export function variable(name: string): string {
  return `\${${name}}`;
}

/** As Grafana does, with everything selected. */
export function withVariables(text: string, rateInterval: string): string {
  return text
    .replaceAll('$__rate_interval', rateInterval)
    .replaceAll(variable('prefix'), 'inference_extension_')
    .replaceAll(/\$(?:pool|priority|tenant)\b/g, '.*');
}

export const panels: readonly Panel[] = dashboard.panels.filter(({ type }) => type !== 'row');

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export const alerts: readonly Alert[] = parse(readFileSync(alertsFile, 'utf8')).groups.flatMap(
  ({ rules }: { rules: Alert[] }) => rules,
);

/**
 * The series that an alert reads, but for the one that only gateways in shadow mode have: an alert itself has data only
 * when something is wrong.
 */
export function selectorsOf({ expr }: Alert): string[] {
  return [...expr.matchAll(/(?:inference_extension|headgate|nodejs)_\w+(?:\{[^}]*\})?|\{__name__[^}]*\}/g)]
    .map(([selector]) => selector)
    .filter((selector) => !selector.endsWith('_shadow'))
    .filter((selector, index, all) => all.indexOf(selector) === index);
}
