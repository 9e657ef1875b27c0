// @ts-check
// A model server: the OpenAI API over HTTP in front of the simulated engine, with vLLM's metrics. A process of its own.
// Like the real ones it accepts everything that comes and queues it; a client that hangs up frees its seat and its
// cache.

import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { Engine } from './engine.mjs';
import { driveEngine } from './engine-loop.mjs';
import { Answer, ApiError, parseGeneration, sendError, sendJson } from './openai.mjs';
import { announce, obeyParent } from './processes.mjs';

/** @import { IncomingMessage, ServerResponse } from 'node:http' */

const model = 'default-model';
const { values: args } = parseArgs({ options: { name: { type: 'string', default: 'server' } } });

const engine = new Engine();
const wake = driveEngine(engine, {
  nowMs: () => performance.now(),
  after: (delayMs, then) => setTimeout(then, delayMs),
});
const answerText =
  `Hello from ${args.name}. I am not a model, only the timing of one: ` +
  'every word you read took one step of a batch that I share with whoever else is asking.';
const answerTokens = answerText.match(/\s*\S+/g) ?? [''];
let serial = 0;

/** @param {IncomingMessage} req @param {ServerResponse} res */
async function generate(req, res) {
  const generation = parseGeneration(req.url === '/v1/chat/completions', await text(req));
  if (generation.model !== model) throw new ApiError(404, `The model "${generation.model}" does not exist.`, 'model');
  const maxTokens = generation.ignoreEos ? generation.maxTokens : Math.min(generation.maxTokens, answerTokens.length);
  const totalTokens = generation.promptTokens + maxTokens;
  if (!engine.fits(totalTokens)) throw new ApiError(400, `The context is too long: ${totalTokens} tokens.`, 'prompt');
  if (res.closed) return;

  serial += 1;
  const answer = new Answer(generation, `${args.name}-${serial}`, res);
  const lastReason = maxTokens < generation.maxTokens ? 'stop' : 'length';
  const sequence = engine.submit(generation.promptTokens, maxTokens, ({ generated, state }) => {
    const token = /** @type {string} */ (answerTokens[(generated - 1) % answerTokens.length]);
    answer.add(token, generated, state === 'finished' ? lastReason : null);
  });
  res.once('close', () => engine.abort(sequence));
  wake();
}

/** vLLM's names, so that what scrapes a vLLM can scrape this. The series named demo: are our own. */
function metrics() {
  const { running, waiting, usedBlocks, totals, options } = engine;
  const usage = usedBlocks / options.kvBlocks;
  /** @type {[name: string, type: 'gauge' | 'counter', value: number][]} */
  const series = [
    ['vllm:num_requests_running', 'gauge', running.length],
    ['vllm:num_requests_waiting', 'gauge', waiting.length],
    ['vllm:kv_cache_usage_perc', 'gauge', usage],
    ['vllm:gpu_cache_usage_perc', 'gauge', usage],
    ['vllm:num_preemptions_total', 'counter', totals.preemptions],
    ['vllm:prompt_tokens_total', 'counter', totals.promptTokens],
    ['vllm:generation_tokens_total', 'counter', totals.generatedTokens],
    ['demo:recomputed_tokens_total', 'counter', totals.recomputedTokens],
    ['demo:aborted_requests_total', 'counter', totals.aborted],
  ];
  const cacheInfo = `vllm:cache_config_info{block_size="${options.blockTokens}",num_gpu_blocks="${options.kvBlocks}"} 1\n`;
  const lines = series.map(
    ([name, type, value]) => `# TYPE ${name} ${type}\n${name}{model_name="${model}"} ${value}\n`,
  );
  return `${lines.join('')}# TYPE vllm:cache_config_info gauge\n${cacheInfo}`;
}

/** @param {IncomingMessage} req @param {ServerResponse} res */
async function route(req, res) {
  switch (`${req.method} ${req.url}`) {
    case 'POST /v1/completions':
    case 'POST /v1/chat/completions':
      await generate(req, res);
      break;
    case 'GET /v1/models':
      sendJson(res, 200, {
        object: 'list',
        data: [{ id: model, object: 'model', created: 0, owned_by: 'headgate-demo' }],
      });
      break;
    case 'GET /health':
      res.end();
      break;
    case 'GET /metrics':
      res.setHeader('content-type', 'text/plain; version=0.0.4').end(metrics());
      break;
    default:
      throw new ApiError(404, `There is nothing at ${req.method} ${req.url}.`);
  }
}

const server = createServer((req, res) => {
  route(req, res).catch((error) => {
    if (res.headersSent) res.destroy();
    else sendError(res, error instanceof ApiError ? error : new ApiError(500, 'The model server failed.'));
  });
});
// Longer than the gateway keeps its connections, or it would now and then write into one that is being closed.
server.keepAliveTimeout = 120_000;
// Without the package `ws` it has no sockets.
const sockets = await import('./sockets.mjs').catch(() => undefined);
sockets?.serveSockets(server, { name: model, engine, wake, tokens: answerTokens });
obeyParent();
server.listen(0, '127.0.0.1', () => announce(server));
