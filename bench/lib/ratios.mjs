// From the rounds of a scenario to medians, spreads, and ratios to the bounds of the same round.
import { summarize } from './statistics.mjs';

const bounds = ['denque', 'permit', 'record'];

/** `{ name, title, subjects: { [name]: { ns, …, toDenque, toPermit } | { failed } } }` */
export function summarizeScenario({ name, title }, subjects, rounds) {
  const summaries = subjects.map((subject) => [subject, summarizeSubject(subject, rounds)]);
  return { name, title, rounds: rounds.length, subjects: Object.fromEntries(summaries) };
}

function summarizeSubject(subject, rounds) {
  const failure = rounds.map((figures) => figures[subject]?.failed).find((failed) => failed !== undefined);
  if (failure !== undefined) return { failed: failure };
  const names = Object.keys(rounds[0][subject]);
  const figures = Object.fromEntries(
    names.map((figure) => [figure, summarize(rounds.map((round) => round[subject][figure]))]),
  );
  const ratios = bounds
    .filter((bound) => bound !== subject && rounds.every((round) => round[bound]?.ns !== undefined))
    .map((bound) => [`to-${bound}`, summarize(rounds.map((round) => round[subject].ns / round[bound].ns))]);
  return { ...figures, ...Object.fromEntries(ratios) };
}
