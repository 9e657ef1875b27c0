/** The figures of sessions that a detector limits, for pages and exporters. */
export interface SessionFigures {
  /** Sessions that are resident, idle ones too. */
  readonly resident: number;
  /** The resident sessions without a running turn whose last turn was in this process. */
  readonly idle: number;
  /** Sessions that may be resident at a time; Infinity = unlimited. */
  readonly maxSessions: number;
  /** New sessions that are held back. */
  readonly waiting: number;
  /** Tokens that the resident sessions hold, over all endpoints; a shared prefix counts once at each. */
  readonly tokens: number;
  /** Sessions that ended because their inactivity lease was over. */
  readonly expired: number;
  /** The resident sessions whose last turn was in another replica; undefined where sessions are not shared. */
  readonly elsewhere?: number | undefined;
}
