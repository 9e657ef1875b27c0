/** The definitions of `maxOf` and `meanOf` for files. Children are names; the loader makes their detectors. */
import { define } from '../../../base/policy-definition.js';
import * as s from '../../../base/schema/schema.js';
import type { Stage } from '../../../endpoints/endpoint.js';
import type { DetectorDefinition, DetectorReferences } from '../../saturation-detector.js';
import { type CompositeChild, type CompositeDetector, maxOf, meanOf } from './max-of.js';
import { NamedDetectors } from './named-detector.js';

interface CompositeParameters {
  detectors: readonly string[];
  /** Child → the stages that it judges; a child that is not in it judges both. */
  stages?: Readonly<Record<string, readonly Stage[]>> | undefined;
}

const parameters: s.Schema<CompositeParameters> = s.object(
  {
    detectors: s.list(s.text('the name of a saturation detector'), 'an array of names, at least one entry'),
    stages: s.optional(s.record(s.list(s.oneOf('prefill', 'decode')))),
  },
  checkNames,
);

function checkNames({ detectors, stages = {} }: CompositeParameters, report: s.Report): void {
  if (!Array.isArray(detectors)) return;
  if (detectors.length === 0) report('at least one entry', ['detectors']);
  detectors.forEach((name, index) => {
    if (detectors.indexOf(name) < index) report('a name that is not in the list yet', ['detectors', index]);
  });
  for (const [name, scope] of Object.entries(stages)) {
    if (!detectors.includes(name)) report('only names that are in detectors', ['stages', name], 'a name that is not');
    else if (scope?.length === 0) report('at least one entry', ['stages', name]);
  }
}

/* @__NO_SIDE_EFFECTS__ */ function definition(
  type: string,
  combine: (...children: CompositeChild[]) => CompositeDetector,
): DetectorDefinition {
  return define(type, parameters, ({ detectors, stages = {} }, references: DetectorReferences) => {
    const named = new NamedDetectors(references);
    const children = detectors.flatMap((name, index) => {
      const detector = named.find(name, `detectors[${index}]`);
      return detector === undefined ? [] : [{ name, detector, stages: stages[name] }];
    });
    if (children.length < detectors.length) throw named.toError(type);
    return combine(...children);
  });
}

export const maxOfPlugin: DetectorDefinition = definition('max-saturation-detector', maxOf);
export const meanOfPlugin: DetectorDefinition = definition('mean-saturation-detector', meanOf);
