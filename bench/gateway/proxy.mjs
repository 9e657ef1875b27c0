// One proxy in a process of its own: `node proxy.mjs <name> <port of the model server>`. Tells its port to the parent,
// and ends with it.
import { once } from 'node:events';
import { createServer, Agent as HttpAgent, request } from 'node:http';

const hopByHop = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'host',
  'upgrade',
  'te',
  'trailer',
  'proxy-connection',
]);

function endToEnd(headers) {
  const kept = {};
  for (const name in headers) if (!hopByHop.has(name)) kept[name] = headers[name];
  return kept;
}

async function listening(server) {
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', 8192);
  await once(server, 'listening');
  return server.address().port;
}

const proxies = {
  /**
   * What one would write by hand: headers, both bodies, and an end for each side when the other leaves. `pipe` and not
   * `pipeline`, which on Node 20 makes an error with a stack after every answer.
   */
  'node:http'(upstream) {
    const agent = new HttpAgent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
    const server = createServer((req, res) => {
      const options = {
        agent,
        host: '127.0.0.1',
        port: upstream,
        path: req.url,
        method: req.method,
        headers: endToEnd(req.headers),
      };
      const asked = request(options, (answer) => {
        res.writeHead(answer.statusCode, endToEnd(answer.headers));
        answer.once('error', () => res.destroy());
        answer.pipe(res);
      });
      asked.once('error', () => (res.headersSent ? res.destroy() : res.writeHead(502).end()));
      res.once('close', () => res.writableFinished || asked.destroy());
      req.pipe(asked);
    });
    return listening(server);
  },

  async undici(upstream) {
    const { Pool } = await import('undici');
    const pool = new Pool(`http://127.0.0.1:${upstream}`, { connections: null });
    const server = createServer((req, res) => {
      const left = new AbortController();
      res.once('close', () => res.writableFinished || left.abort());
      const options = {
        path: req.url,
        method: req.method,
        headers: endToEnd(req.headers),
        body: req,
        signal: left.signal,
      };
      pool
        .stream(options, ({ statusCode, headers }) => res.writeHead(statusCode, endToEnd(headers)))
        .catch(() => (res.headersSent ? res.destroy() : res.writeHead(502).end()));
    });
    return listening(server);
  },

  async 'http-proxy-3'(upstream) {
    const { createProxyServer } = await import('http-proxy-3');
    const agent = new HttpAgent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
    const proxy = createProxyServer({ target: `http://127.0.0.1:${upstream}`, agent });
    proxy.on('error', (_error, _req, res) => res.destroy?.());
    return listening(createServer((req, res) => proxy.web(req, res)));
  },

  async '@fastify/http-proxy'(upstream) {
    const { default: fastify } = await import('fastify');
    const { default: plugin } = await import('@fastify/http-proxy');
    const app = fastify({ keepAliveTimeout: 60_000 });
    app.register(plugin, { upstream: `http://127.0.0.1:${upstream}`, undici: { connections: 4096 } });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server.address().port;
  },
};

const [name, upstream] = process.argv.slice(2);
process.send(await proxies[name](Number(upstream)));
process.on('disconnect', () => process.exit(0));
