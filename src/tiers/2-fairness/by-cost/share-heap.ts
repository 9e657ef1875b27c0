/**
 * Shares by a key, least first; equal keys by a tie number.
 *
 *                   0
 *         1     2     3     4       by place: key, and the slot of the share;  4 children a node: half the levels of a binary heap
 *
 *     slot 0 │ 1 │ 2 │ 3 │ …        by slot: the share, its place, and its tie number
 *
 * Sifting moves numbers between flat arrays. It reads no share, and no tie number while keys differ, because with a
 * hundred thousand shares each such read is a cache miss (bench: fairness). When its key changes, the first share keeps
 * its place until somebody asks for the first. A charge is often corrected before the next request is picked, so this
 * saves work. Invariant: `share.slot` is its slot here, and −1 for shares in no heap; a share is in one heap at a time.
 * Slots 0 … size − 1 are taken.
 */
const arity = 4;
/** Arrays are not made smaller than this. */
const fewest = 16;

export class ShareHeap<Share extends { slot: number }> {
  private readonly shares: Share[] = [];
  private keys = new Float64Array(fewest);
  private ties = new Float64Array(fewest);
  private slots = new Int32Array(fewest);
  private places = new Int32Array(fewest);
  /** True when the key of the first may have become too large for its place. */
  private isFirstStale = false;

  get size(): number {
    return this.shares.length;
  }

  /** Places that there is room for. */
  get capacity(): number {
    return this.keys.length;
  }

  get first(): Share | undefined {
    if (this.isFirstStale) this.sinkFirst();
    return this.shares[this.slots[0] as number];
  }

  /** The least key; NaN without shares. */
  get firstKey(): number {
    if (this.isFirstStale) this.sinkFirst();
    return this.shares.length > 0 ? (this.keys[0] as number) : NaN;
  }

  /** O(log n) amortized. */
  push(share: Share, key: number, tie: number): void {
    if (this.isFirstStale) this.sinkFirst();
    const slot = this.shares.length;
    if (slot === this.keys.length) this.resize(2 * slot);
    share.slot = slot;
    this.shares.push(share);
    this.ties[slot] = tie;
    this.rise(slot, slot, key);
  }

  /** O(log n). `share` must be in this heap. */
  update(share: Share, key: number, tie: number): void {
    const place = this.places[share.slot] as number;
    if (place === 0) {
      this.keys[0] = key;
      this.ties[share.slot] = tie;
      this.isFirstStale = true;
      return;
    }
    if (this.isFirstStale) {
      this.sinkFirst();
      this.update(share, key, tie);
      return;
    }
    const { slot } = share;
    const isSooner =
      key < (this.keys[place] as number) || (key === this.keys[place] && tie < (this.ties[slot] as number));
    this.ties[slot] = tie;
    if (isSooner) this.rise(place, slot, key);
    else this.sink(place, slot, key, this.shares.length);
  }

  /** O(log n) amortized. `share` must be in this heap. */
  remove(share: Share): void {
    const { slot } = share;
    const place = this.places[slot] as number;
    if (place === 0) this.isFirstStale = false;
    else if (this.isFirstStale) {
      this.sinkFirst();
      this.remove(share);
      return;
    }
    const last = this.shares.length - 1;
    const lastSlot = this.slots[last] as number;
    share.slot = -1;
    const key = this.keys[last] as number;
    const parent = (place - 1) >> 2;
    if (place > 0 && this.isBefore(key, lastSlot, parent)) this.rise(place, lastSlot, key);
    else this.sink(place, lastSlot, key, last);
    this.freeSlot(slot);
    if (last > fewest && last * 4 < this.keys.length) this.resize(this.keys.length / 2);
  }

  /** Takes the same amount off every key. O(n). */
  lower(amount: number): void {
    for (let i = 0; i < this.shares.length; i++) this.keys[i] = (this.keys[i] as number) - amount;
  }

  /** Removes and returns all. O(n). */
  clear(): Share[] {
    const all = this.shares.splice(0);
    for (const share of all) share.slot = -1;
    this.isFirstStale = false;
    return all;
  }

  private sinkFirst(): void {
    this.isFirstStale = false;
    this.sink(0, this.slots[0] as number, this.keys[0] as number, this.shares.length);
  }

  private isBefore(key: number, slot: number, place: number): boolean {
    const other = this.keys[place] as number;
    return key < other || (key === other && this.comesFirst(slot, this.slots[place] as number));
  }

  /** Of two shares with equal keys. */
  private comesFirst(slot: number, other: number): boolean {
    return (this.ties[slot] as number) < (this.ties[other] as number);
  }

  private rise(from: number, slot: number, key: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 2;
      if (!this.isBefore(key, slot, parent)) break;
      this.put(place, this.slots[parent] as number, this.keys[parent] as number);
      place = parent;
    }
    this.put(place, slot, key);
  }

  private sink(from: number, slot: number, key: number, size: number): void {
    const { keys, slots } = this;
    let place = from;
    for (;;) {
      const firstChild = place * arity + 1;
      if (firstChild >= size) break;
      const end = Math.min(firstChild + arity, size);
      let least = firstChild;
      let leastKey = keys[firstChild] as number;
      for (let child = firstChild + 1; child < end; child++) {
        const childKey = keys[child] as number;
        if (childKey > leastKey) continue;
        if (childKey === leastKey && !this.comesFirst(slots[child] as number, slots[least] as number)) continue;
        least = child;
        leastKey = childKey;
      }
      if (this.isBefore(key, slot, least)) break;
      this.put(place, slots[least] as number, leastKey);
      place = least;
    }
    this.put(place, slot, key);
  }

  private put(place: number, slot: number, key: number): void {
    this.keys[place] = key;
    this.slots[place] = slot;
    this.places[slot] = place;
  }

  /** The share of the last slot takes the one that is free. */
  private freeSlot(slot: number): void {
    const moved = this.shares.pop() as Share;
    const from = this.shares.length;
    if (from === slot) return;
    const place = this.places[from] as number;
    this.shares[slot] = moved;
    moved.slot = slot;
    this.ties[slot] = this.ties[from] as number;
    this.places[slot] = place;
    this.slots[place] = slot;
  }

  private resize(length: number): void {
    this.keys = resized(this.keys, new Float64Array(length));
    this.ties = resized(this.ties, new Float64Array(length));
    this.slots = resized(this.slots, new Int32Array(length));
    this.places = resized(this.places, new Int32Array(length));
  }
}

function resized<A extends Float64Array | Int32Array>(from: A, to: A): A {
  to.set(from.subarray(0, to.length));
  return to;
}
