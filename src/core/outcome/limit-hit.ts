/** The limit that a request did not fit into. */
export interface LimitHit {
  readonly scope: 'global' | 'band' | 'flow';
  readonly resource: 'requests' | 'bytes';
  /** The configured limit. */
  readonly max: number;
  /** The part that was occupied when the request came. */
  readonly used: number;
}
