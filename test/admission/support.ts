/** What tests of admission policies share. */
import type { AdmissionPolicy } from '../../src/index.js';
import type { AdmissionKey, Rejection } from '../../src/types/index.js';

export const standard: AdmissionKey = { fairnessId: 'alice', priority: 0 };
export const sheddable: AdmissionKey = { fairnessId: 'alice', priority: -1 };

export function refusalOf(answer: 'admit' | Rejection): Rejection {
  if (answer === 'admit') throw new Error('expected a refusal, got an admission');
  return answer;
}

/** A policy that answers as it is told and writes down what happens to it. */
export function scripted(
  type: string,
  answer: 'admit' | Rejection | Error,
  log: string[] = [],
): AdmissionPolicy & { readonly log: string[] } {
  return {
    type,
    log,
    admit() {
      log.push(`${type} asked`);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    released(_request, _key, usage) {
      log.push(
        `${type} released${usage === undefined ? '' : ` with ${usage.promptTokens + usage.completionTokens} tokens`}`,
      );
    },
  };
}
