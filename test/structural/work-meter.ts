/**
 * Counts how many elements are looked at, whoever looks: walks over arrays, maps, sets, deques and linked lists count
 * as long as what they walk over (even when they stop early), and every question to a waiting request counts one.
 * Independent of the machine and of V8.
 */
import Denque from 'denque';
import { LinkedList } from '../../src/base/queues/linked-list.js';
import { QueueItem } from '../../src/core/engine/queue-item.js';

type Method = (this: unknown, ...args: unknown[]) => unknown;

interface Walk {
  on: object;
  names: readonly PropertyKey[];
  /** Elements that one call looks at. */
  size(self: never): number;
}

const walks: readonly Walk[] = [
  {
    on: Array.prototype,
    names: [
      ...[
        'concat',
        'every',
        'fill',
        'filter',
        'find',
        'findIndex',
        'findLast',
        'flatMap',
        'forEach',
        'includes',
        'indexOf',
        'map',
        'reduce',
      ],
      ...['reverse', 'shift', 'slice', 'some', 'splice', 'unshift', Symbol.iterator],
    ],
    size: (array: unknown[]) => array.length,
  },
  {
    on: Array.prototype,
    names: ['sort'],
    size: (array: unknown[]) => array.length * Math.ceil(Math.log2(array.length + 1)),
  },
  {
    on: Map.prototype,
    names: ['entries', 'forEach', 'keys', 'values', Symbol.iterator],
    size: (map: Map<unknown, unknown>) => map.size,
  },
  { on: Set.prototype, names: ['forEach', 'values', Symbol.iterator], size: (set: Set<unknown>) => set.size },
  {
    on: Denque.prototype,
    names: ['remove', 'removeOne', 'splice', '_copyArray'],
    size: (line: Denque<unknown>) => line.length,
  },
  { on: LinkedList.prototype, names: [Symbol.iterator], size: (list: LinkedList<never>) => list.size },
];

/** What comparisons of deadlines, and searches for the living, ask of a request. */
const questions: readonly (keyof QueueItem)[] = ['isWaiting', 'waitingSinceMs'];

function replace(
  on: object,
  name: PropertyKey,
  change: (before: PropertyDescriptor) => PropertyDescriptor,
): () => void {
  const before = Object.getOwnPropertyDescriptor(on, name);
  if (before === undefined) throw new Error(`there is no ${String(name)}`);
  Object.defineProperty(on, name, { ...before, ...change(before) });
  return () => Object.defineProperty(on, name, before);
}

/** Runs synchronous work, which may ask how much was looked at so far; returns how much it was. */
export function countWork(work: (lookedAt: () => number) => void): number {
  let lookedAt = 0;
  const undo: (() => void)[] = [];
  for (const { on, names, size } of walks) {
    for (const name of names) {
      undo.push(
        replace(on, name, ({ value }) => ({
          value(this: never, ...args: unknown[]) {
            lookedAt += size(this);
            return Reflect.apply(value as Method, this, args);
          },
        })),
      );
    }
  }
  for (const name of questions) {
    undo.push(
      replace(QueueItem.prototype, name, ({ get }) => ({
        get(this: QueueItem) {
          lookedAt++;
          return Reflect.apply(get as Method, this, []);
        },
      })),
    );
  }
  try {
    work(() => lookedAt);
  } finally {
    for (let i = 0; i < undo.length; i++) undo[i]?.();
  }
  return lookedAt;
}
