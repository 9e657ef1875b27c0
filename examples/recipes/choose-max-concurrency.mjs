// @ts-check
// How many seats has a vLLM server? Read from its own metrics. Without a URL it reads a server of this file's own, as
// CI does.
//
//     node examples/recipes/choose-max-concurrency.mjs http://gpu-0:8000/metrics --max-num-seqs 256
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  options: { 'max-num-seqs': { type: 'string', default: '256' } },
  allowPositionals: true,
});
const maxNumSeqs = Number(values['max-num-seqs']);

/** The sum of a metric over its series. @param {string} text @param {string} name */
function totalOf(text, name) {
  const samples = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'gm'))];
  if (samples.length === 0) throw new Error(`expected the metric ${name}, which vLLM has once it has served a request`);
  return samples.reduce((sum, [, value]) => sum + Number(value), 0);
}

/** A label of vLLM's cache_config_info, which tells the cache as labels. @param {string} text @param {string} label */
function cacheConfig(text, label) {
  const [, value] = new RegExp(`^vllm:cache_config_info\\{[^}]*\\b${label}="(\\d+)"`, 'm').exec(text) ?? [];
  if (value === undefined) throw new Error(`expected vllm:cache_config_info with the label ${label}`);
  return Number(value);
}

/** Mean of a histogram. @param {string} text @param {string} name */
const mean = (text, name) => totalOf(text, `${name}_sum`) / totalOf(text, `${name}_count`);

/** @param {string} text What GET /metrics answers. */
function seatsOf(text) {
  const cacheTokens = cacheConfig(text, 'num_gpu_blocks') * cacheConfig(text, 'block_size');
  const requestTokens = mean(text, 'vllm:request_prompt_tokens') + mean(text, 'vllm:request_generation_tokens');
  const byCache = cacheTokens / requestTokens;
  return { cacheTokens, requestTokens, byCache, seats: Math.max(1, Math.floor(Math.min(maxNumSeqs, byCache) * 0.85)) };
}

const server = createServer((_, response) => {
  response.end(
    [
      'vllm:cache_config_info{block_size="16",num_gpu_blocks="3750",model_name="llama"} 1.0',
      'vllm:request_prompt_tokens_sum{model_name="llama"} 2.2e+06',
      'vllm:request_prompt_tokens_count{model_name="llama"} 1000',
      'vllm:request_generation_tokens_sum{model_name="llama"} 300000',
      'vllm:request_generation_tokens_count{model_name="llama"} 1000',
      'vllm:num_preemptions_total{model_name="llama"} 12',
    ].join('\n'),
  );
});
const [url] = positionals;
if (url === undefined) await new Promise((resolve) => server.listen(0, () => resolve(undefined)));
const address = server.address();
const own = address !== null && typeof address === 'object' ? `http://localhost:${address.port}/metrics` : '';
const text = await (await fetch(url ?? own)).text();
server.close();

const { cacheTokens, requestTokens, byCache, seats } = seatsOf(text);
console.log(
  `The KV cache holds ${cacheTokens} tokens, a request needs ${requestTokens.toFixed(0)}: ${byCache.toFixed(1)} fit.`,
);
console.log(`The batch holds ${maxNumSeqs}. ${byCache < maxNumSeqs ? 'The cache' : 'The batch'} decides:`);
console.log(`  concurrencyDetector({ maxConcurrency: ${seats} })`);
if (totalOf(text, 'vllm:num_preemptions_total') > 0) {
  console.log('It has preempted requests since it started: it was given more than its cache holds.');
}
if (url === undefined)
  assert.deepEqual({ seats, cacheTokens, requestTokens }, { seats: 20, cacheTokens: 60_000, requestTokens: 2_500 });
