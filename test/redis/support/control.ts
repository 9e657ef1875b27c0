import { bare } from '../../../scripts/bare-lua.mjs';

/** The control that must fail: `held` does not cover the cap that a replica goes on with when the reply is lost. */
export const withoutStepFive = (text: string): string => edited(text, 'math.max(grant, cap, inFlight)', 'grant');

/** A script with other Lua in one place. @throws Error where that is not in it */
export function edited(text: string, from: string, to: string): string {
  const changed = text.replace(bare(from), to);
  if (changed === text) throw new Error(`the script has no ${from}`);
  return changed;
}
