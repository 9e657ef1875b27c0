/** One request on its way through the gateway. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestFlow } from '../adapters/http/request-flow.js';
import type { HttpErrorResponse } from '../adapters/http/to-http-response.js';
import type { Classification, NodeRequest } from '../adapters/node/index.js';
import { NodeExchange } from '../adapters/node/node-exchange.js';
import { onResponseEnd } from '../adapters/node/on-response-end.js';
import { respond, setFlowHeaders } from '../adapters/node/respond.js';
import type { Drop, Lease } from '../index.js';
import type { GenerationBody } from './bodies/generation-body.js';
import type { SenderConfig } from './settings/gateway-config.js';
import type { SizeEstimate } from './sizes/prompt-sizes.js';

/** The property of a request that holds its state. It costs less than a WeakMap's entry to write, read and collect. */
const stateKey: unique symbol = Symbol('request state');

export type GatewayHttpRequest = IncomingMessage & { [stateKey]?: RequestState };

/** The state of a request that policies and adapters hand back; undefined for one that a host enqueued itself. */
export function knownStateOf(req: NodeRequest | undefined): RequestState | undefined {
  return (req as GatewayHttpRequest | undefined)?.[stateKey];
}

const json = /^application\/(?:[\w.-]+\+)?json\b/i;

/** Who ends an answer that has begun. */
type Cutter = 'client' | 'upstream' | 'timeout' | 'eviction' | 'gateway' | 'shutdown';
export type Cut = Cutter | undefined;

/** All that is known of a request, and its exchange, in one object: every request would pay for another one. */
export class RequestState extends NodeExchange<GatewayHttpRequest> {
  readonly res: ServerResponse;
  readonly id: string;
  readonly path: string;
  readonly startedAtMs: number = performance.now();
  sender: SenderConfig | undefined = undefined;
  /** The sender, as limits for each sender know it: its tenant, or its address if it gave no key. */
  share = '';
  /** What flow control gave to its last attempt. */
  granted: RequestFlow | undefined = undefined;
  /** The whole body; undefined before it is here, and once an answer has begun. */
  bytes: Buffer | undefined = undefined;
  /** What is known of a body in JSON. */
  body: GenerationBody | undefined = undefined;
  /** The tokens that it is expected to take, if its body is JSON. */
  size: SizeEstimate | undefined = undefined;
  /** The model that the client asked for. */
  model: string | undefined = undefined;
  /** The model that the server is asked for. */
  targetModel: string | undefined = undefined;
  /** It is kept, because the headers that it was read from are gone when it is needed again. */
  classification: Classification | undefined = undefined;
  /** The server of the socket whose turn it is. */
  pinnedTo: string | undefined = undefined;
  /** Servers that it was sent to; the next attempt goes to another one if it can. */
  readonly attempts: string[] = [];
  /** The lease of the attempt that its server put off, until the request waits again. */
  putOff: Lease | undefined = undefined;
  drop: Drop | undefined = undefined;
  /** In mode `shadow`: the drop that it would have been. */
  wouldDrop: Drop | undefined = undefined;
  /** True when the gateway says which origins may read the answer. */
  ownsCors = false;
  /** The time that it waited, in all attempts together. */
  queuedMs = 0;
  /** When its last attempt got its seat. The lease tells the instant of its operation, which others may share. */
  seatedAtMs: number | undefined = undefined;
  /** From its arrival to the first token of a streamed answer. */
  ttftMs: number | undefined = undefined;
  /** True when the client gets the answer of a server. */
  isPassedOn = false;
  /** True when this answer is a success. */
  isServed = false;
  cutBy: Cutter | undefined = undefined;
  /** The code of the failure, for the log. */
  failureCode: string | undefined = undefined;

  /** Whether its body is to be JSON. */
  readonly isJson: boolean;
  private readonly ends: ((isSent: boolean) => void)[] = [];
  private sent: boolean | undefined = undefined;

  constructor(req: GatewayHttpRequest, res: ServerResponse) {
    super(req, res, req, undefined);
    this.res = res;
    req[stateKey] = this;
    this.path = (req.url ?? '/').split('?', 1)[0] ?? '/';
    const given = req.headers['x-request-id'];
    this.id = typeof given === 'string' && /^[\w.:/+=@-]{1,128}$/.test(given) ? given : randomUUID();
    this.isJson = json.test(req.headers['content-type'] ?? '');
  }

  get lease(): Lease | undefined {
    return this.granted?.lease;
  }

  /** Whether the answer comes piece by piece. */
  get isStream(): boolean {
    return this.body?.isStream === true;
  }

  /** Listens to the end of the response. */
  watch(): void {
    onResponseEnd(this.req, this.res, (isSent) => {
      this.sent = isSent;
      for (const end of this.ends) end(isSent);
    });
  }

  override onEnd(done: (isSent: boolean) => void): void {
    if (this.sent === undefined) this.ends.push(done);
    else done(this.sent);
  }

  /** The answers of servers bring these headers among their own. */
  override setOwnHeaders(): void {
    if (this.res.headersSent) return;
    this.res.setHeader('x-request-id', this.id);
    if (this.granted !== undefined) setFlowHeaders(this.res, this.granted);
  }

  reject(response: HttpErrorResponse): void {
    this.setOwnHeaders();
    respond(this.req, this.res, response);
  }
}

/** Who cut an answer short that had begun; undefined for an answer that was sent whole, and where there was none. */
export function cutterOf({ res, cutBy = 'client' }: RequestState, sent: boolean, drains: boolean): Cut {
  if (sent || !res.headersSent) return undefined;
  return drains && cutBy === 'client' ? 'shutdown' : cutBy;
}
