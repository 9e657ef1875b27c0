// bench/results.json: the last figures of every scenario and server, with where and when each was taken.
import { readFileSync, writeFileSync } from 'node:fs';
import { describeMachine, today } from './machine.mjs';

const file = new URL('../results.json', import.meta.url);

export function readResults() {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return { scenarios: [], servers: [] };
  }
}

/** Replaces what was measured anew and keeps the rest; `kind` is `scenarios`, `servers` or `gateways`. */
export function mergeResults(kind, measured) {
  const results = readResults();
  const origin = { takenOn: today(), machine: describeMachine() };
  const fresh = new Map(measured.map((entry) => [entry.name, { ...entry, ...origin }]));
  const kept = (results[kind] ?? []).map((entry) => fresh.get(entry.name) ?? entry);
  const known = new Set(kept.map(({ name }) => name));
  const merged = { ...results, [kind]: [...kept, ...[...fresh.values()].filter(({ name }) => !known.has(name))] };
  writeFileSync(file, `${JSON.stringify(merged, roundFigures, 1)}\n`);
  return merged;
}

/** Four digits: more would only change with every run. */
function roundFigures(_key, value) {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value;
}
