// Runs child.mjs and reads its figures. A child that takes too long is ended; that is a figure too.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const child = fileURLToPath(new URL('../child.mjs', import.meta.url));
const limitMs = 60_000;

/** @returns the figures, or `{ failed }` with the reason */
export function measure(scenario, subject, scale) {
  const options = { timeout: limitMs, killSignal: 'SIGKILL', maxBuffer: 2 ** 24 };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--expose-gc', '--max-old-space-size=8192', child, scenario, subject, String(scale)],
      options,
      (error, stdout, stderr) => {
        if (error === null) return resolve(JSON.parse(stdout));
        if (error.killed) return resolve({ failed: `took more than ${limitMs / 1000} s` });
        const reason = stderr.match(/^\w*Error.*$/m)?.[0] ?? `exit code ${error.code}`;
        resolve({ failed: reason });
      },
    );
  });
}
