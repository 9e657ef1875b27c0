/** `headgate/workers`: what `headgate/redis` shares, for processes and threads of one machine, without Redis. */
export { type StorePort, serveStore } from './serve-store.js';
export { workerStore } from './worker-store.js';
