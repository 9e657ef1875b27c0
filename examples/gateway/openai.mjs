// @ts-check
// The OpenAI wire format, as far as a model server needs it: what a request asks for, and how answers and errors are
// written.

/** @import { ServerResponse } from 'node:http' */

/**
 * @typedef {object} Generation
 * @property {boolean} isChat
 * @property {string} model
 * @property {number} promptTokens
 * @property {number} maxTokens
 * @property {boolean} isStream
 * @property {boolean} includeUsage A last chunk tells the token counts.
 * @property {boolean} ignoreEos vLLM's extension: generate maxTokens, however long the answer would be.
 */

const defaultMaxTokens = 64;

/** A refusal that the client can act on. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string | null} [param] */
  constructor(status, message, param = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

/** Answers with the body that OpenAI clients parse. @param {ServerResponse} res @param {ApiError} error */
export function sendError(res, { status, message, param }) {
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  sendJson(res, status, { error: { message, type, param, code: null } });
}

/** @param {ServerResponse} res @param {number} status @param {unknown} body */
export function sendJson(res, status, body) {
  const text = JSON.stringify(body);
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}

/**
 * @param {boolean} isChat
 * @param {string} text
 * @returns {Generation}
 * @throws {ApiError} 400 for a body that is not a request
 */
export function parseGeneration(isChat, text) {
  /** @type {Record<string, any>} */
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ApiError(400, 'expected a JSON body');
  }
  const prompt = isChat ? body?.messages : body?.prompt;
  const param = isChat ? 'messages' : 'prompt';
  if (typeof prompt !== 'string' && !Array.isArray(prompt))
    throw new ApiError(400, `expected "${param}"; got ${typeof prompt}`, param);
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? defaultMaxTokens;
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1) {
    throw new ApiError(400, `expected an integer from 1 up; got ${JSON.stringify(maxTokens)}`, 'max_tokens');
  }
  return {
    isChat,
    model: String(body.model),
    promptTokens: countTokens(prompt),
    maxTokens,
    isStream: body.stream === true,
    includeUsage: body.stream_options?.include_usage === true,
    ignoreEos: body.ignore_eos === true,
  };
}

/**
 * Four characters are a token, a number is one (prompts may come as token IDs), and there is always at least one.
 * @param {any} prompt
 * @returns {number}
 */
export function countTokens(prompt) {
  if (typeof prompt === 'number') return 1;
  if (Array.isArray(prompt)) return prompt.reduce((sum, part) => sum + countTokens(part), 0) || 1;
  const text = typeof prompt === 'string' ? prompt : (prompt?.content ?? prompt?.text ?? '');
  return typeof text === 'string' ? Math.max(1, Math.ceil(text.length / 4)) : countTokens(text);
}

/**
 * Writes one answer, streamed or whole. The texts around a token are the same for every chunk, so they are made once.
 */
export class Answer {
  /** @param {Generation} generation @param {string} id @param {ServerResponse} res */
  constructor(generation, id, res) {
    this.generation = generation;
    this.res = res;
    this.text = '';
    const { isChat, isStream, model } = generation;
    const object = isChat ? `chat.completion${isStream ? '.chunk' : ''}` : 'text_completion';
    this.head = { id: `${isChat ? 'chatcmpl' : 'cmpl'}-${id}`, object, created: Math.floor(Date.now() / 1_000), model };
    this.chunkStart = `data: ${JSON.stringify(this.head).slice(0, -1)},"choices":[{"index":0,"${isChat ? 'delta":{"content":' : 'text":'}`;
    this.chunkEnd = isChat ? '},"finish_reason":' : ',"finish_reason":';
    if (!isStream) return;
    res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
    res.flushHeaders();
    if (isChat)
      this.#event({
        ...this.head,
        choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
      });
  }

  /**
   * @param {string} token @param {number} count Tokens so far, with this one. @param {'stop' | 'length' | null}
   * finishReason
   */
  add(token, count, finishReason) {
    const { generation, res } = this;
    const usage = finishReason && {
      prompt_tokens: generation.promptTokens,
      completion_tokens: count,
      total_tokens: generation.promptTokens + count,
    };
    if (generation.isStream) {
      // A client that reads slowly is buffered for: what it asked for is bounded by its own maxTokens.
      res.write(`${this.chunkStart}${JSON.stringify(token)}${this.chunkEnd}${JSON.stringify(finishReason)}}]}\n\n`);
      if (!usage) return;
      if (generation.includeUsage) this.#event({ ...this.head, choices: [], usage });
      res.end('data: [DONE]\n\n');
      return;
    }
    this.text += token;
    if (!usage) return;
    const message = generation.isChat ? { message: { role: 'assistant', content: this.text } } : { text: this.text };
    sendJson(res, 200, {
      ...this.head,
      choices: [{ index: 0, ...message, logprobs: null, finish_reason: finishReason }],
      usage,
    });
  }

  /** @param {object} data */
  #event(data) {
    this.res.write(`data: ${JSON.stringify(data)}\n\n`);
  }
}
