// One measurement: a fresh process runs one subject through one scenario and prints the figures as JSON.
import { scenarios } from './scenarios/index.mjs';

const [scenarioName, subjectName, scale] = process.argv.slice(2);
const scenario = scenarios.find(({ name }) => name === scenarioName);
const subject = scenario.ways?.[subjectName] ?? (await import(`./subjects/${subjectName}.mjs`)).default;
const jobs = Math.max(1, Math.round(scenario.jobs * Number(scale) * (subject.share ?? 1)));

await scenario.run(subject, Math.ceil(jobs / 10));
const repetitions = [];
for (let repetition = 0; repetition < (scenario.repeat ?? 3); repetition++) {
  globalThis.gc();
  repetitions.push(await scenario.run(subject, jobs));
}
repetitions.sort((a, b) => a.ns - b.ns);
console.log(JSON.stringify({ jobs, ...repetitions[repetitions.length >> 1] }));
process.exit(0);
