/** One signal of all who may call a request back: its caller, and the request of the host that caused it. */

/** Aborts when the first of them does; undefined where there is none. */
export function callerSignal(own: AbortSignal | undefined, context: AbortSignal | undefined): AbortSignal | undefined {
  if (own === undefined || context === undefined || own === context) return own ?? context;
  return AbortSignal.any([own, context]);
}
