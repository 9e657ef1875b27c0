// @ts-check
// Keeps three model servers and the gateway up, to be tried by hand. The port is 8080, or what PORT says.

import { startGateway } from './play.mjs';
import { Processes } from './processes.mjs';

const port = process.env.PORT ?? '8080';
const processes = new Processes();

try {
  const { gateway, names } = await startGateway(processes, ['--port', port]);
  const { url } = gateway;
  console.log(`The gateway listens on ${url}, in front of ${names.join(', ')}. Ctrl-C ends all.

It was started with --trust-flow-headers: clients name their own tenant and objective, which is right for a demo on the loopback
interface and wrong anywhere else. Without that option these headers have no effect.

curl -N -X POST ${url}/v1/completions \\
-H 'Content-Type: application/json' \\
-H 'x-gateway-inference-fairness-id: tenant-a' \\
-H 'x-gateway-inference-objective: premium-traffic' \\
-d '{
  "model": "default-model",
  "prompt": "Say hello",
  "stream": true
}'
`);
  await processes.failed;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
