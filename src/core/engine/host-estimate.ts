/** What a host's option `estimate` may say of a request: copied, because foreign values may change. */
import { type Question, question, wrong } from '../../base/faults/plugin-guard.js';
import type { TokenEstimate } from '../../tiers/views.js';

const most = 2 ** 50;

export const hostEstimate: Question<'estimate', TokenEstimate | undefined> = /* @__PURE__ */ question(
  'estimate',
  'numbers of tokens from 0 up, or undefined',
  (answer) => {
    if (answer === undefined) return undefined;
    const { inputTokens, cachedTokens = 0, outputTokens } = answer as TokenEstimate;
    const areRight = [inputTokens, cachedTokens, outputTokens ?? 0].every((tokens) => tokens >= 0 && tokens <= most);
    return areRight ? { inputTokens, cachedTokens, outputTokens } : wrong;
  },
);

/** What a request holds while it runs, an integer. */
export function heldTokens({ inputTokens, cachedTokens = 0, outputTokens = 0 }: TokenEstimate): number {
  return Math.ceil(Math.max(inputTokens - cachedTokens, 0) + outputTokens);
}
