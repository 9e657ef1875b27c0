// Starts the proxies that are compared. Each is `{ name, port, pids, headers, stop }`; `pids` are the processes whose
// CPU time and memory count.
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

/** With all that is on by default: the log goes to a pipe, metrics are counted. */
const headgate = {
  name: 'headgate',
  async start(upstream) {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
    const port = await freePort();
    const file = join(folder, 'gateway.yaml');
    writeFileSync(
      file,
      `listen: { host: 127.0.0.1, port: ${port} }
upstreams:
  - { id: model-server, url: http://127.0.0.1:${upstream} }
plugins:
  - { type: concurrency-detector, parameters: { maxConcurrency: 5000 } }
flowControl:
  saturationDetector: { pluginRef: concurrency-detector }
`,
    );
    const child = spawn(process.execPath, [here('../../dist/cli.js'), 'gateway', '--config', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.resume();
    await accepts(port, 'headgate');
    return {
      port,
      pids: [child.pid],
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
  isMissing: () => spawnSync('nginx', ['-v']).error !== undefined,
  async start(upstream) {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
    const port = await freePort();
    writeFileSync(
      join(folder, 'nginx.conf'),
      `daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr crit;
events { worker_connections 8192; }
http {
  access_log ${folder}/access.log;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream model { server 127.0.0.1:${upstream}; keepalive 1024; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
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
