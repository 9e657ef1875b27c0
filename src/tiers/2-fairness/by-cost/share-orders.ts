/** The family of policies by cost, by name: what levels of a hierarchy and shards may be shared by. */
import * as s from '../../../base/schema/schema.js';
import { DeficitRounds } from './deficit-rounds.js';
import type { ShareOrder } from './share.js';
import { VirtualCounters } from './virtual-counters.js';

export type Sharing = 'virtual-token-counter' | 'start-time-fair-queueing' | 'least-service' | 'deficit-round-robin';

/** `virtual-token-counter` and `start-time-fair-queueing` lift those that return to the floor: one order here. */
export const sharing: s.Schema<Sharing> = s.oneOf(
  'virtual-token-counter',
  'start-time-fair-queueing',
  'least-service',
  'deficit-round-robin',
);

export function shareOrder(sharing: Sharing): ShareOrder {
  if (sharing === 'deficit-round-robin') return new DeficitRounds();
  return new VirtualCounters(sharing === 'least-service' ? 'none' : 'floor');
}
