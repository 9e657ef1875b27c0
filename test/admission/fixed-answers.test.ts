import { expect, it } from 'vitest';
import { alwaysAdmit, rejectAll } from '../../src/admission/fixed-answers.js';
import { admissionView } from '../support/pools.js';
import { sheddable, standard } from './support.js';

it('alwaysAdmit admits everybody, into an empty pool too', () => {
  const policy = alwaysAdmit();
  expect(policy.type).toBe('always-admit');
  for (const key of [standard, sheddable]) expect(policy.admit({}, key, admissionView([]))).toBe('admit');
});

it('rejectAll rejects everybody, whatever the priority', () => {
  const policy = rejectAll();
  expect(policy.type).toBe('reject-all');
  for (const priority of [100, 0, -1]) {
    expect(policy.admit({}, { fairnessId: 'a', priority }, admissionView())).toEqual({
      reason: 'every request is rejected',
    });
  }
});

it('neither looks at the saturation', () => {
  const view = admissionView();
  alwaysAdmit().admit({}, sheddable, view);
  rejectAll().admit({}, sheddable, view);
  expect(view.reads).toBe(0);
});
