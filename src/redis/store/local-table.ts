/** What the local form of one script keeps in the memory of a process, by key, each until its end. */
import { put } from '../../base/put.js';

type Entry<T> = { readonly value: T; readonly untilUs: number };

/** From this many entries on, those whose end has passed are removed. */
const manyEntries = 1_000;

export class LocalTable<T> {
  private readonly entries = new Map<string, Entry<T>>();
  private sweepsAt = manyEntries;

  get(key: string, nowUs: number): T | undefined {
    const entry = this.entries.get(key);
    return entry !== undefined && nowUs < entry.untilUs ? entry.value : undefined;
  }

  set(key: string, value: T, untilUs: number, nowUs: number): void {
    this.entries.set(key, { value, untilUs });
    if (this.entries.size < this.sweepsAt) return;
    for (const [old, entry] of this.entries) if (nowUs >= entry.untilUs) this.entries.delete(old);
    this.sweepsAt = Math.max(manyEntries, 2 * this.entries.size);
  }
}

export function localTables<T>(): (memory: object) => LocalTable<T> {
  const tables = new WeakMap<object, LocalTable<T>>();
  return (memory) => tables.get(memory) ?? put(tables, memory, new LocalTable<T>());
}
