/** How few evictions let a burst in: what a controller that evicts for it is measured by. */

export interface Burst {
  /** Requests that run, all of which may be evicted. */
  readonly preload: number;
  /** Requests that come, all of higher priority. */
  readonly highPriority: number;
  /** Requests that fill the pool. */
  readonly capacity: number;
  /** Saturation below which one more may go. */
  readonly ceiling: number;
}

/** The seats below the ceiling bound both: the last request to be admitted must find one free. */
export function minimumEvictions({ preload, highPriority, capacity, ceiling }: Burst): {
  minEvictions: number;
  admittable: number;
} {
  let seats = 0;
  while (seats / capacity < ceiling) seats++;
  const admittable = Math.min(highPriority, seats);
  return {
    minEvictions: admittable === 0 ? 0 : Math.min(preload, Math.max(0, preload + admittable - seats)),
    admittable,
  };
}
