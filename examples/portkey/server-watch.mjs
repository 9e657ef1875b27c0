// What the model servers say of themselves: their queues, five times a second, and their preemptions at the end.

const everyMs = 200;

export class ServerWatch {
  #servers;
  #timer;
  #samples = [];

  constructor(servers) {
    this.#servers = servers;
    this.#timer = setInterval(() => this.#sample(), everyMs);
  }

  /** @returns The most and the mean of requests queued in one server, and the preemptions of all. */
  async stop() {
    clearInterval(this.#timer);
    const { preemptions } = await this.#sample();
    const waiting = this.#samples.flatMap((sample) => sample.waiting);
    return {
      mostWaiting: Math.max(...waiting),
      meanWaiting: waiting.reduce((sum, each) => sum + each, 0) / waiting.length,
      preemptions,
    };
  }

  async #sample() {
    const pages = await Promise.all(this.#servers.map(async (url) => (await fetch(`${url}/metrics`)).text()));
    const read = (name) => pages.map((page) => Number(page.match(new RegExp(`^${name}{.*} (.*)$`, 'm'))[1]));
    const sample = {
      waiting: read('vllm:num_requests_waiting'),
      preemptions: read('vllm:num_preemptions_total').reduce((sum, each) => sum + each, 0),
    };
    this.#samples.push(sample);
    return sample;
  }
}
