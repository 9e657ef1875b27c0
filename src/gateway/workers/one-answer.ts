/**
 * One answer made of those of several processes, as JSON. Numbers are added, unless their names say that the highest or
 * the mean counts; rows of one name are one row; of words the first counts. Invariant: what all tell as null stays so.
 */
import { isRecord } from '../../base/schema/element.js';

const highest = /Ms$|\b(?:saturation|ceiling|priority|endpoints|available(?:Endpoints)?|replicas|limit|ahead)$/;
const alike =
  /\b(?:resident|maxSessions|elsewhere|sessions.tokens|rows.used|epochChanges|kvCache\w+|running\w+|\w+Size)$/;
const mean = /\.(?:received|owed)Share$/;
/** Null says that it takes for ever. */
const mayBeNever = /\btimeToDrainMs$/;
/** What makes two rows one. */
const names = ['name', 'flow', 'priority', 'reason', 'group', 'unit', 'perMs'];

/** `name`: its own, after that of what holds it. */
export function oneAnswer(answers: readonly unknown[], name = ''): unknown {
  const told = answers.filter((each) => each !== undefined && each !== null);
  const [first] = told;
  if (answers.includes(null) && (first === undefined || mayBeNever.test(name))) return null;
  if (typeof first === 'boolean') return told.includes(true);
  if (typeof first === 'number') return oneNumber(told.map(Number), name);
  if (Array.isArray(first)) return oneList(told as unknown[][], name);
  if (typeof first !== 'object' || first === null) return first;
  const within = name.split('.').at(-1);
  const valuesOf = (key: string): unknown[] => told.map((each) => Object(each)[key]);
  const sum = (key: string): number => oneNumber(valuesOf(key).map(Number), '');
  const oneOf = (key: string): unknown =>
    key === 'others' && 'cap' in first // what others hold of a limit: each has counted all but itself
      ? Math.max(0, (sum(key) + sum('cap')) / told.length - sum('cap'))
      : oneAnswer(valuesOf(key), `${within}.${key}`);
  const keys = new Set(told.flatMap((each) => Object.keys(Object(each))));
  return Object.fromEntries([...keys].map((key) => [key, oneOf(key)]));
}

function oneNumber(numbers: readonly number[], name: string): number {
  if (highest.test(name) || alike.test(name)) return Math.max(...numbers);
  const sum = numbers.reduce((total, each) => total + each, 0);
  return mean.test(name) ? sum / numbers.length : sum;
}

/** Rows with names are put together by them, the most urgent first; others by their places. */
function oneList(lists: readonly (readonly unknown[])[], listName: string): unknown[] {
  const byName = new Map<string, unknown[]>();
  for (const [place, row] of lists.flatMap((list) => [...list.entries()])) {
    const name = isRecord(row) ? JSON.stringify(names.map((each) => Reflect.get(row, each))) : String(place);
    byName.set(name, [...(byName.get(name) ?? []), row]);
  }
  const rows = [...byName.values()].map((each) => oneAnswer(each, listName));
  return rows.sort((a, b) => urgency(b) - urgency(a));
}

function urgency(row: unknown): number {
  const { waitedMs, oldestWaitMs, requests, priority }: Record<string, unknown> = Object(row);
  return Number(waitedMs ?? oldestWaitMs ?? requests ?? priority ?? 0);
}
