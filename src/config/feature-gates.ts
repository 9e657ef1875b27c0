/** `featureGates: ["flowControl"]`: is flow control on? */
import { didYouMean } from '../base/faults/did-you-mean.js';
import { element } from '../base/schema/element.js';
import type { Schema } from '../index.js';

const gateName = 'flowControl';

const booleans: Readonly<Record<string, boolean>> = {
  '1': true,
  t: true,
  true: true,
  '0': false,
  f: false,
  false: false,
};

export interface FeatureGate {
  readonly name: string;
  readonly isOn: boolean;
}

/** `name`, `name=true` or `name=false`. */
export const featureGate: Schema<FeatureGate> = element((candidate, report) => {
  if (typeof candidate !== 'string' || candidate === '') {
    report(`the name of a feature gate, such as "${gateName}"`);
    return undefined;
  }
  const [name = '', value = 'true'] = candidate.split(/=(.*)/s);
  const isOn = Object.entries(booleans).find(([word]) => word === value.trim().toLowerCase())?.[1];
  if (isOn === undefined) report(`"${name}", "${name}=true" or "${name}=false"`);
  const suggestion = name === gateName ? '' : didYouMean(name, [gateName]);
  if (suggestion !== '') report(`the name of a feature gate${suggestion}`);
  return isOn === undefined || suggestion !== '' ? undefined : { name, isOn };
});

/** The last entry for flow control decides; without one it is off. Also returns gates that mean nothing here. */
export function readFeatureGates(gates: readonly FeatureGate[]): { enabled: boolean; others: string[] } {
  const ours = gates.filter(({ name }) => name === gateName);
  const others = gates.flatMap(({ name }) => (name === gateName ? [] : [name]));
  return { enabled: ours.at(-1)?.isOn ?? false, others: [...new Set(others)] };
}
