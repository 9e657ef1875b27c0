/** Policy bundles of BLIS: which of them are right, and what is said of the others. */
import { expect } from 'vitest';
import { loadBlisPolicy } from '../../../src/config/index.js';
import { FlowConfigError } from '../../../src/index.js';
import { flatRunner } from '../support/flat-vectors.js';
import type { Runners } from '../support/runner.js';

/** The reference's words → ours; any other text is the name of a field. */
const ownWords: Readonly<Record<string, string>> = {
  'unknown admission policy': 'admission.policy: expected one of',
  EOF: 'empty text',
};

interface Bundle {
  yaml: string;
  valid: boolean;
  errorContains?: string;
}

export const policyBundleRunners: Runners = {
  'policy-bundle-validation': flatRunner<Bundle>(
    ['yaml', 'valid', 'errorContains'],
    ({ input: { yaml, valid, errorContains = '' } }) => {
      let error: unknown;
      try {
        loadBlisPolicy(yaml);
      } catch (thrown) {
        error = thrown;
      }
      expect(error === undefined, String(error)).toBe(valid);
      if (valid) return;
      expect(error).toBeInstanceOf(FlowConfigError);
      expect((error as FlowConfigError).message).toContain(ownWords[errorContains] ?? errorContains);
    },
  ),
};
