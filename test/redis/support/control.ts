/** The control that must fail: `held` does not cover the cap that a replica goes on with when the reply is lost. */
export function withoutStepFive(text: string): string {
  const changed = text.replace('math.max(grant, cap, inFlight)', 'grant');
  if (changed === text) throw new Error('the step is written otherwise');
  return changed;
}
