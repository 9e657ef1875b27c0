/**
 * Helps when servers have no metrics and the detector needs them: nothing would ever be dispatched. Where the file
 * names no detector, one that counts requests in flight takes over until a server reports; where it names one, the log
 * says what is wrong.
 */
import { concurrencyDetector, type SaturationDetector } from '../../index.js';
import type { GatewayConfig } from '../settings/gateway-config.js';
import type { GatewayLog } from '../shared/gateway-log.js';

/** Requests in flight on an unknown server of weight 1: few enough for a small one, enough to keep a large one busy. */
const fallbackConcurrency = 16;

/** `limits`: those of the detector, where workers have them together. */
type Use = (detector: SaturationDetector, limits?: { readonly maxConcurrency: number }) => void;

export class MetricsFallback {
  private readonly log: GatewayLog;
  private readonly use: Use;
  private config: GatewayConfig;
  private isReplaced = false;

  /** `use` puts a detector into force. */
  constructor(config: GatewayConfig, log: GatewayLog, use: Use) {
    this.config = config;
    this.log = log;
    this.use = use;
  }

  /** Takes another configuration; `isNew` when its detector is in force already. */
  configure(config: GatewayConfig, isNew: boolean): void {
    this.config = config;
    if (isNew) this.isReplaced = false;
  }

  /** Every server answered without such metrics, or no server is asked. */
  noLoadReported(): void {
    const { needsPool, type } = this.detector;
    if (needsPool !== true || this.isReplaced) return;
    if (!this.config.hasDefaultDetector) {
      const message = `no server reports its load, and ${type} needs it: no request is dispatched. See scrape, upstreams[].metrics`;
      this.log('error', 'no-load-reports', { message });
      return;
    }
    this.isReplaced = true;
    const limits = { maxConcurrency: fallbackConcurrency };
    this.use(concurrencyDetector(limits), limits);
    const message =
      `no server reports its load: at most ${fallbackConcurrency} requests run on each at a time, which is a guess. ` +
      'Declare a concurrency-detector with what the servers can hold, or let them report metrics';
    this.log('warn', 'no-load-reports', { message, maxConcurrency: fallbackConcurrency });
  }

  loadReported(): void {
    if (!this.isReplaced) return;
    this.isReplaced = false;
    this.use(this.detector);
    this.log('info', 'load-reports', { message: `servers report their load: ${this.detector.type} judges again` });
  }

  private get detector(): SaturationDetector {
    // A file without one has the default.
    const { saturationDetector = () => 1 } = this.config.flow;
    return typeof saturationDetector === 'function'
      ? { type: 'function', saturation: saturationDetector }
      : saturationDetector;
  }
}
