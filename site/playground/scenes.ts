/** Four scenes that a visitor starts by one click. */
import type { Settings } from './settings.ts';

export interface Scene {
  readonly title: string;
  /** What happens, and what to try. */
  readonly text: string;
  readonly settings: Settings;
}

const calm: Settings = {
  tenants: [],
  servers: 3,
  seats: 12,
  fairness: 'round-robin-fairness-policy',
  ordering: 'fcfs-ordering-policy',
  queue: 2000,
  tenantQueue: 0,
  requestQuota: 0,
  tokenQuota: 0,
  ttl: 0,
  ceiling: 100,
  evicts: false,
  replicas: 1,
  budget: 0,
  kvCache: 0,
  prefill: 0,
  faults: [],
  slowness: 4,
  flood: 6,
  reloadSeats: 6,
};

export const scenes: readonly Scene[] = [
  {
    title: 'One noisy tenant',
    text: 'acme sends more than all servers can do. Tenants take turns, so that the others hardly notice. Choose "none" for fairness, and everybody waits behind acme.',
    settings: {
      ...calm,
      tenants: [
        { name: 'acme', rate: 30, prompt: 400, answer: 150, priority: 0 },
        { name: 'bolt', rate: 3, prompt: 400, answer: 150, priority: 0 },
        { name: 'cove', rate: 2, prompt: 400, answer: 150, priority: 0 },
      ],
    },
  },
  {
    title: 'Batch beside chat',
    text: 'nightly would fill every seat. It has a negative priority, and may fill 60 % of the gate: chat finds room at once. Let it fill everything, and chat waits for answers of batch to end.',
    settings: {
      ...calm,
      ceiling: 60,
      tenants: [
        { name: 'chat', rate: 6, prompt: 300, answer: 100, priority: 100 },
        { name: 'agents', rate: 3, prompt: 1000, answer: 80, priority: 0 },
        { name: 'nightly', rate: 12, prompt: 600, answer: 400, priority: -10 },
      ],
    },
  },
  {
    title: 'A server dies',
    text: 'At 20 s one of three servers dies, for 30 s. What it ran and had not begun to answer is tried again elsewhere; the queue takes what the others cannot, the important tenant first.',
    settings: {
      ...calm,
      faults: [{ kind: 'outage', of: 2, at: 20, for: 30 }],
      tenants: [
        { name: 'premium', rate: 8, prompt: 300, answer: 150, priority: 100 },
        { name: 'standard', rate: 6, prompt: 300, answer: 150, priority: 0 },
        { name: 'trial', rate: 5, prompt: 300, answer: 150, priority: -10 },
      ],
    },
  },
  {
    title: 'Redis is cut',
    text: 'Three replicas of the gateway share the seats of the servers. The first has 60 % of the traffic and borrows seats of the others, until Redis is cut at 20 s, for 30 s: each goes on with the part that is safe, and together they never take more than there is.',
    settings: {
      ...calm,
      replicas: 3,
      faults: [{ kind: 'cut', of: 1, at: 20, for: 30 }],
      tenants: [
        { name: 'acme', rate: 10, prompt: 400, answer: 150, priority: 0 },
        { name: 'bolt', rate: 4, prompt: 400, answer: 150, priority: 0 },
      ],
    },
  },
];
