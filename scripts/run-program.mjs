import { spawn } from 'node:child_process';

/** Resolves to the exit code, null where a signal or `timeout` (ms) ended it, and to what it printed. */
export function runProgram(program, args, { cwd, timeout } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, timeout, stdio: ['ignore', 'pipe', 'pipe'], killSignal: 'SIGKILL' });
    const stop = () => child.kill('SIGKILL');
    process.once('exit', stop);
    const [printed, complained] = [[], []];
    child.stdout.on('data', (chunk) => printed.push(chunk));
    child.stderr.on('data', (chunk) => complained.push(chunk));
    child.on('error', reject).on('close', (code) => {
      process.off('exit', stop);
      const [stdout, stderr] = [printed, complained].map((chunks) => Buffer.concat(chunks).toString());
      resolve({ code, stdout, text: `${stdout}${stderr}`.trim() });
    });
  });
}
