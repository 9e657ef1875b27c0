// @ts-check
// A model server without a model: an answer takes `--token-ms` for each token that it may have, and comes in one piece.
// It counts what it served, as a bill does. A process of its own.

import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { announce, answerParent, obeyParent } from './processes.mjs';

const { values: args } = parseArgs({ options: { 'token-ms': { type: 'string', default: '5' } } });
const served = { requests: 0, promptTokens: 0, outputTokens: 0, longestPrompt: 0 };

const server = createServer(async (req, res) => {
  if (req.method !== 'POST') return void res.end();
  const { prompt = '', max_tokens: outputTokens = 16 } = JSON.parse(await text(req));
  const promptTokens = Math.ceil(prompt.length / 4);
  await delay(outputTokens * Number(args['token-ms']));
  served.requests += 1;
  served.promptTokens += promptTokens;
  served.outputTokens += outputTokens;
  served.longestPrompt = Math.max(served.longestPrompt, promptTokens);
  const usage = { prompt_tokens: promptTokens, completion_tokens: outputTokens };
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ object: 'text_completion', choices: [{ index: 0, text: 'Done.' }], usage }));
});
server.keepAliveTimeout = 120_000;
obeyParent();
answerParent('served', () => served);
server.listen(0, '127.0.0.1', () => announce(server));
