/** Proxies that cut connections which are silent for five seconds, and streams that wait for twenty behind them. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fileOf, startGateway } from '../gateway/support/gateway.js';
import { sdkStreams, serveAnyone } from '../gateway/support/sdk-streams.js';
import { startUpstream } from '../gateway/support/upstream.js';
import { until } from '../integration/support/until.js';
import { freePort } from '../support/free-port.js';

const { HEADGATE_NGINX: nginx, HEADGATE_HAPROXY: haproxy } = process.env;
if (nginx === undefined || haproxy === undefined)
  process.stderr.write('\nNOT RUN: no nginx or no haproxy; `npm run check -- programs` installs them\n');

const waitMs = 20_000;

interface Proxy {
  readonly program: string;
  readonly file: string;
  readonly args: (file: string, folder: string) => readonly string[];
  readonly config: (port: number, target: string, folder: string) => string;
}

const proxies: Readonly<Record<string, Proxy>> = {
  nginx: {
    program: nginx ?? 'nginx',
    file: 'nginx.conf',
    args: (file, folder) => ['-c', file, '-p', folder],
    config: (port, target, folder) => `daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  server {
    listen 127.0.0.1:${port};
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
    config: (port, target) => `defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 5s
frontend clients
  bind 127.0.0.1:${port}
  default_backend gateway
backend gateway
  server gateway ${target}
`,
  },
};

/** In front of `target`, host and port; its URL. */
async function start({ program, file, args, config }: Proxy, target: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-proxy-'));
  const port = await freePort();
  const path = join(folder, file);
  writeFileSync(path, config(port, target, folder));
  const child = spawn(program, args(path, folder), { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => (said += chunk));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  let isUp = false;
  while (!isUp) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}: ${said}`);
    isUp = await fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return url;
}

/** What each client reads, or reports, of a stream that waits in this gateway behind this proxy. */
async function ask(proxy: Proxy, waiting: object): Promise<Readonly<Record<string, string>>> {
  const server = await startUpstream((received, index) => (index === 0 ? undefined : serveAnyone(received, index)));
  const { gateway, post } = await startGateway(fileOf([server.url], { waiting }));
  const holding = new AbortController();
  post({ model: 'llama', messages: [] }, { signal: holding.signal }).catch(() => {});
  await until('the seat is taken', () => server.received.length === 1);
  const url = await start(proxy, new URL(gateway.url).host);
  setTimeout(() => holding.abort(), waitMs);
  const read = Object.entries(sdkStreams).map(async ([client, stream]) => {
    const text = await stream(url).catch((error: Error) => `reports: ${error.name} ${error.message}`);
    return [client, text] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}

describe.runIf(nginx !== undefined && haproxy !== undefined)('a wait of twenty seconds behind', () => {
  it('nginx and haproxy ends well with signs of life, and is cut without them', { timeout: 120_000 }, async () => {
    const all = Object.entries(proxies).flatMap(([name, proxy]) => [
      ask(proxy, { after: '2s', every: '2s' }).then((read) => [name, 'shows life', read] as const),
      ask(proxy, { enabled: false }).then((read) => [name, 'silent', read] as const),
    ]);
    for (const [name, kind, read] of await Promise.all(all)) {
      expect(Object.keys(read), name).toEqual(Object.keys(sdkStreams));
      for (const [client, text] of Object.entries(read))
        if (kind === 'shows life') expect(text, `${name}, ${client}`).toBe('served');
        else expect(text, `${name}, ${client}`).toMatch(/^reports: /);
    }
  });
});
