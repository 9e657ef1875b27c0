/** The sink for faults of foreign code: they are counted and announced, and never thrown at a request. */

/** The kinds of foreign code that the controller calls. */
export type PluginKind =
  | 'fairness'
  | 'ordering'
  | 'saturationDetector'
  | 'constraint'
  | 'seatListener'
  | 'usageLimit'
  | 'bandOrder'
  | 'endpointPicker'
  | 'endpointFilter'
  | 'admission'
  | 'evictionFilter'
  | 'evictionOrdering'
  | 'flows'
  | 'onDispatch'
  | 'estimate'
  | 'listener'
  | 'signal';

/** Takes the fault of one plugin; must not throw. */
export interface PluginErrorSink {
  pluginFailed(kind: PluginKind, type: string, error: unknown): void;
}
