// Time and memory inside one child process.

/** Seats of every scenario that does not say otherwise. */
export const concurrency = 16;

export const noOptions = {};

/** Nanoseconds per operation since `startedAtMs`. */
export const nsPerOp = (startedAtMs, operations) => ((performance.now() - startedAtMs) * 1e6) / operations;

/** Bytes on the heap that something still refers to. */
export function heapBytes() {
  for (let round = 0; round < 3; round++) globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** A promise with its ends outside. */
export function deferred() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

export const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** The value below which the given share of the samples lies. */
export function quantile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
