// What the scenarios let run: as little as possible, so that the queue's own cost shows.

/** Ends in the same turn, a microtask later. */
export const microtaskJob = (ledger, index) => async () => {
  ledger.start(index);
  await undefined;
  ledger.end();
  return index;
};

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Ends in a later turn of the event loop, as I/O does. */
export const nextTurnJob = (ledger, index) => async () => {
  ledger.start(index);
  await nextTurn();
  ledger.end();
  return index;
};
