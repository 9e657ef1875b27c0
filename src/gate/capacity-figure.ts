/** What a constraint that counts capacity tells, for pages and exporters. */
export interface CapacityFigure {
  /** Its id. */
  readonly endpoint: string;
  /** `kv` and `prefill` in tokens; `slots` in requests, `unstarted` in those without a first token. */
  readonly dimension: 'slots' | 'unstarted' | 'prefill' | 'kv';
  readonly used: number;
  readonly limit: number;
}
