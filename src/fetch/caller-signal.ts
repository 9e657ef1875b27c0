/** One signal for everything that may cancel a call: its caller, and the host's request that caused it. */

/** Aborts when the first of them does; undefined where there is none. */
export function callerSignal(own: AbortSignal | undefined, context: AbortSignal | undefined): AbortSignal | undefined {
  if (own === undefined || context === undefined || own === context) return own ?? context;
  return AbortSignal.any([own, context]);
}
