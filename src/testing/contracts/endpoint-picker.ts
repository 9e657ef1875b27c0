/** The contract of every endpoint picker. */
import { concurrencyDetector, type EndpointPicker, EndpointPool, type Lease } from '../../index.js';
import { type ContractCase, contract, expectThat } from './contract-case.js';
import { expectBalanced, expectNoFaults, makeFixture, ofController } from './controller-fixture.js';
import { Random, repeatedly } from './random.js';
import { itemView, randomEndpoints } from './views.js';

/** The contract of endpoint pickers, as cases for any test framework. */
export function endpointPickerContract(make: () => EndpointPicker): ContractCase[] {
  return contract(make, {
    'picks one of what it was given, and changes nothing in it': (plugin) => pickFromRandom(plugin),
    'works for a pool that changes, and is never at fault': (plugin) => changePool(plugin),
    ...ofController(make, (each) => ({ endpointPicker: each() }), {
      served: 'serves requests of every tenant and priority, and is never at fault',
      method: 'pick',
      lost: 'serves on when its choices are lost: the least loaded endpoint gets the request',
      tellsFaults: true,
    }),
  });
}

function pickFromRandom(picker: EndpointPicker): void {
  const requests = [{ byteSize: 1 }, {}, Object.freeze({ byteSize: 1, model: 7, prompt: null })];
  repeatedly(300, 1, (random, i) => {
    const endpoints = randomEndpoints(random, 1, i, () => ({ weight: random.pick([1, 1, 0.1, 1000]) }));
    const picked = picker.pick(endpoints, Object.freeze(itemView({ sequence: i, request: random.pick(requests) })), i);
    expectThat(
      picked !== undefined && endpoints.includes(picked),
      `of ${endpoints.length} endpoints it picks ${JSON.stringify(picked)}`,
    );
  });
}

function changePool(endpointPicker: EndpointPicker): void {
  const random = new Random(2);
  const pool = new EndpointPool();
  for (const id of ['a', 'b', 'c']) pool.add(id);
  const { flow } = makeFixture({
    pool,
    endpointPicker,
    saturationDetector: concurrencyDetector({ maxConcurrency: 3 }),
  });
  const leases: Lease[] = [];
  for (let i = 0; i < 500; i++) {
    const id = `e${random.int(5)}`;
    if (random.chance(0.1) && !pool.remove(id)) pool.add(id);
    const outcome = flow.tryEnqueue({ byteSize: 1, tokens: random.int(9) }, { fairnessId: `f${random.int(3)}` });
    if (outcome?.type === 'Dispatched') leases.push(outcome.lease);
    else leases.splice(random.int(leases.length), 1)[0]?.release();
    const fullest = Math.max(...pool.endpoints.map(({ inFlightRequests }) => inFlightRequests));
    expectThat(fullest <= 3, `an endpoint with 3 seats has ${fullest} requests`);
  }
  expectBalanced(flow);
  const { dispatched, pluginErrors } = flow.stats();
  expectNoFaults(pluginErrors);
  expectThat(dispatched > 100, `only ${dispatched} requests went`);
}
