/** How deep may the queues of servers be? The table and the figures of the policy's page. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { loadScenario, type SimulationResult, simulate, withScenarioValue } from '../../src/simulator/index.js';

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const page = read('docs/policies/utilization-detector.md');
const depth = 'plugins[utilization-detector].parameters.queueDepthThreshold';

function run(scenario: string, threshold: number): SimulationResult {
  const { source } = loadScenario(read(`examples/scenarios/${scenario}.yaml`));
  return simulate(loadScenario(withScenarioValue(source, depth, threshold)).options);
}

it.each([
  [1, '1, the default'],
  [2, '2'],
  [3, '3'],
  [5, '5, as llm-d has it'],
])('is on the page as it is, with a threshold of %i', (threshold, name) => {
  const { classes, all } = run('deep-queues', threshold);
  const { good, arrived, ttft } = classes.chat as NonNullable<typeof classes.chat>;
  const inTime = `${((100 * good) / arrived).toFixed(1)} %`;
  const tokens = Math.round(all.tokensPerSecond).toLocaleString('en');
  expect(page).toContain(`| ${name} | ${inTime} | ${Math.round(ttft.p95Ms)} ms | ${tokens} |`);
});

it('costs throughput where servers answer many small requests', () => {
  const [one, two, three, five] = [1, 2, 3, 5].map((threshold) => run('small-answers', threshold).all.tokensPerSecond);
  const lost = [one, two, three].map((tokens = 0) => `${Math.round(100 * (1 - tokens / (five ?? 0)))} %`);
  const figures = `a threshold of 1 loses ${lost[0]} of the throughput, 2 loses ${lost[1]}, and 3 loses ${lost[2]}`;
  expect(page.replace(/\s+/g, ' ')).toContain(figures);
});
