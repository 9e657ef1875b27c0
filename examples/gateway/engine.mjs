// @ts-check
// A continuous-batching engine, as model servers run one: who is in the batch, what a step computes, how long it takes.
// Invariant: usedBlocks is the sum over running sequences, 0 <= usedBlocks <= kvBlocks; a waiting sequence holds no
// block. There is no timer and no clock in here: a driver calls beginStep(), lets that much time pass, calls
// finishStep().

/**
 * @typedef {object} EngineOptions
 * @property {number} maxNumSeqs Most sequences in the batch.
 * @property {number} kvBlocks KV-cache size, in blocks.
 * @property {number} blockTokens Tokens a block holds.
 * @property {number} maxBatchedTokens Tokens computed per step at most; long prompts are prefilled in chunks of what is
 * left of it.
 * @property {number} stepMs Fixed duration of a step (reading the weights).
 * @property {number} prefillTokenMs Added per prompt token computed.
 * @property {number} decodeSeqMs Added per sequence that decodes.
 * @property {number} kvTokenMs Added per resident token that the step's attention reads.
 */

/**
 * A small GPU. About 15 sequences of the demo's mix fit into its cache, yet the batch is allowed to be much larger: the
 * usual deployment, where nobody can know the right number of sequences in advance, because it depends on their
 * lengths.
 * @type {Readonly<EngineOptions>}
 */
export const defaultEngine = Object.freeze({
  maxNumSeqs: 64,
  kvBlocks: 1_400,
  blockTokens: 16,
  maxBatchedTokens: 1_024,
  stepMs: 8,
  prefillTokenMs: 0.1,
  decodeSeqMs: 0.6,
  kvTokenMs: 0.0004,
});

/** One request inside the engine. The engine owns every field; others read. */
export class Sequence {
  /**
   * @param {number} promptTokens
   * @param {number} maxTokens
   * @param {(sequence: Sequence) => void} onToken
   */
  constructor(promptTokens, maxTokens, onToken) {
    this.promptTokens = promptTokens;
    this.maxTokens = maxTokens;
    this.onToken = onToken;
    /** @type {'waiting' | 'running' | 'finished' | 'aborted'} */
    this.state = 'waiting';
    this.generated = 0;
    /** Tokens whose KV is in the cache. */
    this.computed = 0;
    /** The most that `computed` has ever been: computing below it again is work lost to preemption. */
    this.computedOnce = 0;
    this.blocks = 0;
    /** Tokens the current step computes for it. */
    this.scheduled = 0;
  }

  /** Tokens to compute before the next one can be sampled: 1 while decoding, more in prefill. */
  get pending() {
    return this.promptTokens + this.generated - this.computed;
  }
}

export class Engine {
  /** @param {Partial<EngineOptions>} [options] */
  constructor(options = {}) {
    this.options = { ...defaultEngine, ...options };
    /** In order of admission: the last is the first to be preempted. @type {Sequence[]} */
    this.running = [];
    /** In order of arrival, preempted sequences in front. @type {Sequence[]} */
    this.waiting = [];
    this.usedBlocks = 0;
    this.totals = { preemptions: 0, promptTokens: 0, generatedTokens: 0, recomputedTokens: 0, finished: 0, aborted: 0 };
  }

  /** Whether a sequence of this length can ever be computed: alone in the cache, it must fit. @param {number} tokens */
  fits(tokens) {
    return this.#blocksFor(tokens) <= this.options.kvBlocks;
  }

  /**
   * @param {number} promptTokens
   * @param {number} maxTokens
   * @param {(sequence: Sequence) => void} onToken Called once per token, at the end of the step that sampled it.
   */
  submit(promptTokens, maxTokens, onToken) {
    if (!(promptTokens >= 1 && maxTokens >= 1 && this.fits(promptTokens + maxTokens))) {
      throw new RangeError(`expected 1 or more tokens that fit the cache; got ${promptTokens} + ${maxTokens}`);
    }
    const sequence = new Sequence(promptTokens, maxTokens, onToken);
    this.waiting.push(sequence);
    return sequence;
  }

  /** The client has left: its blocks are free at once, also in the middle of a step. @param {Sequence} sequence */
  abort(sequence) {
    if (sequence.state !== 'waiting' && sequence.state !== 'running') return;
    const from = sequence.state === 'waiting' ? this.waiting : this.running;
    from.splice(from.indexOf(sequence), 1);
    this.#drop(sequence, 'aborted');
    this.totals.aborted += 1;
  }

  /** Forms the next batch. Returns how long computing it takes, in ms; 0 when there is nothing to do. */
  beginStep() {
    const { options, running, waiting } = this;
    let tokensLeft = options.maxBatchedTokens;
    const preemptionsBefore = this.totals.preemptions;

    for (let i = 0; i < running.length; i += 1) {
      const sequence = /** @type {Sequence} */ (running[i]);
      const tokens = Math.min(sequence.pending, tokensLeft);
      while (!this.#grow(sequence, tokens)) {
        if (this.#preemptLast() === sequence) break;
      }
      if (sequence.state !== 'running') break;
      sequence.scheduled = tokens;
      tokensLeft -= tokens;
    }

    // As real engines do, a newcomer needs room for its first chunk only. What it will grow to is not reserved.
    while (this.totals.preemptions === preemptionsBefore && tokensLeft > 0 && running.length < options.maxNumSeqs) {
      const sequence = waiting[0];
      const tokens = Math.min(sequence?.pending ?? 0, tokensLeft);
      if (sequence === undefined || !this.#grow(sequence, tokens)) break;
      waiting.shift();
      running.push(sequence);
      sequence.state = 'running';
      sequence.scheduled = tokens;
      tokensLeft -= tokens;
    }
    return this.#durationMs();
  }

  /** Ends the step begun before: caches grow, tokens come out, finished sequences leave. */
  finishStep() {
    for (const sequence of [...this.running]) {
      const tokens = sequence.scheduled;
      if (tokens === 0 || sequence.state !== 'running') continue;
      const before = sequence.computed;
      sequence.scheduled = 0;
      sequence.computed += tokens;
      this.totals.recomputedTokens +=
        Math.min(sequence.computedOnce, sequence.computed) - Math.min(sequence.computedOnce, before);
      sequence.computedOnce = Math.max(sequence.computedOnce, sequence.computed);
      if (sequence.pending > 0) continue;
      if (sequence.generated === 0) this.totals.promptTokens += sequence.promptTokens;
      sequence.generated += 1;
      this.totals.generatedTokens += 1;
      if (sequence.generated === sequence.maxTokens) {
        this.running.splice(this.running.indexOf(sequence), 1);
        this.#drop(sequence, 'finished');
        this.totals.finished += 1;
      }
      sequence.onToken(sequence);
    }
  }

  #durationMs() {
    const { stepMs, prefillTokenMs, decodeSeqMs, kvTokenMs } = this.options;
    let durationMs = 0;
    for (const { scheduled, pending, computed } of this.running) {
      if (scheduled === 0) continue;
      durationMs ||= stepMs;
      durationMs += (pending > 1 ? scheduled * prefillTokenMs : decodeSeqMs) + computed * kvTokenMs;
    }
    return durationMs;
  }

  /**
   * Takes the blocks that `tokens` more need. False, and nothing taken, if the cache has not that many. @param
   * {Sequence} sequence @param {number} tokens
   */
  #grow(sequence, tokens) {
    const more = this.#blocksFor(sequence.computed + tokens) - sequence.blocks;
    if (this.usedBlocks + more > this.options.kvBlocks) return false;
    sequence.blocks += more;
    this.usedBlocks += more;
    return true;
  }

  /** Preemption by recomputation: the youngest loses its whole cache and starts again, before all others that wait. */
  #preemptLast() {
    const sequence = /** @type {Sequence} */ (this.running.pop());
    this.#drop(sequence, 'waiting');
    this.waiting.unshift(sequence);
    this.totals.preemptions += 1;
    return sequence;
  }

  /** @param {Sequence} sequence @param {Sequence['state']} state */
  #drop(sequence, state) {
    this.usedBlocks -= sequence.blocks;
    sequence.blocks = 0;
    sequence.computed = 0;
    sequence.scheduled = 0;
    sequence.state = state;
  }

  /** @param {number} tokens */
  #blocksFor(tokens) {
    return Math.ceil(tokens / this.options.blockTokens);
  }
}
