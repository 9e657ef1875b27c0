// Clients of every kind over real sockets: patient ones, those that leave in every phase, and hostile ones. Each
// request is answered, broken off by the gateway after its answer had begun, or aborted by its client; the rest is lost.
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { seededRandom } from '../../lib/random.mjs';
import { limits, senders } from './configurations.mjs';

const clients = 60;
/** Longer than any time limit of the file: who has no answer by then gets none. */
const lostAfterMs = 30_000;
const models = ['m', 'n', undefined];

export class Clients {
  asked = 0;
  answered = 0;
  brokenOff = 0;
  aborted = 0;
  /** How many got each status. */
  statuses = {};
  violations = [];
  #url;
  #random;
  #isRunning = true;
  #agent = new Agent({ keepAlive: true, maxSockets: 40 });
  #done;

  constructor(url, seed) {
    this.#url = new URL(url);
    this.#random = seededRandom(seed);
    this.#done = Promise.all(Array.from({ length: clients }, () => this.#client()));
  }

  /** No new requests; resolves when the last one has ended. */
  async stop() {
    this.#isRunning = false;
    await this.#done;
    this.#agent.destroy();
  }

  async #client() {
    while (this.#isRunning) {
      if (this.#chance(0.06)) await this.#hostile();
      else await this.#ask(this.#body(), this.#leavesAfterMs());
      if (this.#chance(0.3)) await delay(this.#random() * 30);
    }
  }

  #body() {
    const model = this.#pick(models);
    const content = 'x'.repeat(Math.floor(this.#random() ** 3 * 8000));
    return JSON.stringify({
      ...(model === undefined ? {} : { model }),
      stream: this.#chance(0.5),
      max_tokens: 1 + Math.floor(this.#random() * 100),
      messages: [{ role: 'user', content }],
    });
  }

  /** Undefined for a patient client; the others leave at once, while they wait, or in the middle of the answer. */
  #leavesAfterMs() {
    return this.#chance(0.25) ? this.#random() ** 2 * 400 : undefined;
  }

  /** `cutAt`: the client sends no more of its body than that. */
  #ask(body, leavesAfterMs, { headers = {}, cutAt } = {}) {
    this.asked++;
    const sender = this.#pick(senders);
    const isKept = this.#chance(0.5);
    const session = this.#chance(0.5) ? { 'session-id': `s${Math.floor(this.#random() * 40)}` } : {};
    return new Promise((resolve) => {
      const req = request({
        host: this.#url.hostname,
        port: this.#url.port,
        path: '/v1/chat/completions',
        method: 'POST',
        agent: isKept ? this.#agent : false,
        headers: {
          authorization: `Bearer ${sender.key}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...session,
          ...headers,
        },
      });
      let hasLeft = false;
      let status;
      const timers = [];
      const end = (how, what) => {
        if (timers.length === 0) return;
        for (const timer of timers.splice(0)) clearTimeout(timer);
        if (how === undefined) this.violations.push(what);
        else this[how]++;
        req.destroy();
        resolve();
      };
      const leave = () => {
        hasLeft = true;
        end('aborted');
      };
      timers.push(
        setTimeout(
          () => end(undefined, `no end after ${lostAfterMs} ms, status ${status}: ${sender.key}`),
          lostAfterMs,
        ),
      );
      if (leavesAfterMs !== undefined) timers.push(setTimeout(leave, leavesAfterMs));
      req.on('response', (res) => {
        status = res.statusCode;
        this.statuses[status] = (this.statuses[status] ?? 0) + 1;
        res.on('error', () => {});
        res.resume();
        res.on('close', () => end(res.complete ? 'answered' : 'brokenOff'));
      });
      req.on('error', (error) => {
        if (hasLeft) return;
        // A kept connection may be closed by the gateway in the moment in which it is used again.
        if (status === undefined && req.reusedSocket && error.code === 'ECONNRESET') end('brokenOff');
        else if (status === undefined) end(undefined, `no answer: ${error.code} ${error.message}`);
        else end('brokenOff');
      });
      if (cutAt === undefined) req.end(body);
      else req.write(body.slice(0, cutAt));
    });
  }

  #hostile() {
    const large = JSON.stringify({ messages: 'x'.repeat(limits.maxRequestBytes * 2) });
    const json = this.#body();
    switch (Math.floor(this.#random() * 9)) {
      case 0:
        return this.#ask('{"model": "m", "model": "n"}');
      case 1:
        return this.#ask('['.repeat(5000));
      case 2:
        return this.#ask(large);
      case 3:
        return this.#ask(gzipSync(large), undefined, { headers: { 'content-encoding': 'gzip' } });
      case 4:
        return this.#ask('no gzip', undefined, { headers: { 'content-encoding': 'gzip' } });
      case 5:
        return this.#ask(json, undefined, { headers: { authorization: 'Bearer nobody' } });
      case 6:
        // It never sends the rest.
        return this.#ask(json, undefined, { cutAt: 10 });
      case 7:
        return this.#ask(json, this.#random() * 100, { cutAt: 10 });
      default:
        return this.#rubbish();
    }
  }

  /** Bytes that are no request. The connection must end. */
  #rubbish() {
    this.asked++;
    const text = this.#pick([
      'GET / HTTP/9.9\r\n\r\n',
      'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      `GET /healthz HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`,
      '\u0000\u0001\u0002\r\n\r\n',
    ]);
    return new Promise((resolve) => {
      const socket = connect(Number(this.#url.port), this.#url.hostname, () => socket.write(text));
      const timer = setTimeout(() => {
        this.violations.push(`a connection stays open after ${JSON.stringify(text.slice(0, 40))}`);
        socket.destroy();
      }, lostAfterMs);
      socket.on('error', () => {});
      socket.resume();
      socket.on('close', () => {
        clearTimeout(timer);
        this.answered++;
        resolve();
      });
    });
  }

  #chance(share) {
    return this.#random() < share;
  }

  #pick(choices) {
    return choices[Math.floor(this.#random() * choices.length)];
  }
}
