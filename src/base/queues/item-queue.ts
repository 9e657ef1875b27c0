/** The contract of the queues in which requests wait. */
export interface Queued {
  /** False once the member was cancelled, expired or displaced. */
  readonly isWaiting: boolean;
  readonly sequence: number;
}

/** A line of waiting members. One that leaves is a tombstone until they outnumber the living: O(1) amortized. */
export interface ItemQueue<T extends Queued> {
  /** Members, tombstones among them. */
  readonly length: number;
  readonly tombstones: number;
  push(member: T): void;
  /** The living member to go next. */
  peek(): T | undefined;
  /** Removes what `peek` returned; call it with that member still first. */
  shift(): void;
  /** One member, no longer waiting, became a tombstone. */
  discard(): void;
  /** The same for one that often is the first: there it leaves no tombstone. */
  remove(member: T): void;
  /** The living members, in no particular order. */
  members(): T[];
  /** The living members, last come first. Only where they stand in arrival order; nothing may change meanwhile. */
  newestFirst?(): Iterable<T>;
  /** The first few as they stand: in arrival order these go next; in any other order only the first is certain to. */
  leading(count: number): T[];
  /** How many living members go before `member`; undefined when more than `most` would have to be looked at. */
  ahead(member: T, most: number): number | undefined;
}

/** Fewer tombstones than this are not worth a rebuild. */
export const fewTombstones = 32;
