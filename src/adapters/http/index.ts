/** `headgate/http`: headers, flow keys and error responses for any framework and runtime. */
export * from '../../base/headers/header-names.js';
export type { HeaderRecord, HeaderSource, WebHeaders } from '../../base/headers/header-source.js';
export { headerValue, stripFlowHeaders } from '../../base/headers/header-source.js';
export type { PlacementHints } from './adapter-options.js';
export { type AgentSession, agentSession } from './agent-session.js';
export {
  type BusyThresholdHandler,
  type BusyThresholdHandlerOptions,
  busyThresholdHandler,
  type HandlerRequest,
  type HandlerResponse,
} from './busy-threshold-handler.js';
export * from './demand-handler.js';
export { dynamoBody, type ErrorBody, type ErrorObject, type FormattedBody, type ProblemDetails } from './error-body.js';
export { dynamoContract, dynamoOverloadStatus, type ErrorContract, type HttpErrorMapping } from './error-contract.js';
export { type Families, type FamiliesOptions, families } from './families.js';
export * from './flow-key-from-headers.js';
export type * from './middleware-types.js';
export { isOverloadRefusal, refusalWaitMs, type WorkerAnswer } from './overload-refusal.js';
export type { ErrorResponseOptions, HttpErrorResponse } from './to-http-response.js';
export { queueDurationHeaders, toHttpResponse } from './to-http-response.js';
