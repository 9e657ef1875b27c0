/**
 * The server of the VTC paper, Llama-2-7b on an A10G under S-LoRA: a request joins the batch only when all running
 * requests, at their longest, will fit into the KV pool beside it; joining is tried every ten decode steps, prompts are
 * computed in a step of their own. A request that was dispatched and does not fit waits in the server, alone, because a
 * gateway in front cannot know whether the next one fits. Sources: Sheng et al., "Fairness in serving large language
 * models" (OSDI '24) and its artifact, slora/server/router; the times are fitted to the artifact's cost profile.
 */
import type { Filled } from '../../base/schema/element.js';
import type { SimRequest } from '../requests/sim-request.js';
import { ModelServer, type ServerFactory, type ServerHost, type ServerLoad, type SimServer } from './sim-server.js';

export interface VtcServingOptions {
  /** Tokens that the KV pool holds. @default 10,000 */
  readonly kvTokens?: number | undefined;
  /** Prompt tokens that may join at a time. @default 3072 */
  readonly maxPromptTokens?: number | undefined;
  /** Decode steps between two trials. @default 10 */
  readonly stepsBetweenBatches?: number | undefined;
  /** Factor on all times. @default 1.07 */
  readonly timeFactor?: number | undefined;
}

/** ms: a + b·batch + c·tokens in the pool; d + e·prompt tokens. */
const decode = { fixed: 18.159, each: 0.21607, kvToken: 0.0018906 };
const prefill = { fixed: 53.165, token: 0.20893 };

export function vtcServing(options: VtcServingOptions = {}): ServerFactory {
  const { kvTokens = 10_000, maxPromptTokens = 3072, stepsBetweenBatches = 10, timeFactor = 1.07 } = options;
  return (id, host) => new VtcServer(id, host, { kvTokens, maxPromptTokens, stepsBetweenBatches, timeFactor });
}

type Settings = Filled<VtcServingOptions>;

/** In a request: `held` is tokens in the pool, `left` those still to come. */
class VtcServer extends ModelServer implements SimServer {
  private readonly settings: Settings;
  private batch: SimRequest[] = [];
  /** Dispatched and not in the batch, in order of arrival. */
  private readonly door: SimRequest[] = [];
  private readonly joining: SimRequest[] = [];
  private joiningTokens = 0;
  private steps = 0;
  /** True while joining is tried, and the gate may send more. */
  private isOpen = true;
  private isBusy = false;
  private kvHeld = 0;
  private readonly endPrefill = (): void => this.prefilled();
  private readonly endDecode = (): void => this.decoded();

  constructor(id: string, host: ServerHost, settings: Settings) {
    super(id, host);
    this.settings = settings;
  }

  accept(request: SimRequest): void {
    this.door.push(request);
    if (!this.isOpen) return;
    this.join();
    if (!this.isBusy) this.host.clock.after(0, () => this.next());
    this.isBusy = true;
  }

  abort(request: SimRequest): void {
    for (const from of [this.door, this.batch, this.joining]) {
      const at = from.indexOf(request);
      if (at < 0) continue;
      from.splice(at, 1);
      if (from !== this.door) this.hold(-request.held);
    }
  }

  hasRoom(): boolean {
    return this.isOpen && this.door.length === 0;
  }

  load(): ServerLoad {
    const { kvTokens } = this.settings;
    return {
      waitingQueueSize: this.door.length,
      runningRequests: this.batch.length,
      kvCacheUsage: Math.min(1, this.kvHeld / kvTokens),
    };
  }

  /** Lets waiting requests join as far as they fit, then decides on the next step. */
  private next(): void {
    const { clock } = this.host;
    this.isOpen = false;
    const now = clock.now();
    this.inBatch.set(this.batch.length, now);
    this.working.set(1, now);
    if (this.joining.length > 0) {
      const prefillMs = prefill.fixed + prefill.token * this.joiningTokens;
      clock.after(prefillMs * this.settings.timeFactor * this.slowness, this.endPrefill);
    } else if (this.batch.length > 0) {
      clock.after(this.decodeMs() * this.slowness, this.endDecode);
    } else {
      this.working.set(0, now);
      this.isBusy = false;
      this.open();
    }
  }

  /** Asks the gate for more requests; each joins at once or waits. The step begins when the instant is over. */
  private open(): void {
    this.isOpen = true;
    this.join();
    if (this.hasRoom()) this.host.roomMade();
  }

  private join(): void {
    for (let request = this.door[0]; request !== undefined && this.canJoin(request); request = this.door[0]) {
      this.door.shift();
      request.held = request.promptTokens + 1;
      request.left = request.outputTokens - 1;
      this.hold(request.held);
      this.joining.push(request);
      this.joiningTokens += request.promptTokens;
      this.host.started(request);
    }
  }

  /** At no future step may the requests, longest first, hold more than the pool. A lone one always joins. */
  private canJoin(request: SimRequest): boolean {
    const others = this.batch.length + this.joining.length;
    if (others === 0) return true;
    if (this.joiningTokens + request.promptTokens > this.settings.maxPromptTokens && this.joining.length > 0)
      return false;
    const all = [...this.batch, ...this.joining].map(({ held, left }) => ({ held, left }));
    all.push({ held: request.promptTokens + 1, left: request.outputTokens - 1 });
    all.sort((a, b) => b.left - a.left);
    let sum = 0;
    return all.every(({ held, left }, index) => {
      sum += held;
      return left * (index + 1) + sum < this.settings.kvTokens;
    });
  }

  private prefilled(): void {
    const joined = this.joining.splice(0);
    this.joiningTokens = 0;
    this.steps = 0;
    this.batch.push(...joined);
    for (const request of joined) {
      request.tokensOut = 1;
      this.host.token(request);
    }
    this.endFinished(joined);
    this.afterStep();
  }

  private decoded(): void {
    this.steps++;
    for (const request of this.batch) {
      request.tokensOut++;
      request.held++;
      request.left--;
      this.host.token(request);
    }
    this.hold(this.batch.length);
    this.endFinished(this.batch);
    this.afterStep();
  }

  private hold(tokens: number): void {
    this.kvHeld += tokens;
    this.kvUsage.set(this.kvHeld / this.settings.kvTokens, this.host.clock.now());
  }

  private endFinished(candidates: readonly SimRequest[]): void {
    const ended = candidates.filter(({ left }) => left <= 0);
    if (ended.length === 0) return;
    this.batch = this.batch.filter(({ left }) => left > 0);
    for (const request of ended) {
      this.hold(-request.held);
      this.host.completed(request);
    }
  }

  private afterStep(): void {
    if (this.batch.length === 0 || this.steps >= this.settings.stepsBetweenBatches) this.open();
    // After what the gate sends now.
    this.host.clock.after(0, () => this.next());
  }

  private decodeMs(): number {
    const { fixed, each, kvToken } = decode;
    return (fixed + each * this.batch.length + kvToken * this.kvHeld) * this.settings.timeFactor;
  }
}
