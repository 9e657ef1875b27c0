// The shape of llm-d-router's PerformanceMatrix: limit × bands × flows × clients, Zipf(1.1) flow popularity, payloads
// of 100 B to 9 KB, global strict and first come, first served; every request is over as soon as it was dispatched.
import { Ledger } from '../lib/ledger.mjs';
import { nsPerOp } from '../lib/measure.mjs';
import { seededRandom, zipf } from '../lib/random.mjs';

const noLimit = 1_000_000;

/** What each request says, worked out before the clock starts. */
function requests(jobs, bands, flows) {
  const random = seededRandom(1);
  const nextFlow = zipf(random, flows, 1.1);
  const keys = Array.from({ length: flows }, (_, flow) => `flow-${flow}`);
  return Array.from({ length: jobs }, () => {
    const flow = nextFlow();
    return { key: keys[flow], priority: flow % bands, byteSize: 100 + Math.floor(random() * 8900) };
  });
}

function cell({ limit, bands, flows, clients }) {
  return async function run(subject, jobs) {
    const concurrency = limit === 0 ? noLimit : limit;
    const options = requests(jobs, bands, flows);
    const ledger = new Ledger(jobs, concurrency);
    const gate = subject.create({ concurrency, ...(bands > 1 && { priorities: bands }) });
    let next = 0;
    async function produce() {
      while (next < jobs) {
        const index = next++;
        await gate.submit(() => {
          ledger.start(index);
          ledger.end();
        }, options[index]);
      }
    }
    const startedAtMs = performance.now();
    await Promise.all(Array.from({ length: clients }, produce));
    const ns = nsPerOp(startedAtMs, jobs);
    ledger.verify(jobs);
    await gate.close();
    return { ns, perSecond: 1e9 / ns };
  };
}

const cells = [0, 1, 100].flatMap((limit) =>
  [1, 8].flatMap((bands) =>
    [10, 5000].flatMap((flows) => [10, 5000].map((clients) => ({ limit, bands, flows, clients }))),
  ),
);

export default cells.map((shape) => {
  const { limit, bands, flows, clients } = shape;
  const name = `matrix-L${limit}-P${bands}-F${flows}-W${clients}`;
  return {
    name,
    family: 'matrix',
    shape,
    title: `${name}: dispatches/s`,
    jobs: 100_000,
    isForBoundsOnly: true,
    skips: ['bare', 'tinyqueue', 'record'],
    run: cell(shape),
  };
});
