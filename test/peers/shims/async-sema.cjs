// async-sema's interface on a controller: a token is a lease.
const { concurrencyDetector, FlowController } = require('headgate');

const request = { byteSize: 1 };
const key = { fairnessId: 'all' };

exports.Sema = class Sema {
  constructor(count, { initFn = () => '1', pauseFn, resumeFn } = {}) {
    if ((pauseFn === undefined) !== (resumeFn === undefined))
      throw new Error('pauseFn and resumeFn must be both set for pausing');
    this.count = count;
    this.tokens = Array.from({ length: count }, () => initFn());
    this.leases = [];
    this.flow = new FlowController({
      saturationDetector: concurrencyDetector({ maxConcurrency: count }),
      defaultRequestTtl: 0,
    });
    this.flow.on('queued', () => {
      if (!this.isPaused) pauseFn?.();
      this.isPaused = true;
    });
    this.flow.on('gate', ({ isClosed }) => {
      if (isClosed || !this.isPaused) return;
      this.isPaused = false;
      resumeFn?.();
    });
  }

  take(outcome) {
    if (outcome?.type !== 'Dispatched') return undefined;
    this.leases.push(outcome.lease);
    return this.tokens.pop();
  }

  tryAcquire() {
    return this.take(this.flow.tryEnqueue(request, key));
  }

  async acquire() {
    return this.take(await this.flow.enqueue(request, key));
  }

  release(token = '1') {
    this.tokens.push(token);
    this.leases.shift()?.release();
  }

  drain() {
    return Promise.all(Array.from({ length: this.count }, () => this.acquire()));
  }

  nrWaiting() {
    return this.flow.stats().waiting;
  }
};
