/**
 * A provider of hosted models, simulated: a real HTTP server that enforces its quotas, answers 429 with the headers of
 * OpenAI or of Anthropic, and counts violations.
 *
 *   node examples/hosted/provider.mjs --style openai --window fixed --window-ms 60000 --requests 60 --input 30000 --output 10000
 *
 * It prints its address. `GET /stats` tells what it has counted. An answer has `max_tokens` tokens, 16 without them.
 * With `--time held` its time stands still but for `POST /advance?ms=100`, so that a test sees windows and resets of a
 * minute whatever the machine does meanwhile.
 */
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** Time that moves only when told to. It begins on a day of its own. */
class HeldTime {
  constructor() {
    this.nowMs = 0;
    /** @type {{ atMs: number, callback: () => void }[]} */
    this.timers = [];
  }

  now() {
    return this.nowMs;
  }

  date() {
    return Date.UTC(2026, 0, 1) + this.nowMs;
  }

  /** @param {() => void} callback @param {number} ms */
  setTimeout(callback, ms) {
    this.timers.push({ atMs: this.nowMs + ms, callback });
  }

  /** @param {number} ms */
  advance(ms) {
    this.nowMs += ms;
    const due = this.timers.filter(({ atMs }) => atMs <= this.nowMs);
    this.timers = this.timers.filter(({ atMs }) => atMs > this.nowMs);
    for (const { callback } of due.sort((a, b) => a.atMs - b.atMs)) callback();
  }
}

const platformTime = {
  now: () => performance.now(),
  date: () => Date.now(),
  setTimeout: (/** @type {() => void} */ callback, /** @type {number} */ ms) => void setTimeout(callback, ms),
};

/** What was used in one window: fixed ones begin with the first request, sliding ones always end now. */
class Window {
  /** @param {string} kind @param {number} limit @param {number} windowMs */
  constructor(kind, limit, windowMs) {
    this.kind = kind;
    this.limit = limit;
    this.windowMs = windowMs;
    /** @type {{ amount: number, atMs: number }[]} */
    this.entries = [];
    this.endMs = 0;
    this.index = 0;
  }

  /** @param {number} nowMs */
  tend(nowMs) {
    if (this.kind === 'fixed') {
      if (nowMs < this.endMs) return;
      this.entries = [];
      this.endMs = nowMs + this.windowMs;
      this.index++;
      return;
    }
    while (this.entries[0] !== undefined && this.entries[0].atMs <= nowMs - this.windowMs) this.entries.shift();
  }

  /** @param {number} nowMs */
  used(nowMs) {
    this.tend(nowMs);
    return this.entries.reduce((sum, { amount }) => sum + amount, 0);
  }

  /** @param {number} amount @param {number} nowMs */
  add(amount, nowMs) {
    this.tend(nowMs);
    this.entries.push({ amount, atMs: nowMs });
  }

  /** Until all of it is free again, ms. @param {number} nowMs */
  resetMs(nowMs) {
    this.tend(nowMs);
    if (this.kind === 'fixed') return this.endMs - nowMs;
    const last = this.entries.at(-1);
    return last === undefined ? 0 : last.atMs + this.windowMs - nowMs;
  }
}

/** Spans as OpenAI writes them: `6m0s`, `59.512s`, `17ms`. @param {number} ms */
function span(ms) {
  if (ms < 1000) return `${Math.ceil(ms)}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Number(((ms - minutes * 60_000) / 1000).toFixed(3));
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}

/** @typedef {'requests' | 'input' | 'output'} Quota */

/**
 * @param {{ time?: HeldTime | typeof platformTime | undefined } & { [Name in 'style' | 'window']?: string | undefined }
 * & { [Name in Quota | 'windowMs' | 'latencyMs']?: number | undefined }} options
 */
export function createProvider({
  style = 'openai',
  window = 'fixed',
  windowMs = 60_000,
  requests = 60,
  input = 30_000,
  output = 10_000,
  latencyMs = 20,
  time = platformTime,
} = {}) {
  const instant = (/** @type {number} */ ms) => `${new Date(time.date() + ms).toISOString().slice(0, 19)}Z`;
  const windows = {
    requests: new Window(window, requests, windowMs),
    input: new Window(window, input, windowMs),
    output: new Window(window, output, windowMs),
  };
  /** @type {{ received: number, answered: number, accepted: number, violations: number, violationsByWindow: Record<number, number>, input: number, output: number, order: string[] }} */
  const stats = {
    received: 0,
    answered: 0,
    accepted: 0,
    violations: 0,
    violationsByWindow: {},
    input: 0,
    output: 0,
    order: [],
  };

  /** @param {number} nowMs */
  function headers(nowMs) {
    const left = (/** @type {Quota} */ name) => Math.max(windows[name].limit - windows[name].used(nowMs), 0);
    if (style === 'anthropic') {
      const names = /** @type {const} */ ({ requests: 'requests', 'input-tokens': 'input', 'output-tokens': 'output' });
      return Object.fromEntries(
        Object.entries(names).flatMap(([header, name]) => [
          [`anthropic-ratelimit-${header}-limit`, windows[name].limit],
          [`anthropic-ratelimit-${header}-remaining`, left(name)],
          [`anthropic-ratelimit-${header}-reset`, instant(windows[name].resetMs(nowMs))],
        ]),
      );
    }
    return {
      'x-ratelimit-limit-requests': requests,
      'x-ratelimit-remaining-requests': left('requests'),
      'x-ratelimit-reset-requests': span(windows.requests.resetMs(nowMs)),
      'x-ratelimit-limit-tokens': input + output,
      'x-ratelimit-remaining-tokens': left('input') + left('output'),
      'x-ratelimit-reset-tokens': span(windows.input.resetMs(nowMs)),
    };
  }

  /** @param {import('node:http').ServerResponse} res @param {number} nowMs */
  function refuse(res, nowMs) {
    stats.violations++;
    const index = windows.requests.kind === 'fixed' ? windows.requests.index : Math.floor(nowMs / windowMs);
    stats.violationsByWindow[index] = (stats.violationsByWindow[index] ?? 0) + 1;
    const waitMs = Math.max(...Object.values(windows).map((each) => each.resetMs(nowMs)));
    const error =
      style === 'anthropic'
        ? { type: 'error', error: { type: 'rate_limit_error', message: 'This request would exceed your rate limit.' } }
        : {
            error: {
              type: 'requests',
              code: 'rate_limit_exceeded',
              message: `Rate limit reached. Please try again in ${span(waitMs)}.`,
            },
          };
    const wait = {
      'retry-after': Math.ceil(waitMs / 1000),
      ...(style === 'openai' && { 'retry-after-ms': Math.ceil(waitMs) }),
    };
    stats.answered++;
    res.writeHead(429, {
      'content-type': 'application/json',
      date: new Date(time.date()).toUTCString(),
      ...headers(nowMs),
      ...wait,
    });
    res.end(JSON.stringify(error));
  }

  const server = createServer(async (req, res) => {
    if (req.url === '/stats') {
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify(stats));
      return;
    }
    if ('advance' in time && req.url?.startsWith('/advance?')) {
      time.advance(Number(new URL(req.url, 'http://provider').searchParams.get('ms')));
      res.end();
      return;
    }
    let text = '';
    for await (const chunk of req.setEncoding('utf8')) text += chunk;
    const body = JSON.parse(text);
    const inputTokens = Math.ceil(text.length / 4);
    const outputTokens = body.max_tokens ?? 16;
    const nowMs = time.now();
    stats.received++;
    /** @type {[Window, number][]} */
    const wanted = [
      [windows.requests, 1],
      [windows.input, inputTokens],
      [windows.output, outputTokens],
    ];
    if (wanted.some(([each, amount]) => each.used(nowMs) + amount > each.limit)) {
      refuse(res, nowMs);
      return;
    }
    for (const [each, amount] of wanted) each.add(amount, nowMs);
    stats.accepted++;
    stats.input += inputTokens;
    stats.output += outputTokens;
    stats.order.push(body.user ?? '');
    const told = headers(nowMs);
    time.setTimeout(() => {
      stats.answered++;
      res.writeHead(200, { 'content-type': 'application/json', date: new Date(time.date()).toUTCString(), ...told });
      res.end(
        JSON.stringify(
          style === 'anthropic'
            ? anthropicAnswer(inputTokens, outputTokens)
            : openAiAnswer(body, inputTokens, outputTokens),
        ),
      );
    }, latencyMs);
  });
  // Longer than a gateway keeps its connections, or it would now and then write into one that is being closed.
  server.keepAliveTimeout = 120_000;
  return { server, stats };
}

/** @param {{ model: string }} body @param {number} prompt_tokens @param {number} completion_tokens */
function openAiAnswer({ model }, prompt_tokens, completion_tokens) {
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
  return {
    id: 'c',
    object: 'chat.completion',
    model,
    choices: [{ index: 0, message: { role: 'assistant', content: 'ok' } }],
    usage,
  };
}

/** @param {number} input_tokens @param {number} output_tokens */
function anthropicAnswer(input_tokens, output_tokens) {
  return {
    id: 'm',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'ok' }],
    usage: { input_tokens, output_tokens },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = /** @type {const} */ ({ type: 'string' });
  const { values } = parseArgs({
    options: {
      style: option,
      window: option,
      'window-ms': option,
      requests: option,
      input: option,
      output: option,
      'latency-ms': option,
      time: option,
      port: option,
    },
  });
  const number = (/** @type {keyof typeof values} */ name) =>
    values[name] === undefined ? undefined : Number(values[name]);
  const { server } = createProvider({
    style: values.style,
    window: values.window,
    windowMs: number('window-ms'),
    requests: number('requests'),
    input: number('input'),
    output: number('output'),
    latencyMs: number('latency-ms'),
    time: values.time === 'held' ? new HeldTime() : undefined,
  });
  server.listen(number('port') ?? 0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    console.log(`http://127.0.0.1:${port}`);
  });
}
