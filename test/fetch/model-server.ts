/** The model server of these tests, which ends with the test that started it. */
import { onTestFinished } from 'vitest';
import { type Behaviour, type ModelServer, startBareModelServer } from './bare-model-server.js';

export {
  type Behaviour,
  hang,
  inTurn,
  type ModelServer,
  refuse,
  sendText,
  serve,
  stall,
  think,
} from './bare-model-server.js';

export async function startModelServer(behave?: Behaviour): Promise<ModelServer> {
  const server = await startBareModelServer(behave);
  onTestFinished(() => server.close());
  return server;
}
