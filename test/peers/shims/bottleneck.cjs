// Bottleneck's interface on a controller: priorities are bands, and what it counts (weights, a reservoir) is a constraint.
// The pause of `minTime` is made here, behind the seat, as it is there. Events and batches are Bottleneck's own, and have
// nothing to do with limits; groups and clusters are not here.
const { FlowController } = require('headgate');
// By name, because they lie beside the file that this one replaces, and not here.
const [Batcher, BottleneckError, Events] = ['Batcher', 'BottleneckError', 'Events'].map((name) => require(`./${name}`));

const strategy = { LEAK: 1, OVERFLOW: 2, OVERFLOW_PRIORITY: 4, BLOCK: 3 };
const defaults = {
  maxConcurrent: null,
  minTime: 0,
  highWater: null,
  strategy: strategy.LEAK,
  reservoir: null,
  rejectOnDrop: true,
  trackDoneStatus: false,
  id: '<no-id>',
};
const jobDefaults = { priority: 5, weight: 1, expiration: null, id: '<no-id>' };
const dropped = 'This job has been dropped by Bottleneck';

class Bottleneck {
  constructor(options = {}, ...others) {
    if (typeof options !== 'object' || others.length > 0)
      throw new BottleneckError(
        "Bottleneck v2 takes a single object argument. Refer to https://github.com/SGrondin/bottleneck#upgrading-to-v2 if you're upgrading from Bottleneck v1.",
      );
    this.settings = { ...defaults, ...options };
    this.id = this.settings.id;
    this.Events = new Events(this);
    this.jobs_ = new Map();
    this.waiting = new Set();
    this.runningWeight = 0;
    this.doneWeight = 0;
    this.startsAtMs = 0;
    const listeners = new Set();
    this.lookAgain = () => {
      for (const listener of [...listeners]) listener();
    };
    this.flow = new FlowController({
      constraints: [
        {
          type: 'bottleneck',
          withRoomFor: (endpoints, { request }) => (this.fits(request.job.options.weight) ? endpoints : []),
          dispatched: (_endpoint, _nowMs, { item }) => this.take(item.request.job),
          subscribe(listener) {
            listeners.add(listener);
            return () => listeners.delete(listener);
          },
        },
      ],
      defaultRequestTtl: 0,
    });
  }

  fits(weight) {
    const { maxConcurrent, reservoir } = this.settings;
    return (
      (maxConcurrent === null || this.runningWeight + weight <= maxConcurrent) &&
      (reservoir === null || weight <= reservoir)
    );
  }

  take(job) {
    const { weight } = job.options;
    this.waiting.delete(job);
    job.status = 'RUNNING';
    job.startsAtMs = Math.max(Date.now(), this.startsAtMs);
    this.startsAtMs = job.startsAtMs + this.settings.minTime;
    this.runningWeight += weight;
    if (this.settings.reservoir === null) return;
    this.settings.reservoir -= weight;
    if (this.settings.reservoir === 0) setImmediate(() => this.Events.trigger('depleted', this.empty()));
  }

  ready() {
    return Promise.resolve();
  }

  disconnect() {
    return this.flow.close().then(() => {});
  }

  chain() {
    return this;
  }

  publish(message) {
    return Promise.resolve(this.Events.trigger('message', message));
  }

  queued(priority) {
    return [...this.waiting].filter(({ options }) => priority === undefined || options.priority === priority).length;
  }

  clusterQueued() {
    return Promise.resolve(this.queued());
  }

  empty() {
    return this.waiting.size === 0 && this.counts().RECEIVED === 0;
  }

  running() {
    return Promise.resolve(this.runningWeight);
  }

  done() {
    return Promise.resolve(this.doneWeight);
  }

  check(weight = 1) {
    return Promise.resolve(this.fits(weight) && this.startsAtMs <= Date.now());
  }

  counts() {
    const counts = { RECEIVED: 0, QUEUED: 0, RUNNING: 0, EXECUTING: 0, ...(this.settings.trackDoneStatus && { DONE: 0 }) };
    for (const { status } of this.jobs_.values()) counts[status]++;
    return counts;
  }

  jobStatus(id) {
    return this.jobs_.get(String(id))?.status ?? null;
  }

  jobs(status) {
    const ids = [...this.jobs_].filter(([, job]) => status === undefined || job.status === status);
    return ids.map(([id]) => id);
  }

  currentReservoir() {
    return Promise.resolve(this.settings.reservoir);
  }

  async incrementReservoir(by = 0) {
    this.settings.reservoir += by;
    this.lookAgain();
    return this.settings.reservoir;
  }

  async updateSettings(options) {
    Object.assign(this.settings, options);
    this.lookAgain();
    return this;
  }

  schedule(...given) {
    const [options, task, args] = split(given);
    return this.receive(options, args, (...all) => task(...all)).promise;
  }

  submit(...given) {
    const [options, task, args] = split(given);
    const callback = args.pop();
    const asPromise = (...all) =>
      new Promise((resolve, reject) => {
        task(...all, (...said) => (said[0] == null ? resolve : reject)(said));
      });
    const job = this.receive(options, args, asPromise);
    job.promise
      .then((said) => callback?.(...(Array.isArray(said) ? said : [])))
      .catch((said) => (Array.isArray(said) ? callback?.(...said) : callback?.(said)));
    return job.queued;
  }

  wrap(task) {
    const limiter = this;
    function wrapped(...args) {
      return limiter.schedule(task.bind(this), ...args);
    }
    wrapped.withOptions = (options, ...args) => this.schedule(options, task, ...args);
    return wrapped;
  }

  receive(given, args, task) {
    const options = { ...jobDefaults, ...given };
    options.priority = Math.min(Math.max(Math.trunc(options.priority), 0), 9);
    if (given.id === undefined) options.id = `<no-id>-${Math.random().toString(36).slice(2)}`;
    const job = { options, args, task, status: 'RECEIVED', leaving: new AbortController() };
    job.promise = new Promise((resolve, reject) => Object.assign(job, { resolve, reject }));
    job.id = String(options.id);
    job.queued = this.enter(job);
    return job;
  }

  async enter(job) {
    const { options, args, id } = job;
    if (this.stopped !== undefined) return this.fail(job, this.stopped);
    if (this.jobs_.has(id)) return this.fail(job, `A job with the same id already exists (id=${id})`);
    this.jobs_.set(id, job);
    void this.Events.trigger('received', { args, options });
    await Promise.resolve();
    const { maxConcurrent, highWater, strategy: chosen } = this.settings;
    if (maxConcurrent !== null && options.weight > maxConcurrent) {
      this.jobs_.delete(id);
      return this.fail(
        job,
        `Impossible to add a job having a weight of ${options.weight} to a limiter having a maxConcurrent setting of ${maxConcurrent}`,
      );
    }
    const isFull =
      highWater !== null &&
      this.queued() === highWater &&
      !(this.fits(options.weight) && this.startsAtMs <= Date.now());
    const isBlocked = chosen === strategy.BLOCK && (isFull || this.blockedUntilMs > Date.now());
    if (isBlocked) {
      this.blockedUntilMs = Date.now() + (this.settings.penalty ?? (15 * this.settings.minTime || 5_000));
      for (const each of [...this.waiting]) this.drop(each);
    } else if (isFull) {
      const least = options.priority + (chosen === strategy.OVERFLOW_PRIORITY ? 1 : 0);
      const last = chosen === strategy.OVERFLOW ? undefined : this.last(least);
      if (last !== undefined) this.drop(last);
      if (last === undefined) return this.drop(job);
    }
    if (isBlocked) return this.drop(job);
    void this.Events.trigger('queued', { args, options, reachedHWM: isFull, blocked: isBlocked });
    job.status = 'QUEUED';
    this.waiting.add(job);
    const key = { fairnessId: 'all', priority: -options.priority };
    const outcome = this.flow.enqueue({ byteSize: 1, job, signal: job.leaving.signal }, key);
    void outcome.then((verdict) => verdict.type === 'Dispatched' && this.run(job, verdict.lease));
    await Promise.race([outcome, new Promise((resolve) => setImmediate(resolve))]);
  }

  /** The last of the least important, unless all are more important than that. */
  last(least) {
    const candidates = [...this.waiting].filter(({ options }) => options.priority >= least);
    return candidates.reduce((a, b) => (a === undefined || b.options.priority >= a.options.priority ? b : a), undefined);
  }

  fail(job, message) {
    job.reject(new BottleneckError(message));
  }

  drop(job, message = dropped) {
    this.waiting.delete(job);
    this.jobs_.delete(job.id);
    job.leaving.abort();
    if (this.settings.rejectOnDrop) this.fail(job, message);
    void this.Events.trigger('dropped', { args: job.args, options: job.options, task: job.task, promise: job.promise });
  }

  async run(job, lease) {
    const { options, args, task } = job;
    if (this.empty()) void this.Events.trigger('empty');
    void this.Events.trigger('scheduled', { args, options });
    await new Promise((resolve) => {
      job.pause = setTimeout(resolve, job.startsAtMs - Date.now());
      job.skip = resolve;
    });
    if (job.isDropped) return this.end(job, lease);
    for (let retryCount = 0; ; retryCount++) {
      job.status = 'EXECUTING';
      const info = { args, options, retryCount };
      void this.Events.trigger('executing', info);
      try {
        const result = await this.within(options.expiration, () => task(...args));
        this.doneWeight += options.weight;
        this.end(job, lease, 'DONE');
        void this.Events.trigger('done', info);
        return job.resolve(result);
      } catch (error) {
        const failure = Array.isArray(error) ? error[0] : error;
        const retryMs = await this.Events.trigger('failed', failure, info);
        if (retryMs != null) {
          void this.Events.trigger('retry', `Retrying ${job.id} after ${Math.trunc(retryMs)} ms`, info);
          job.status = 'RUNNING';
          await new Promise((resolve) => setTimeout(resolve, retryMs));
          continue;
        }
        this.doneWeight += options.weight;
        this.end(job, lease, 'DONE');
        void this.Events.trigger('done', info);
        return job.reject(error);
      }
    }
  }

  within(expiration, task) {
    if (expiration === null) return task();
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new BottleneckError(`This job timed out after ${expiration} ms.`)), expiration);
    });
    return Promise.race([task(), late]).finally(() => clearTimeout(timer));
  }

  end(job, lease, status) {
    this.runningWeight -= job.options.weight;
    if (status === 'DONE' && this.settings.trackDoneStatus) job.status = 'DONE';
    else this.jobs_.delete(job.id);
    lease.release();
    const { RUNNING, EXECUTING } = this.counts();
    if (RUNNING + EXECUTING === 0 && this.empty()) void this.Events.trigger('idle');
    this.stopping?.();
  }

  stop({ dropWaitingJobs = true, dropErrorMessage = 'This limiter has been stopped.', enqueueErrorMessage } = {}) {
    if (this.stopped !== undefined) return Promise.reject(new BottleneckError('stop() has already been called'));
    this.stopped = enqueueErrorMessage ?? 'This limiter has been stopped and cannot accept new jobs.';
    if (dropWaitingJobs) {
      for (const job of this.jobs_.values()) {
        if (job.status !== 'QUEUED' && job.status !== 'RUNNING' && job.status !== 'RECEIVED') continue;
        job.isDropped = true;
        clearTimeout(job.pause);
        this.drop(job, dropErrorMessage);
        job.skip?.();
      }
    }
    return new Promise((resolve) => {
      this.stopping = () => {
        const { RECEIVED, QUEUED, RUNNING, EXECUTING } = this.counts();
        if (RECEIVED + QUEUED + RUNNING + EXECUTING === 0) resolve();
      };
      this.stopping();
    });
  }
}

/** `(options, task, …args)` or `(task, …args)`. */
function split(given) {
  const [first, ...rest] = given;
  return typeof first === 'function' ? [{}, first, rest] : [first, rest[0], rest.slice(1)];
}

Object.assign(Bottleneck, { default: Bottleneck, strategy, BottleneckError, Batcher, Events, version: 'headgate' });
module.exports = Bottleneck;
