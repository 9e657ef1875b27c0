/** The family of policies by cost, by name: what levels of a hierarchy and shards may be shared by. */
import { DeficitRounds } from './deficit-rounds.js';
import type { ShareOrder } from './share.js';
import { VirtualCounters } from './virtual-counters.js';

/** `virtual-token-counter` and `start-time-fair-queueing` lift those that return to the floor: one order here. */
export const sharings = [
  'virtual-token-counter',
  'start-time-fair-queueing',
  'least-service',
  'deficit-round-robin',
] as const;

export type Sharing = (typeof sharings)[number];

export function shareOrder(sharing: Sharing): ShareOrder {
  if (sharing === 'deficit-round-robin') return new DeficitRounds();
  return new VirtualCounters(sharing === 'least-service' ? 'none' : 'floor');
}
