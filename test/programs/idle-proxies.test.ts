/**
 * Proxies that cut connections which are silent for five seconds, and streams that wait for twenty behind them. Clients
 * speak HTTP/1.1 and HTTP/2 to the proxies, which speak HTTP/1.1 to the gateway.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch as fetchOf } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fileOf, startGateway } from '../gateway/support/gateway.js';
import { sdkStreams, serveAnyone } from '../gateway/support/sdk-streams.js';
import { startUpstream } from '../gateway/support/upstream.js';
import { until } from '../integration/support/until.js';
import { makeCertificates } from '../redis/support/certificates.js';
import { freePort } from '../support/free-port.js';

const { HEADGATE_NGINX: nginx, HEADGATE_HAPROXY: haproxy } = process.env;
if (nginx === undefined || haproxy === undefined)
  process.stderr.write('\nNOT RUN: no nginx or no haproxy; `npm run check -- programs` installs them\n');

const waitMs = 20_000;

interface Proxy {
  readonly program: string;
  readonly file: string;
  readonly args: (file: string, folder: string) => readonly string[];
  /** The answers say in `x-spoken` which version of HTTP the client spoke. */
  readonly config: (ports: Ports, target: string, folder: string) => string;
}

interface Ports {
  readonly plain: number;
  /** With TLS, where clients may choose HTTP/2. */
  readonly tls: number;
}

const proxies: Readonly<Record<string, Proxy>> = {
  nginx: {
    program: nginx ?? 'nginx',
    file: 'nginx.conf',
    args: (file, folder) => ['-c', file, '-p', folder],
    config: ({ plain, tls }, target, folder) => `daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  server {
    listen 127.0.0.1:${plain};
    listen 127.0.0.1:${tls} ssl http2;
    ssl_certificate ${folder}/both.pem; ssl_certificate_key ${folder}/both.pem;
    add_header x-spoken $server_protocol always;
    location / {
      proxy_pass http://${target}; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_read_timeout 5s; proxy_buffering off; proxy_next_upstream off;
    }
  }
}
`,
  },
  haproxy: {
    program: haproxy ?? 'haproxy',
    file: 'haproxy.cfg',
    args: (file) => ['-db', '-f', file],
    config: ({ plain, tls }, target, folder) => `defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 5s
frontend clients
  bind 127.0.0.1:${plain}
  bind 127.0.0.1:${tls} ssl crt ${folder}/both.pem alpn h2,http/1.1
  http-request set-var(txn.spoken) req.ver
  http-after-response set-header x-spoken HTTP/%[var(txn.spoken)]
  default_backend gateway
backend gateway
  server gateway ${target}
`,
  },
};

/** By version of HTTP: the URL of a proxy, and a `fetch` that speaks no other version. */
type Ways = Readonly<Record<string, { readonly url: string; readonly fetch: typeof globalThis.fetch }>>;

/** A `fetch` of undici's that fails where the proxy heard another version. */
function speaking(version: string, ca: string): typeof globalThis.fetch {
  const dispatcher = new Agent({ allowH2: version === 'HTTP/2.0', connect: { ca } });
  onTestFinished(() => dispatcher.destroy());
  const ask = async (...[url, init]: Parameters<typeof fetchOf>) => {
    const response = await fetchOf(url, { ...init, dispatcher });
    const spoken = response.headers.get('x-spoken');
    if (spoken !== version) throw new Error(`spoke ${spoken} instead of ${version}`);
    return response;
  };
  return ask as unknown as typeof globalThis.fetch;
}

/** In front of `target`, host and port. */
async function start({ program, file, args, config }: Proxy, target: string): Promise<Ways> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-proxy-'));
  const certificates = makeCertificates();
  const pem = (name: string): string => readFileSync(join(certificates.folder, name), 'utf8');
  writeFileSync(join(folder, 'both.pem'), pem('server.pem') + pem('server.key'));
  const ports = { plain: await freePort(), tls: await freePort() };
  const path = join(folder, file);
  writeFileSync(path, config(ports, target, folder));
  const child = spawn(program, args(path, folder), { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => (said += chunk));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill();
    await ended;
    certificates.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const { ca } = certificates;
  const ways: Ways = {
    'HTTP/1.1': { url: `http://127.0.0.1:${ports.plain}`, fetch: speaking('HTTP/1.1', ca) },
    'HTTP/2': { url: `https://127.0.0.1:${ports.tls}`, fetch: speaking('HTTP/2.0', ca) },
  };
  for (const { url, fetch } of Object.values(ways)) {
    let isUp = false;
    while (!isUp) {
      if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}: ${said}`);
      isUp = await fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        ({ cause, message }) => cause?.code !== 'ECONNREFUSED' && expect.fail(`${cause ?? message}`),
      );
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return ways;
}

const asked = Object.keys(sdkStreams).flatMap((client) => [`${client}, HTTP/1.1`, `${client}, HTTP/2`]);

/** What each client reads, or reports, in each version of HTTP, of a stream that waits behind this proxy. */
async function ask(proxy: Proxy, waiting: object): Promise<Readonly<Record<string, string>>> {
  const server = await startUpstream((received, index) => (index === 0 ? undefined : serveAnyone(received, index)));
  const { gateway, post } = await startGateway(fileOf([server.url], { waiting }));
  const holding = new AbortController();
  post({ model: 'llama', messages: [] }, { signal: holding.signal }).catch(() => {});
  await until('the seat is taken', () => server.received.length === 1);
  const ways = await start(proxy, new URL(gateway.url).host);
  const read = Object.entries(sdkStreams).flatMap(([client, stream]) =>
    Object.entries(ways).map(async ([version, { url, fetch }]) => {
      // The clients of two makers call it `status`, that of the third one `statusCode`.
      const text = await stream(url, fetch).catch((error) => `reports ${error.status ?? error.statusCode ?? error}`);
      return [`${client}, ${version}`, text] as const;
    }),
  );
  await until('all wait', () => gateway.flow.stats().waiting === read.length);
  setTimeout(() => holding.abort(), waitMs);
  return Object.fromEntries(await Promise.all(read));
}

describe.runIf(nginx !== undefined && haproxy !== undefined)('a wait of twenty seconds behind', () => {
  it('nginx and haproxy ends well with signs of life, and is cut without them', { timeout: 120_000 }, async () => {
    const all = Object.entries(proxies).flatMap(([name, proxy]) => [
      ask(proxy, { after: '2s', every: '2s' }).then((read) => [name, 'shows life', read] as const),
      ask(proxy, { enabled: false }).then((read) => [name, 'silent', read] as const),
    ]);
    for (const [name, kind, read] of await Promise.all(all)) {
      expect(Object.keys(read), name).toEqual(asked);
      for (const [client, text] of Object.entries(read))
        if (kind === 'shows life') expect(text, `${name}, ${client}`).toBe('served');
        else expect(text, `${name}, ${client}`).toBe('reports 504');
    }
  });
});
