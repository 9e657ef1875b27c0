/**
 * A provider of hosted models, simulated: a real HTTP server that enforces its quotas, answers 429 with the headers of OpenAI or of
 * Anthropic, and counts violations.
 *
 *   node examples/hosted/provider.mjs --style openai --window fixed --window-ms 60000 --requests 60 --input 30000 --output 10000
 *
 * It prints its address. `GET /stats` tells what it has counted. An answer has `max_tokens` tokens, 16 without them.
 */
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** What was used in one window: fixed ones begin with the first request, sliding ones always end now. */
class Window {
  constructor(kind, limit, windowMs) {
    this.kind = kind;
    this.limit = limit;
    this.windowMs = windowMs;
    this.entries = [];
    this.endMs = 0;
    this.index = 0;
  }

  tend(nowMs) {
    if (this.kind === 'fixed') {
      if (nowMs < this.endMs) return;
      this.entries = [];
      this.endMs = nowMs + this.windowMs;
      this.index++;
      return;
    }
    while (this.entries.length > 0 && this.entries[0].atMs <= nowMs - this.windowMs) this.entries.shift();
  }

  used(nowMs) {
    this.tend(nowMs);
    return this.entries.reduce((sum, { amount }) => sum + amount, 0);
  }

  add(amount, nowMs) {
    this.tend(nowMs);
    this.entries.push({ amount, atMs: nowMs });
  }

  /** Until all of it is free again, ms. */
  resetMs(nowMs) {
    this.tend(nowMs);
    if (this.kind === 'fixed') return this.endMs - nowMs;
    const last = this.entries.at(-1);
    return last === undefined ? 0 : last.atMs + this.windowMs - nowMs;
  }
}

/** Spans as OpenAI writes them: `6m0s`, `59.512s`, `17ms`. */
function span(ms) {
  if (ms < 1000) return `${Math.ceil(ms)}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Number(((ms - minutes * 60_000) / 1000).toFixed(3));
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}

const instant = (ms) => `${new Date(Date.now() + ms).toISOString().slice(0, 19)}Z`;

/** @param {{ style?: string, window?: string, windowMs?: number, requests?: number, input?: number, output?: number, latencyMs?: number }} options */
export function createProvider({
  style = 'openai',
  window = 'fixed',
  windowMs = 60_000,
  requests = 60,
  input = 30_000,
  output = 10_000,
  latencyMs = 20,
} = {}) {
  const limits = { requests, input, output };
  const windows = Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, new Window(window, limit, windowMs)]));
  const stats = { accepted: 0, violations: 0, violationsByWindow: {}, input: 0, output: 0, order: [] };

  function headers(nowMs) {
    const left = (name) => Math.max(windows[name].limit - windows[name].used(nowMs), 0);
    if (style === 'anthropic') {
      const names = { requests: 'requests', 'input-tokens': 'input', 'output-tokens': 'output' };
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

  function refuse(res, nowMs) {
    stats.violations++;
    const index = windows.requests.kind === 'fixed' ? windows.requests.index : Math.floor(nowMs / windowMs);
    stats.violationsByWindow[index] = (stats.violationsByWindow[index] ?? 0) + 1;
    const waitMs = Math.max(...Object.values(windows).map((each) => each.resetMs(nowMs)));
    const error =
      style === 'anthropic'
        ? { type: 'error', error: { type: 'rate_limit_error', message: 'This request would exceed your rate limit.' } }
        : { error: { type: 'requests', code: 'rate_limit_exceeded', message: `Rate limit reached. Please try again in ${span(waitMs)}.` } };
    const wait = { 'retry-after': Math.ceil(waitMs / 1000), ...(style === 'openai' && { 'retry-after-ms': Math.ceil(waitMs) }) };
    res.writeHead(429, { 'content-type': 'application/json', ...headers(nowMs), ...wait });
    res.end(JSON.stringify(error));
  }

  const server = createServer(async (req, res) => {
    if (req.url === '/stats') {
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify(stats));
      return;
    }
    let text = '';
    for await (const chunk of req.setEncoding('utf8')) text += chunk;
    const body = JSON.parse(text);
    const inputTokens = Math.ceil(text.length / 4);
    const outputTokens = body.max_tokens ?? 16;
    const nowMs = performance.now();
    const wanted = { requests: 1, input: inputTokens, output: outputTokens };
    if (Object.entries(wanted).some(([name, amount]) => windows[name].used(nowMs) + amount > windows[name].limit)) {
      refuse(res, nowMs);
      return;
    }
    for (const [name, amount] of Object.entries(wanted)) windows[name].add(amount, nowMs);
    stats.accepted++;
    stats.input += inputTokens;
    stats.output += outputTokens;
    stats.order.push(body.user ?? '');
    const told = headers(nowMs);
    setTimeout(() => {
      res.writeHead(200, { 'content-type': 'application/json', ...told });
      res.end(
        JSON.stringify(style === 'anthropic' ? anthropicAnswer(inputTokens, outputTokens) : openAiAnswer(body, inputTokens, outputTokens)),
      );
    }, latencyMs);
  });
  return { server, stats };
}

function openAiAnswer({ model }, prompt_tokens, completion_tokens) {
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
  return { id: 'c', object: 'chat.completion', model, choices: [{ index: 0, message: { role: 'assistant', content: 'ok' } }], usage };
}

function anthropicAnswer(input_tokens, output_tokens) {
  return { id: 'm', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'ok' }], usage: { input_tokens, output_tokens } };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = { type: 'string' };
  const { values } = parseArgs({
    options: {
      style: option,
      window: option,
      'window-ms': option,
      requests: option,
      input: option,
      output: option,
      'latency-ms': option,
      port: option,
    },
  });
  const number = (name) => (values[name] === undefined ? undefined : Number(values[name]));
  const { server } = createProvider({
    style: values.style,
    window: values.window,
    windowMs: number('window-ms'),
    requests: number('requests'),
    input: number('input'),
    output: number('output'),
    latencyMs: number('latency-ms'),
  });
  server.listen(number('port') ?? 0, '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${server.address().port}`);
  });
}
