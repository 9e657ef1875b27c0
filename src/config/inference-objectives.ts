/** InferenceObjective documents: names that requests may carry, and the priority that each stands for. */
import type { Problems } from '../base/problems.js';
import * as s from '../base/schema/schema.js';
import type { Schema } from '../index.js';
import type { ConfigDocument } from './documents.js';

export const objective: Schema<Objective> = s.openObject({
  apiVersion: s.oneOf('inference.networking.x-k8s.io/v1alpha2', 'llm-d.ai/v1alpha2'),
  metadata: s.openObject({ name: s.text('the name of the objective') }),
  // The pool is the deployment's business; here one controller stands for one pool.
  spec: s.optional(s.object({ priority: s.optional(s.integer()), poolRef: s.anything() })),
});

interface Objective {
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly priority?: number | undefined } | undefined;
}

/** Objective name → priority; an objective without one has 0. */
export function readObjectives(documents: readonly ConfigDocument[], problems: Problems): Map<string, number> {
  const objectives = new Map<string, number>();
  for (const { at, body } of documents) {
    const read = problems.check(objective, body, at);
    if (read === undefined) continue;
    const { name } = read.metadata;
    if (objectives.has(name)) {
      const expected = 'a name that no other InferenceObjective has';
      problems.add(`${at}metadata.name`, expected, JSON.stringify(name));
    }
    objectives.set(name, read.spec?.priority ?? 0);
  }
  return objectives;
}
