/** Which series of a metric are meant: `name`, or `name{label="value"}`. */

export interface MetricSelector {
  readonly metric: string;
  /** Labels that a series must have, with these values. */
  readonly labels: readonly (readonly [name: string, value: string])[];
  /** The figure is this label's value, and not the sample's. */
  readonly valueLabel: string | undefined;
}

const form = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?$/;
const pair = /\s*([A-Za-z_]\w*)\s*=\s*(?:"([^"\\]*)"|([^\s",{}\\]+))\s*(,|$)/y;

/** Undefined when the text is no selector. Values need no quotes, as in llm-d's specifications of metrics. */
export function parseSelector(text: string, valueLabel?: string): MetricSelector | undefined {
  const [, metric, conditions = ''] = form.exec(text.trim()) ?? [];
  if (metric === undefined) return undefined;
  const labels: (readonly [string, string])[] = [];
  for (let at = 0; at < conditions.length; at = pair.lastIndex) {
    pair.lastIndex = at;
    const match = pair.exec(conditions);
    if (match === null) return undefined;
    labels.push([match[1] ?? '', match[2] ?? match[3] ?? '']);
  }
  return { metric, labels, valueLabel };
}

export function isSelected({ labels }: MetricSelector, of: ReadonlyMap<string, string>): boolean {
  return labels.every(([name, value]) => of.get(name) === value);
}
