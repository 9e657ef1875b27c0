/** The demo's model servers, real processes that speak OpenAI's interface and show vLLM's metrics. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export interface ModelServer {
  readonly name: string;
  readonly url: string;
  readonly child: ChildProcess;
}

const program = fileURLToPath(new URL('../../../examples/gateway/model-server.mjs', import.meta.url));

export async function startModelServer(name: string): Promise<ModelServer> {
  const child = fork(program, ['--name', name], { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message: { url: string }) => resolve(message.url));
    child.once('exit', () => reject(new Error(`${name} ended`)));
  });
  return { name, url, child };
}
