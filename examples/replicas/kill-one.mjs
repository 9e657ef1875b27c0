// @ts-check
// SIGKILL for one of the replicas that serve.mjs started. Its part of the limit is free again after the lease and the
// drain.

import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @type {number[]} */
const pids = JSON.parse(readFileSync(join(tmpdir(), 'headgate-replicas.json'), 'utf8'));
const [pid] = pids;
if (pid === undefined) throw new Error('no replica runs: start node examples/replicas/serve.mjs');
process.kill(pid, 'SIGKILL');
console.log(`replica ${pid} is killed`);
