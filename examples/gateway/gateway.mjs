// @ts-check
// The gateway, a process of its own: a streaming reverse proxy with headgate in it. `--flow-control off` leaves out the
// middleware and nothing else: the router then sends each request at once to the server with the fewest in flight.
// `--eviction` does what `enableEviction: true` in gateway.yaml does, and `--round-robin` lets tenants share by turns
// instead of by tokens.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { EndpointPool, FlowController, inFlightEviction, roundRobin } from 'headgate';
import { loadConfig } from 'headgate/config';
import { flowKeyFromHeaders } from 'headgate/http';
import { flowControl } from 'headgate/node';
import { prometheusMetrics } from 'headgate/prometheus';
import { Registry } from 'prom-client';
import { ApiError, sendError } from './openai.mjs';
import { announce, answerParent, obeyParent } from './processes.mjs';
import { forward } from './proxy.mjs';

/** @import { IncomingMessage } from 'node:http' */
/** @import { HttpFlowRequest, NodeRequest, WithFlow } from 'headgate/node' */
/** @import { Upstream } from './proxy.mjs' */

const { values: args } = parseArgs({
  options: {
    server: { type: 'string', multiple: true, default: [] },
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '0' },
    'flow-control': { type: 'string', default: 'on' },
    eviction: { type: 'boolean', default: false },
    'round-robin': { type: 'boolean', default: false },
    'trust-flow-headers': { type: 'boolean', default: false },
  },
});

// Who may name the tenant and the objective? Nobody, unless told so; and never a client from elsewhere, who would name
// what suits it.
const isLoopback = ['127.0.0.1', '::1', 'localhost'].includes(args.host);
if (args['trust-flow-headers'] && !isLoopback) {
  throw new Error(`--trust-flow-headers is for loopback only, where every client is yours; got --host ${args.host}`);
}

const config = loadConfig(readFileSync(new URL('gateway.yaml', import.meta.url), 'utf8'));
for (const warning of config.warnings) console.warn(warning);
const generations = new Set(['/v1/completions', '/v1/chat/completions']);
/** @type {Map<string, Upstream>} */
const upstreams = new Map(
  args.server.map((server) => {
    const [id = '', url = ''] = server.split('=');
    return [id, { id, url, inFlight: 0 }];
  }),
);

function leastBusy() {
  return [...upstreams.values()].reduce((least, upstream) => (upstream.inFlight < least.inFlight ? upstream : least));
}

/** @type {FlowController<HttpFlowRequest<NodeRequest>> | undefined} */
let flow;

/** What `GET /metrics` answers; empty without flow control. */
const register = new Registry();

/** About as many as a prompt of so many bytes has. */
const bytesPerToken = 4;

/** Middleware that waits until the request may go, and leaves on `req.flow` where to. */
function createGate() {
  const pool = new EndpointPool();
  for (const id of upstreams.keys()) pool.add(id);
  const byTurns = args['round-robin'] && {
    bands: config.options.bands?.map((band) => ({ ...band, fairness: roundRobin() })),
  };
  flow = new FlowController({
    ...config.options,
    ...byTurns,
    ...(args.eviction && { eviction: inFlightEviction() }),
    pool,
  });
  prometheusMetrics(flow, { register, inferencePool: 'default-pool' });
  return flowControl(flow, {
    classify: ({ headers }) => ({
      ...flowKeyFromHeaders(headers, { objectives: config.objectives, trust: args['trust-flow-headers'] }),
      tokens: Math.ceil(Number(headers['content-length'] ?? 0) / bytesPerToken),
    }),
    skip: (req) => req.method !== 'POST' || !generations.has(req.url ?? ''),
    body: 'openai',
  });
}

/** @type {import('headgate/node').FlowControlMiddleware} */
const gate = args['flow-control'] === 'on' && config.enabled ? createGate() : (_req, _res, next) => next();

const server = createServer((/** @type {WithFlow<IncomingMessage>} */ req, res) => {
  if (req.url === '/health') {
    res.end();
    return;
  }
  if (req.url === '/metrics') {
    register.metrics().then(
      (text) => res.setHeader('content-type', register.contentType).end(text),
      () => sendError(res, new ApiError(500, 'The metrics could not be read.')),
    );
    return;
  }
  if (!req.url?.startsWith('/v1/')) {
    sendError(res, new ApiError(404, `There is nothing at ${req.method} ${req.url}.`));
    return;
  }
  gate(req, res, (error) => {
    if (error) sendError(res, new ApiError(500, 'The gateway failed.'));
    else
      forward(
        req,
        res,
        upstreams.get(req.flow?.lease.endpoint?.id ?? '') ?? leastBusy(),
        req.flow?.signal,
        req.flow?.lease,
      );
  });
});
server.keepAliveTimeout = 120_000;
server.on('error', (error) => {
  console.error(`The gateway cannot listen on ${args.host}:${args.port}: ${error.message}`);
  process.exit(1);
});
obeyParent();
answerParent('stats', () => flow?.stats());
server.listen(Number(args.port), args.host, () => announce(server));
