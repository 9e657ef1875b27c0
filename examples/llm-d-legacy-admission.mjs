// @ts-check
// The same YAML with the feature gate off and on. Off, llm-d's legacy admission: a full pool refuses sheddable requests
// and takes all others at once. On, flow control: everything that does not fit waits in the gateway.
import { setTimeout as delay } from 'node:timers/promises';
import { EndpointPool, FlowController } from 'headgate';
import { loadConfig } from 'headgate/config';
import { toHttpResponse } from 'headgate/http';

/** @param {boolean} isOn */
const manifest = (isOn) => `
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
featureGates: [flowControl=${isOn}]
plugins:
- type: concurrency-detector
  parameters: { maxConcurrency: 4 }
saturationDetector: { pluginRef: concurrency-detector }
`;

/** @param {boolean} isOn */
async function run(isOn) {
  const { enabled, options } = loadConfig(manifest(isOn));
  const pool = new EndpointPool();
  for (const server of ['server-1', 'server-2']) pool.add(server);
  const flow = new FlowController({ ...options, pool, mode: enabled ? 'queue' : 'admission' });

  let mostInFlight = 0;
  /** @type {Record<string, number>} */
  const results = {};
  /** @param {string} name @param {number} priority */
  const send = async (name, priority) => {
    const outcome = await flow.enqueue({ byteSize: 1000 }, { fairnessId: name, priority });
    let result;
    if (outcome.type === 'Dispatched') {
      mostInFlight = Math.max(mostInFlight, flow.stats().inFlight);
      await delay(20);
      outcome.lease.release();
      result = outcome.queuedMs > 5 ? 'answered after waiting' : 'answered at once';
    } else {
      const { status, headers } = toHttpResponse(outcome, { contract: 'llm-d' });
      result = `${status} ${headers['x-llm-d-request-dropped-reason']}`;
    }
    const line = `${name}: ${result}`;
    results[line] = (results[line] ?? 0) + 1;
  };
  const burst = [];
  for (let i = 0; i < 12; i++) burst.push(send('standard (0)', 0), send('sheddable (-10)', -10));
  await Promise.all(burst);

  console.log(`Feature gate flowControl ${isOn ? 'on' : 'off'}: at most ${mostInFlight} requests at once on 8 seats`);
  for (const line of Object.keys(results).sort()) console.log(`  ${String(results[line]).padStart(2)} × ${line}`);
  await flow.close();
}

await run(false);
await run(true);
