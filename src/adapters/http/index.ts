/** `headgate/http`: headers, flow keys and error responses for any framework and runtime. */

export {
  bandHeadroomHeader,
  controlHeaders,
  type DroppedReason,
  droppedReasonHeader,
  endpointSubsetHeader,
  fairnessIdHeader,
  type HeaderNames,
  modelNameRewriteHeader,
  objectiveHeader,
  queueDurationHeader,
  sloTpotHeader,
  sloTtftHeader,
  systemOwnedHeaders,
} from '../../base/headers/header-names.js';
export {
  type HeaderRecord,
  type HeaderSource,
  headerValue,
  stripFlowHeaders,
  type WebHeaders,
} from '../../base/headers/header-source.js';
export type {
  AdapterGate,
  Classification,
  ContextScope,
  FlowControlOptions,
  HttpFlowRequest,
  PlacementHints,
  RequestContext,
} from './adapter-options.js';
export {
  type BusyThresholdHandler,
  type BusyThresholdHandlerOptions,
  busyThresholdHandler,
  type HandlerRequest,
  type HandlerResponse,
} from './busy-threshold-handler.js';
export {
  type DemandHandler,
  type DemandHandlerOptions,
  type DemandSource,
  demandHandler,
  type WireDemand,
} from './demand-handler.js';
export { dynamoBody, dynamoContract, dynamoOverloadStatus } from './dynamo-contract.js';
export type { ErrorBody, ErrorObject, FormattedBody, ProblemDetails } from './error-body.js';
export type { ErrorContract } from './error-contract.js';
export {
  agentIdentity,
  agentSessionHeaders,
  type FlowKeyOptions,
  flowKeyFromHeaders,
  type HeaderFlowKey,
  type Objectives,
  sloTtftMsFromHeaders,
} from './flow-key-from-headers.js';
export type { HttpErrorMapping } from './http-error-mapping.js';
export { isOverloadRefusal, refusalWaitMs, type WorkerAnswer } from './overload-refusal.js';
export {
  type ErrorResponseOptions,
  type HttpErrorResponse,
  queueDurationHeaders,
  toHttpResponse,
} from './to-http-response.js';
