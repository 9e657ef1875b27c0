// Where the hand-written bounds keep what waits: the least that each shape of scenario needs.
//
//     one line        [a b c]
//     per priority    7: [a b]   6: []   …   0: [c]          the highest that is not empty goes first
//     per key         x: [a b]   y: [c]      ring: x → y     one from each flow in turn; an empty flow is forgotten
import Denque from 'denque';

class OneLine {
  keyCount = 0;
  #entries = new Denque();

  push(entry) {
    this.#entries.push(entry);
  }

  shift() {
    return this.#entries.shift();
  }
}

class LinePerPriority {
  keyCount = 0;
  #lines;

  constructor(priorities) {
    this.#lines = Array.from({ length: priorities }, () => new Denque());
  }

  push(entry, { priority = 0 }) {
    this.#lines[priority].push(entry);
  }

  shift() {
    for (let priority = this.#lines.length - 1; priority >= 0; priority--) {
      const line = this.#lines[priority];
      if (line.length > 0) return line.shift();
    }
    return undefined;
  }
}

class FlowRing {
  #flows = new Map();
  #ring = new Denque();

  get keyCount() {
    return this.#flows.size;
  }

  push(entry, { key }) {
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      flow = { key, entries: new Denque() };
      this.#flows.set(key, flow);
      this.#ring.push(flow);
    }
    flow.entries.push(entry);
  }

  shift() {
    const flow = this.#ring.shift();
    if (flow === undefined) return undefined;
    const entry = flow.entries.shift();
    if (flow.entries.length > 0) this.#ring.push(flow);
    else this.#flows.delete(flow.key);
    return entry;
  }
}

/** The line for a shape; `priorities` is how many there are, from 0 up. */
export function waitingLine({ priorities, keyed }) {
  if (keyed) return new FlowRing();
  return priorities === undefined ? new OneLine() : new LinePerPriority(priorities);
}
