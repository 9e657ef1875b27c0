/** `headgate/redis`: one limit, one budget and one picture of the pool for many replicas, on Redis or Valkey. */
export type { LinkFigures } from './engine/engine-link.js';
export type { EngineProblem, EngineProblemCode } from './engine/engine-problem.js';
export type { IoRedisClient, NodeRedisClient, RedisClient } from './engine/redis-client.js';
export type { LeaseEvents } from './leases/lease-events.js';
export type { LeaseOptions } from './leases/lease-options.js';
export type { LeaseStatus } from './leases/lease-status.js';
export {
  type LeasedDetector,
  type SharedConcurrency,
  type SharedConcurrencyOptions,
  sharedConcurrency,
  type WaitingFlow,
} from './leases/shared-concurrency.js';
export { type SharedEndpointsOptions, sharedEndpointConcurrency } from './leases/shared-endpoints.js';
