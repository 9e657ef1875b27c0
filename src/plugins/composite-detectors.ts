/** Detectors made of others, as files spell them: children are named, and made by whoever reads the file. */
import * as z from 'zod/mini';
import { type ConfigIssue, FlowConfigError } from '../base/faults/flow-config-error.js';
import { opensBelowClosing } from '../base/schema/cross-field-rules.js';
import { object, optional, type Report, rule, type Schema } from '../base/schema/element.js';
import { below } from '../base/schema/parse.js';
import { oneOf, text } from '../base/schema/types.js';
import type { Stage } from '../endpoints/endpoint.js';
import { type HysteresisOptions, hysteresisShape, withHysteresis } from '../gate/detectors/composite/hysteresis.js';
import { type CompositeChild, type CompositeDetector, maxOf, meanOf } from '../gate/detectors/composite/max-of.js';
import { byStage } from '../gate/detectors/composite/stage-aware.js';
import type { SaturationDetector } from '../gate/saturation-detector.js';
import { definePlugin, type PluginDefinition, type PluginReferences } from './definition.js';

interface CompositeParameters {
  detectors: readonly string[];
  /** Child → the stages that it judges; a child that is not in it judges both. */
  stages?: Readonly<Record<string, readonly Stage[]>> | undefined;
}

const atLeastOne = 'at least one entry';

const compositeParameters: Schema<CompositeParameters> = object({
  detectors: z.array(text('the name of a saturation detector'), `an array of names, ${atLeastOne}`),
  stages: optional(z.record(z.string(), z.array(oneOf('prefill', 'decode')))),
}).check(rule(namesAreSound));

function namesAreSound({ detectors, stages = {} }: CompositeParameters, report: Report): void {
  if (!Array.isArray(detectors)) return;
  if (detectors.length === 0) report(atLeastOne, ['detectors']);
  detectors.forEach((name, index) => {
    if (detectors.indexOf(name) < index) report('a name that is not in the list yet', ['detectors', index]);
  });
  for (const [name, scope] of Object.entries(stages)) {
    if (!detectors.includes(name)) report('only names that are in detectors', ['stages', name], 'a name that is not');
    else if (scope?.length === 0) report(atLeastOne, ['stages', name]);
  }
}

/** The detector of a name; what is wrong with it is told at `path`. */
function detectorOf(name: string, path: string, references: PluginReferences, issues: ConfigIssue[]): SaturationDetector | undefined {
  try {
    return references.resolve('saturationDetector', name);
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    issues.push(...error.issues.map((issue) => ({ ...issue, path: below(path, issue.path) })));
    return undefined;
  }
}

function composite(type: string, combine: (...children: CompositeChild[]) => CompositeDetector): PluginDefinition<'saturationDetector'> {
  return definePlugin({
    kind: 'saturationDetector',
    type,
    parameters: compositeParameters,
    create({ detectors, stages = {} }, references) {
      const issues: ConfigIssue[] = [];
      const children = detectors.flatMap((name, index) => {
        const detector = detectorOf(name, `detectors[${index}]`, references, issues);
        return detector === undefined ? [] : [{ name, detector, stages: stages[name] }];
      });
      // A child that is missing without an issue has been reported where it is declared.
      if (children.length < detectors.length) throw new FlowConfigError(type, issues);
      return combine(...children);
    },
  });
}

const stageType = 'stage-aware-saturation-detector';

const stageParameters: Schema<{ detector?: string | undefined; prefill?: string | undefined; decode?: string | undefined }> = object({
  detector: optional(text()),
  prefill: optional(text()),
  decode: optional(text()),
}).check(
  rule(({ detector, prefill, decode }, report) => {
    const isOne = detector !== undefined && prefill === undefined && decode === undefined;
    const isTwo = detector === undefined && prefill !== undefined && decode !== undefined;
    if (!isOne && !isTwo) report('either "detector", or both "prefill" and "decode"');
  }),
);

const stageAware: PluginDefinition<'saturationDetector'> = definePlugin({
  kind: 'saturationDetector',
  type: stageType,
  parameters: stageParameters,
  create({ detector = '', prefill = detector, decode = detector }, references) {
    const issues: ConfigIssue[] = [];
    const inPrefill = detectorOf(prefill, detector === '' ? 'prefill' : 'detector', references, issues);
    const inDecode = decode === prefill ? inPrefill : detectorOf(decode, 'decode', references, issues);
    if (inPrefill === undefined || inDecode === undefined) throw new FlowConfigError(stageType, issues);
    return byStage({ prefill: inPrefill, decode: inDecode });
  },
});

const hysteresisParameters: Schema<HysteresisOptions & { detector: string }> = object({
  detector: text('the name of a saturation detector'),
  ...hysteresisShape,
}).check(opensBelowClosing());

const hysteresis: PluginDefinition<'saturationDetector'> = definePlugin({
  kind: 'saturationDetector',
  type: 'hysteresis-saturation-detector',
  parameters: hysteresisParameters,
  create({ detector, ...options }, references) {
    const issues: ConfigIssue[] = [];
    const inner = detectorOf(detector, 'detector', references, issues);
    if (inner === undefined) throw new FlowConfigError('hysteresis-saturation-detector', issues);
    return withHysteresis(inner, options);
  },
});

export const compositeDetectors: readonly PluginDefinition[] = [
  composite('max-saturation-detector', maxOf),
  composite('mean-saturation-detector', meanOf),
  stageAware,
  hysteresis,
];
