/** What the test and its workers agree on. */
export interface Plan {
  readonly port: number;
  readonly limit: number;
  readonly seed: number;
}

/** Seats of one that was not known to be gone would stay reserved for longer than any test. */
export const timing = {
  pool: 'p',
  refreshInterval: '50ms',
  leaseDuration: '2s',
  callTimeout: '1s',
  drainDuration: '10m',
} as const;
