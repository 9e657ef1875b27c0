// Which subjects go through which scenarios.
import { scenarios } from '../scenarios/index.mjs';

/** Bounds first: the ratios are to them. */
export const subjectNames = [
  'bare',
  'denque',
  'permit',
  'record',
  'tinyqueue',
  'headgate',
  'fastq',
  'p-limit',
  'async-sema',
  'p-queue-9',
  'p-queue-10',
  'async',
  'effect',
  'cockatiel',
  'pacer',
  'bottleneck',
];

export function loadSubjects(names = subjectNames) {
  return Promise.all(names.map(async (name) => (await import(`../subjects/${name}.mjs`)).default));
}

function check(kind, asked, known) {
  const unknown = asked?.filter((name) => !known.includes(name)) ?? [];
  if (unknown.length > 0) throw new Error(`no such ${kind}: ${unknown.join(', ')}; there are ${known.join(', ')}`);
}

/** `[{ scenario, subjects: [names] }]`, in the order of the report. `only` may name families: `keyed`, `matrix`. */
export async function makePlan({ only, subjects }) {
  const families = scenarios.map(({ family }) => family).filter((family) => family !== undefined);
  const wayNames = scenarios.flatMap(({ ways = {} }) => Object.keys(ways));
  check('scenario', only, [...new Set([...scenarios.map(({ name }) => name), ...families])]);
  check('subject', subjects, [...new Set([...subjectNames, ...wayNames])]);
  const isAsked = (name) => subjects === undefined || subjects.includes(name);
  const modules = await loadSubjects(subjectNames.filter(isAsked));
  return scenarios
    .filter(({ name, family }) => only === undefined || only.includes(name) || only.includes(family))
    .map((scenario) => {
      const able = modules.filter(({ caps }) => (scenario.needs ?? []).every((cap) => caps[cap]));
      const listed = able.filter(
        ({ name, kind }) => !(scenario.skips?.includes(name) || (scenario.isForBoundsOnly && kind === 'peer')),
      );
      const names =
        scenario.ways === undefined ? listed.map(({ name }) => name) : Object.keys(scenario.ways).filter(isAsked);
      return { scenario, subjects: names };
    })
    .filter(({ subjects: names }) => names.length > 0);
}
