/** Every script, for those who are asked for one by its name. */
import { bucketScript } from './buckets/bucket-script.js';
import { exchangeScript } from './fairness/exchange-script.js';
import { leaseScript } from './leases/lease-script.js';
import type { StoreScript } from './store/store.js';

export const storeScripts: readonly StoreScript[] = [leaseScript, bucketScript, exchangeScript];
