// Cancels what waits when its signal aborts: one listener for each distinct signal. Cancelled entries stay in line as
// tombstones.
export class AbortWatch {
  #groups = new Map();

  watch(entry, signal) {
    let group = this.#groups.get(signal);
    if (group === undefined) {
      group = { entries: new Set(), abort: () => this.#abort(signal) };
      this.#groups.set(signal, group);
      signal.addEventListener('abort', group.abort);
    }
    group.entries.add(entry);
    entry.signal = signal;
  }

  unwatch(entry) {
    const group = this.#groups.get(entry.signal);
    if (group === undefined) return;
    group.entries.delete(entry);
    if (group.entries.size === 0) this.#forget(entry.signal, group);
  }

  #abort(signal) {
    const group = this.#groups.get(signal);
    this.#forget(signal, group);
    for (const entry of group.entries) {
      entry.isGone = true;
      entry.reject(signal.reason);
    }
  }

  #forget(signal, group) {
    this.#groups.delete(signal);
    signal.removeEventListener('abort', group.abort);
  }
}
