// Each that goes lets the next one go at once, until nobody waits. How late is a 1 ms timer at worst?
import { concurrency, nsPerOp } from '../lib/measure.mjs';
import { WaitingCrowd } from '../lib/waiting-crowd.mjs';

const noOptions = {};

async function run(subject, jobs) {
  const gate = subject.create({ concurrency });
  const crowd = new WaitingCrowd(gate, concurrency, jobs);
  for (let i = 0; i < jobs; i++) crowd.add(noOptions);
  let dueAtMs = performance.now() + 1;
  let latenessMs = 0;
  const look = () => {
    const nowMs = performance.now();
    latenessMs = Math.max(latenessMs, nowMs - dueAtMs);
    dueAtMs = nowMs + 1;
  };
  const timer = setInterval(look, 1);
  const startedAtMs = performance.now();
  await crowd.open();
  const ns = nsPerOp(startedAtMs, jobs);
  await new Promise((resolve) => setImmediate(resolve));
  look();
  clearInterval(timer);
  await gate.close();
  return { ns, latenessMs };
}

export default [
  {
    name: 'drain',
    title: 'drain: 100,000 waiting requests go as soon as the one before has ended, which is at once',
    jobs: 100_000,
    skips: ['bare', 'effect', 'cockatiel', 'pacer', 'bottleneck'],
    run,
  },
];
