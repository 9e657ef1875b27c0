// fastq's interface on a controller: its own queue of one worker's tasks, in callbacks and in promises.
const { concurrencyDetector, FlowController } = require('headgate');

const request = { byteSize: 1 };
const key = { fairnessId: 'all' };
const noop = () => {};
const gate = (maxConcurrency) => ({ saturationDetector: concurrencyDetector({ maxConcurrency }) });

function fastq(context, worker, concurrency) {
  if (typeof context === 'function') return fastq(null, context, worker);
  if (!(concurrency >= 1)) throw new Error('fastqueue concurrency must be equal to or greater than 1');
  const flow = new FlowController({ ...gate(concurrency), defaultRequestTtl: 0 });
  const waiting = new Set();
  let isPaused = false;
  let onError = noop;
  let leaving = new AbortController();
  let front = 0;

  function work({ value, done }, lease) {
    worker.call(context, value, (error, result) => {
      lease.release();
      onError(error, value);
      done.call(context, error, result);
      // What waits goes before this turn ends: then nothing runs because nothing waits.
      queueMicrotask(() => queue.idle() && !isPaused && queue.drain?.());
    });
  }

  function enter(value, done, priority) {
    const task = { value, done, priority };
    const at = { ...key, priority };
    const now = waiting.size === 0 ? flow.tryEnqueue(request, at) : undefined;
    if (now?.type === 'Dispatched') return work(task, now.lease);
    if (waiting.size === 0) queue.saturated();
    waiting.add(task);
    const { signal } = leaving;
    void flow.enqueue({ ...request, signal }, at).then((outcome) => {
      waiting.delete(task);
      if (outcome.type === 'Dispatched') work(task, outcome.lease);
      else {
        if (!task.isKilled) onError(signal.reason, value);
        task.done.call(context, signal.reason);
      }
      if (waiting.size === 0) queue.empty();
    });
  }

  function leave(reason) {
    const before = leaving;
    leaving = new AbortController();
    if (reason === undefined) for (const task of waiting) Object.assign(task, { done: noop, isKilled: true });
    before.abort(reason);
    if (reason === undefined) waiting.clear();
  }

  const queue = {
    drain: noop,
    saturated: noop,
    empty: noop,
    push: (value, done = noop) => enter(value, done ?? noop, 0),
    unshift: (value, done = noop) => enter(value, done ?? noop, waiting.size === 0 ? 0 : ++front),
    get paused() {
      return isPaused;
    },
    get concurrency() {
      return concurrency;
    },
    set concurrency(next) {
      if (!(next >= 1)) throw new Error('fastqueue concurrency must be equal to or greater than 1');
      concurrency = next;
      if (!isPaused) flow.reconfigure(gate(next));
    },
    running: () => flow.stats().inFlight,
    idle: () => flow.stats().inFlight + flow.stats().waiting === 0,
    length: () => flow.stats().waiting,
    getQueue: () => [...waiting].sort((a, b) => b.priority - a.priority).map(({ value }) => value),
    pause() {
      isPaused = true;
      flow.reconfigure({ saturationDetector: () => 1 });
    },
    resume() {
      if (!isPaused) return;
      isPaused = false;
      flow.reconfigure(gate(concurrency));
      if (queue.idle()) queue.drain();
    },
    kill() {
      leave();
      queue.drain = noop;
    },
    killAndDrain() {
      leave();
      queue.drain();
      queue.drain = noop;
    },
    abort() {
      leave(new Error('abort'));
      queue.drain = noop;
    },
    error: (handler) => {
      onError = handler;
    },
  };
  return queue;
}

function promise(context, worker, concurrency) {
  if (typeof context === 'function') return promise(null, context, worker);
  const queue = fastq(context, (value, done) => worker.call(context, value).then((result) => done(null, result), done), concurrency);
  for (const name of ['push', 'unshift']) {
    const enter = queue[name];
    queue[name] = (value) => {
      const answer = new Promise((resolve, reject) =>
        enter(value, (error, result) => (error ? reject(error) : resolve(result))),
      );
      answer.catch(noop);
      return answer;
    };
  }
  queue.drained = async () => {
    await Promise.resolve();
    if (queue.idle()) return;
    const { drain } = queue;
    await new Promise((resolve) => {
      queue.drain = () => {
        drain?.();
        resolve();
        queue.drain = drain;
      };
    });
  };
  return queue;
}

module.exports = fastq;
module.exports.promise = promise;
