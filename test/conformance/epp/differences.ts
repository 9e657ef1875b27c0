/**
 * What this picker does otherwise than the reference, with the reason. The list of a run has those that were met in it.
 */
const reasons = {
  'control headers are taken off':
    'The reference leaves them out of what it sets, which takes nothing off: the server and the client see them.',
  'only what changes is set': 'The reference repeats every header; of two with one name it keeps the last.',
  'x-went-into-resp-headers is not set': 'It helps to debug the reference.',
  'texts of refusals': 'They are bodies that clients of OpenAI parse, with Retry-After where waiting helps.',
  'evicted-priority': 'The dropped reason of an eviction tells its cause.',
  'bytes of a body stay': 'The reference writes JSON anew: sorted, without blanks, large integers rounded.',
  'size of pieces': 'Bytes go on as they come; the reference holds back what is no event stream.',
  'deprecated names of metrics': 'The twins `inference_extension_` are not written a second time.',
  'stages of saturation': 'There is one figure for the pool; the reference tells it as `decode` and as `effective`.',
  'a model is `other` until it answers': 'Clients name models as they like, and every label is a series for ever.',
  'nothing walks while nothing can go': 'The reference looks at its queues all the time, and measures that.',
  'a request is counted at its end': 'So that the rate of errors is one of requests of the same time.',
  'tokens of nobody': 'An answer of the proxy itself, to a request that nobody decided, has no tokens.',
  'a client that leaves is no error': 'The reference counts it as ServiceUnavailable, although nobody was refused.',
  'spans are the proxy’s':
    'A `traceparent` that came goes on unchanged: a new span that nobody exports would break the trace.',
  'loose steps': 'The vector says what would be better, and this picker does that.',
} as const;
export type Difference = keyof typeof reasons;
const met = new Set<Difference>();

export function differs(name: Difference): void {
  met.add(name);
}

/** A line each. */
export function differencesMet(): string {
  return [...met].map((name) => `  ${name}: ${reasons[name]}`).join('\n');
}
