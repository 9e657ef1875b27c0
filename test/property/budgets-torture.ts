/** Random histories of budgets, as many as wanted: `npm run torture -- budgets --histories 100000 --seed 1`. */
import { parseArgs } from 'node:util';
import { budgetHistory } from './budget-history.js';

const { values } = parseArgs({
  options: { histories: { type: 'string', default: '1000' }, seed: { type: 'string', default: '1' } },
});
const [first, count] = [Number(values.seed), Number(values.histories)];
const beganAtMs = performance.now();
let broken = 0;
for (let seed = first; seed < first + count; seed++) {
  const problems = await budgetHistory(seed);
  if (problems.length === 0) continue;
  broken++;
  console.error(`history ${seed}:\n  ${problems.join('\n  ')}`);
}
const seconds = ((performance.now() - beganAtMs) / 1000).toFixed(0);
console.info(`${count} histories of budgets, ${broken} broken, ${seconds} s`);
process.exitCode = broken === 0 ? 0 : 1;
