/** `headgate/ext-proc`: flow control for proxies that ask by Envoy's external processing, as an endpoint picker. */
export type { AnswerReader, ExtProcRequest, ExtProcSink, ExtProcStream } from './ext-proc-stream.js';
export { type ExtProcHandler, type ExtProcOptions, flowControl, type Ranking } from './flow-control.js';
export type { ProcessingRequest, ProcessingResponse, Struct, Value } from './messages.js';
export { type ExtProcServer, type ServeExtProcOptions, serveExtProc } from './serve-ext-proc.js';
