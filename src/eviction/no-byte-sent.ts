/** Only requests whose answer has not begun may be evicted: their clients lose nothing but time. */
import { withoutParameters } from '../base/policy-definition.js';
import type { EvictionFilter, EvictionFilterDefinition } from './eviction-policy.js';

/** Accepts any priority until `lease.answered` or `lease.report` told something. Source: SMG, priority scheduling. */
export function noByteSent(): EvictionFilter {
  const accepts: EvictionFilter['accepts'] = ({ hasAnswer }) => !hasAnswer;
  return { type: 'no-byte-sent-eviction-filter', accepts, stillAccepts: accepts };
}

export const noByteSentPlugin: EvictionFilterDefinition = withoutParameters(noByteSent);
