/** An EndpointPickerConfig document: feature gate, plugins, and the flowControl section. */
import * as z from 'zod/mini';
import { type FlowControllerOptions, type PluginRegistry, schemas } from '../index.js';
import { DeclaredPlugins } from './declared-plugins.js';
import type { ConfigDocument } from './documents.js';
import { featureGate, readFeatureGates } from './feature-gates.js';
import { readFlowControl } from './flow-control-section.js';
import type { Problems } from './problems.js';

/** Sections that are read here; everything else in the document is the scheduler's. */
const envelope = {
  apiVersion: schemas.oneOf('llm-d.ai/v1alpha1', 'inference.networking.x-k8s.io/v1alpha1'),
  kind: z.unknown(),
  metadata: z.optional(z.unknown()),
  featureGates: schemas.optional(z.array(featureGate)),
  plugins: schemas.optional(z.array(z.unknown())),
  saturationDetector: z.optional(z.unknown()),
  flowControl: z.optional(z.unknown()),
};

/** What the document says, as far as it is sound. */
export interface EndpointPickerConfig {
  readonly enabled: boolean;
  readonly options: FlowControllerOptions | undefined;
}

/** Reads the document; an absent one stands for the defaults. */
export function readEndpointPickerConfig(
  { body, at }: Pick<ConfigDocument, 'body' | 'at'>,
  registry: PluginRegistry,
  problems: Problems,
): EndpointPickerConfig {
  problems.check(z.looseObject(envelope), body, at);
  return { enabled: false, options: undefined };
}
