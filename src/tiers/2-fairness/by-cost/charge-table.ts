/**
 * The charges of requests in flight, found by the request.
 *
 *     sequence of the request ── hash ──► slot │ slot │ slot │ …     one array, half empty at least; who finds its slot taken takes the next
 *
 * A `Map` makes a new table every few entries, and an object for each entry. This table grows only when more requests
 * run than ever before, and it reuses the records of requests that ended (bench: fairness). Invariant: from the slot
 * that its sequence gives to the slot where a charge stands, none is empty.
 */
import type { ItemView } from '../../views.js';
import type { Work } from './cost-options.js';
import type { Share } from './share.js';

/** Slots at first. */
const fewest = 16;
/** Records kept for later. */
const mostSpare = 1024;

/** The charge of one request so far, and its reasons. */
export class Charge {
  /** Undefined once it is settled, as is the leaf: its record may serve another request. */
  item: ItemView | undefined = undefined;
  /** The share that is charged. */
  leaf: Share | undefined = undefined;
  weight = 1;
  model = '';
  charged = 0;
  /** True once the host has reported anything, be it 0. */
  isReported = false;
  /** The usage reported so far. While nothing was reported of a prompt, its prediction counts. */
  promptTokens = 0;
  /** -1 until it was reported; until then the prediction counts. */
  cachedPromptTokens = -1;
  completionTokens = 0;
  /** The sum of the figures that the last report had and that were ignored: the next one may repeat them. */
  ignoredTokens = 0;
  predictedPrompt = 0;
  predictedCached = 0;
  predictedCompletion = 0;
  dispatchedAtMs = 0;
}

export class ChargeTable {
  size = 0;
  private slots: (Charge | undefined)[] = emptySlots(fewest);
  private readonly spare: Charge[] = [];

  get capacity(): number {
    return this.slots.length;
  }

  get(item: ItemView): Charge | undefined {
    const { slots } = this;
    const mask = slots.length - 1;
    for (let slot = item.sequence & mask; ; slot = (slot + 1) & mask) {
      const charge = slots[slot];
      if (charge === undefined || charge.item === item) return charge;
    }
  }

  /** A charge of nothing yet; the request must have none. O(1) amortized. */
  add(item: ItemView, leaf: Share, weight: number, model: string, predicted: Work, nowMs: number): Charge {
    const charge = this.spare.pop() ?? new Charge();
    charge.item = item;
    charge.leaf = leaf;
    charge.weight = weight;
    charge.model = model;
    charge.charged = 0;
    charge.isReported = false;
    charge.promptTokens = 0;
    charge.cachedPromptTokens = -1;
    charge.completionTokens = 0;
    charge.ignoredTokens = 0;
    charge.predictedPrompt = predicted.promptTokens;
    charge.predictedCached = predicted.cachedPromptTokens;
    charge.predictedCompletion = predicted.completionTokens;
    charge.dispatchedAtMs = nowMs;
    this.size++;
    if (2 * this.size > this.slots.length) this.grow();
    this.put(charge, item);
    return charge;
  }

  /** The charge is settled. */
  remove(charge: Charge): void {
    const { slots } = this;
    const mask = slots.length - 1;
    let free = (charge.item as ItemView).sequence & mask;
    while (slots[free] !== charge) free = (free + 1) & mask;
    // Moves charges that stand behind their own slot nearer to it.
    for (let slot = (free + 1) & mask; ; slot = (slot + 1) & mask) {
      const next = slots[slot];
      if (next === undefined) break;
      const home = (next.item as ItemView).sequence & mask;
      if (((slot - home) & mask) < ((slot - free) & mask)) continue;
      slots[free] = next;
      free = slot;
    }
    slots[free] = undefined;
    this.size--;
    charge.item = undefined;
    charge.leaf = undefined;
    if (this.spare.length < mostSpare) this.spare.push(charge);
  }

  private put(charge: Charge, item: ItemView): void {
    const { slots } = this;
    const mask = slots.length - 1;
    let slot = item.sequence & mask;
    while (slots[slot] !== undefined) slot = (slot + 1) & mask;
    slots[slot] = charge;
  }

  private grow(): void {
    const before = this.slots;
    this.slots = emptySlots(2 * before.length);
    for (const charge of before) if (charge !== undefined) this.put(charge, charge.item as ItemView);
  }
}

function emptySlots(length: number): (Charge | undefined)[] {
  return new Array<Charge | undefined>(length).fill(undefined);
}
