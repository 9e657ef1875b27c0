// @ts-check
// What gateways without flow control do: each request is pushed at once to the next server in turn. A process of its
// own.

import { createServer } from 'node:http';
import { announce, obeyParent } from './processes.mjs';
import { forward } from './proxy.mjs';

const upstreams = process.argv.slice(2).map((url, index) => ({ id: `server-${index + 1}`, url, inFlight: 0 }));
let turn = 0;

const server = createServer((req, res) => {
  const upstream = upstreams[turn % upstreams.length];
  turn += 1;
  if (upstream) forward(req, res, upstream);
});
server.keepAliveTimeout = 120_000;
obeyParent();
server.listen(0, '127.0.0.1', () => announce(server));
