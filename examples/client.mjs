// @ts-check
// Clients of a gateway that is full: the one comes back when it is told to and is served, in the other the budget is
// spent and it hears so at once.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { concurrencyDetector, FlowController } from 'headgate';
import { retryBudget, retrying } from 'headgate/client';
import { flowControl } from 'headgate/node';

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
  admission: {
    type: 'no-waiting',
    admit: (_request, _key, view) => (view.saturation() < 1 ? 'admit' : { reason: 'the seat is taken' }),
  },
});
const limit = flowControl(flow, { classify: () => ({ fairnessId: 'default', priority: 0 }), random: () => 0 });
const gateway = createServer((req, res) => limit(req, res, () => res.end('served')));
gateway.listen(0);
await once(gateway, 'listening');
const address = gateway.address();
const url = `http://localhost:${typeof address === 'object' ? address?.port : ''}/v1/completions`;

/**
 * A fetch that prints every attempt.
 * @param {string} name
 * @returns {import('headgate/client').Fetch}
 */
function printing(name) {
  return async (input, init) => {
    const response = await fetch(input, init);
    const reason = response.headers.get('x-llm-d-request-dropped-reason');
    const advice = reason === null ? '' : `: ${reason}, Retry-After ${response.headers.get('retry-after')} s`;
    console.log(`  ${name}: ${response.status}${advice}`);
    return response;
  };
}

const patient = retrying(printing('patient'), { random: () => 0.1 });
const spent = retrying(printing('spent'), {
  budget: retryBudget({ capacity: 1, ratio: 0, minPerSecond: 0 }),
  maxAttempts: 3,
  random: () => 0.1,
});

console.log('The only seat is taken:');
const busy = flow.tryEnqueue({ byteSize: 0 }, { fairnessId: 'default' });
setTimeout(() => busy?.type === 'Dispatched' && busy.lease.release(), 500);
const prompt = { method: 'POST', body: JSON.stringify({ prompt: 'hello' }) };
console.log(`  patient got: ${await (await patient(url, prompt)).text()}`);

console.log('The seat is taken again, for long; a budget of one retry:');
const long = flow.tryEnqueue({ byteSize: 0 }, { fairnessId: 'default' });
console.log(`  spent got: ${(await spent(url, prompt)).status}`);

if (long?.type === 'Dispatched') long.lease.release();
gateway.close();
gateway.closeAllConnections();
await flow.close();
