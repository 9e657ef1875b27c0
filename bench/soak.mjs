// Mixed traffic for a long time: half of it through a gateway over HTTP, with eviction, then half of it through a
// controller in one process. Fails when something is left, lost or not answered.
//
//     npm run soak -- --minutes 10 --seed 1 --mode gateway
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const modes = ['gateway', 'controller'];
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    mode: { type: 'string' },
  },
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes: expected a number above 0, got ${values.minutes}`);
if (values.mode !== undefined && !modes.includes(values.mode))
  throw new Error(`--mode: expected one of ${modes.join(', ')}, got ${values.mode}`);

const chosen = values.mode === undefined ? modes : [values.mode];
for (const mode of chosen) {
  console.log(`${mode}:`);
  const program = fileURLToPath(new URL(`./soak/${mode}/run.mjs`, import.meta.url));
  const args = ['--minutes', String(minutes / chosen.length), '--seed', values.seed];
  const [code] = await once(fork(program, args, { execArgv: ['--expose-gc'] }), 'exit');
  if (code !== 0) process.exit(1);
}
