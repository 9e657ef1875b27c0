/**
 * A pool of model servers with one or two controllers before it, a host for each that keeps its own books, and a history of random
 * steps. After every step the books are compared with what the controllers say of themselves.
 */
import {
  concurrencyDetector,
  edf,
  EndpointPool,
  type EndpointView,
  fcfs,
  FlowConfigError,
  globalStrict,
  leastLoaded,
  roundRobin,
  sloDeadline,
  staticUsageLimit,
  utilizationDetector,
  type FairnessPolicy,
  type OrderingPolicy,
  type UsageLimitPolicy,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { Host } from './host.js';
import { nonsenseDetector, nonsenseFairness, nonsenseOrdering, nonsensePicker, nonsenseUsageLimit, type Mischief } from './nonsense.js';
import { Random } from './random.js';
