/** The names of headers on the wire. A header with an old and a new name lists the new one first; both are read. */

/** A header's names, the preferred one first, in lower case. */
export type HeaderNames = readonly [name: string, ...aliases: string[]];

/** The tenant. */
export const fairnessIdHeader: HeaderNames = ['x-llm-d-inference-fairness-id', 'x-gateway-inference-fairness-id'];
/** The name of an InferenceObjective, whose priority applies. */
export const objectiveHeader: HeaderNames = ['x-llm-d-inference-objective', 'x-gateway-inference-objective'];
/** A policy class of Dynamo: the name of an objective. No control header, because Dynamo's servers read it. */
export const policyClassHeader = 'x-dynamo-meta-policy-class';
/** What names the priority of a request. */
export const priorityHeaders: HeaderNames = [...objectiveHeader, policyClassHeader];
/** The time-to-first-token target, ms. */
export const sloTtftHeader: HeaderNames = ['x-llm-d-slo-ttft-ms', 'x-slo-ttft-ms'];
/** How long the request may wait at most, a duration such as `1.5s`. It only shortens the time to live. */
export const waitHeader = 'x-llm-d-inference-ttl';
/** The time-per-output-token target, ms. Not read by flow control. */
export const sloTpotHeader: HeaderNames = ['x-llm-d-slo-tpot-ms', 'x-slo-tpot-ms'];
/** The model to use instead of the one in the body. Not read by flow control. */
export const modelNameRewriteHeader: HeaderNames = ['x-llm-d-model-name-rewrite', 'x-gateway-model-name-rewrite'];
/** The endpoints that a load balancer in front allows, see `subsetHint()`. */
export const endpointSubsetHeader = 'x-gateway-destination-endpoint-subset';

/** The session whose turn a request is, and the one that began it: our own names, believed of trusted senders. */
export const sessionHeader = 'x-headgate-session-id';
export const parentSessionHeader = 'x-headgate-parent-session-id';

/** Response header: why a request was dropped. */
export const droppedReasonHeader = 'x-llm-d-request-dropped-reason';
/** Response header: time spent in flow control, whole ms. */
export const queueDurationHeader = 'x-llm-d-flow-queue-duration-ms';
/** Response header: how many requests more may wait in the band of this one. */
export const bandHeadroomHeader = 'x-llm-d-flow-band-headroom-requests';

/** Values of the dropped-reason header. `rejected-*`: no model server worked on the request: a retry wastes nothing. */
export type DroppedReason =
  | 'rejected-saturated'
  | 'rejected-ttl-expired'
  | 'rejected-context-cancelled'
  | 'rejected-no-endpoints'
  | 'rejected-infeasible'
  | 'rejected-shutting-down'
  | 'evicted-priority';

/** The control headers: what a request may say to a gateway, and a gateway must not repeat to a model server. */
export const controlHeaders: ReadonlySet<string> = new Set([
  ...fairnessIdHeader,
  ...objectiveHeader,
  ...sloTtftHeader,
  ...sloTpotHeader,
  ...modelNameRewriteHeader,
  waitHeader,
  sessionHeader,
  parentSessionHeader,
  'x-llm-d-video-fps',
  'x-llm-d-video-duration-seconds',
  'x-llm-d-video-resolution',
  'x-gateway-destination-endpoint',
  'x-gateway-destination-endpoint-served',
  endpointSubsetHeader,
  droppedReasonHeader,
]);

/** Headers that are never copied from a client to a server. Source: llm-d-router, its system-owned headers. */
export const systemOwnedHeaders: ReadonlySet<string> = new Set([...controlHeaders, 'content-length']);
