// Starts the proxies that are compared. Each is `{ name, port, pids, headers, stop }`; `pids` are the processes whose
// CPU time and memory count. `start(upstream, rules)`: with `rules` a proxy that can limits what runs at a time.
import { fork, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

export function firstMessage(child, what) {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${what} ended with exit code ${code}`)));
    child.once('message', resolve);
  });
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function accepts(port, what) {
  for (let attempt = 0; attempt < 200; attempt++) {
    const isOpen = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${what} does not listen`);
}

const byHand = (name) => ({
  name,
  async start(upstream) {
    const child = fork(here('proxy.mjs'), [name, String(upstream)]);
    return { port: await firstMessage(child, name), pids: [child.pid], stop: () => child.kill() };
  },
});

const headgatePlain = `plugins:
  - { type: concurrency-detector, parameters: { maxConcurrency: 50000 } }
flowControl:
  saturationDetector: { pluginRef: concurrency-detector }
`;
/** Two classes, four tenants that name themselves by a trusted key, seats. The rest is as it is by default. */
const headgateRules = ({ seats }) => `auth:
  keys: [{ key: bench, tenant: bench, trusted: true }]
objectives: { interactive: 100, batch: -10 }
plugins:
  - { type: concurrency-detector, parameters: { maxConcurrency: ${seats} } }
flowControl:
  saturationDetector: { pluginRef: concurrency-detector }
`;

/** With all that is on by default: the log goes to a pipe, metrics are counted. */
const headgate = {
  name: 'headgate',
  isLimiting: true,
  async start(upstream, rules) {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
    const port = await freePort();
    const file = join(folder, 'gateway.yaml');
    writeFileSync(
      file,
      `listen: { host: 127.0.0.1, port: ${port} }
upstreams:
  - { id: model-server, url: http://127.0.0.1:${upstream} }
${rules === undefined ? headgatePlain : headgateRules(rules)}`,
    );
    const child = spawn(process.execPath, [here('../../dist/cli.js'), 'gateway', '--config', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.resume();
    await accepts(port, 'headgate');
    return {
      port,
      pids: [child.pid],
      headers: rules === undefined ? {} : { authorization: 'Bearer bench' },
      stop() {
        child.kill('SIGKILL');
        rmSync(folder, { recursive: true });
      },
    };
  },
};

const portkey = {
  name: 'Portkey',
  async start(upstream) {
    const port = await freePort();
    const script = here('node_modules/@portkey-ai/gateway/build/start-server.js');
    const child = spawn(process.execPath, [script, `--port=${port}`, '--headless'], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await accepts(port, 'Portkey');
    const headers = {
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${upstream}/v1`,
      authorization: 'Bearer none',
    };
    return { port, pids: [child.pid], headers, stop: () => child.kill('SIGKILL') };
  },
};

/** Debian's package, where it is installed: apt-get install nginx-light. */
const nginx = {
  name: 'nginx',
  isLimiting: true,
  isMissing: () => spawnSync('nginx', ['-v']).error !== undefined,
  async start(upstream, rules) {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
    const port = await freePort();
    writeFileSync(
      join(folder, 'nginx.conf'),
      `daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid ${folder}/pid; error_log stderr crit;
events { worker_connections 16384; }
http {
  access_log ${folder}/access.log;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  limit_conn_zone $server_name zone=all:1m; limit_conn_status 503;
  upstream model { server 127.0.0.1:${upstream}; keepalive 1024; }
  server {
    listen 127.0.0.1:${port} backlog=8192;
    ${rules === undefined ? '' : `limit_conn all ${rules.seats};`}
    location / { proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`,
    );
    const child = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], {
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    await accepts(port, 'nginx');
    const workers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number);
    return {
      port,
      pids: [child.pid, ...workers],
      stop() {
        child.kill();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};

export const subjects = [
  nginx,
  byHand('undici'),
  byHand('node:http'),
  byHand('http-proxy-3'),
  byHand('@fastify/http-proxy'),
  headgate,
  portkey,
];
