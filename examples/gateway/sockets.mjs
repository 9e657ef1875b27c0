// @ts-check
// Responses over WebSocket and Realtime, as far as a model server needs them: a response for each `response.create`, one
// at a time in a lane (Responses) or in the conversation (Realtime), and one that begins by itself when it hears speech.

import { WebSocketServer } from 'ws';
import { countTokens } from './openai.mjs';

/** @import { Server } from 'node:http' */
/** @import { WebSocket } from 'ws' */
/** @import { Engine, Sequence } from './engine.mjs' */

/**
 * @typedef {object} Model
 * @property {string} name
 * @property {Engine} engine
 * @property {() => void} wake
 * @property {readonly string[]} tokens Of its one answer.
 */

/** A socket of one of the two dialects. */
class Session {
  /** @param {WebSocket} socket @param {boolean} isRealtime @param {Model} model */
  constructor(socket, isRealtime, model) {
    this.socket = socket;
    this.isRealtime = isRealtime;
    this.model = model;
    this.serial = 0;
    this.hearsSpeech = false;
    /** By lane, `''` in Realtime: who runs is first. @type {Map<string, Record<string, any>[]>} */
    this.lanes = new Map();
    /** @type {Map<string, Sequence>} */
    this.running = new Map();
  }

  /** @param {Record<string, unknown>} event @param {string} [lane] */
  send(event, lane = '') {
    this.serial += 1;
    const own = this.isRealtime ? { event_id: `event_${this.serial}` } : { sequence_number: this.serial };
    this.socket.send(JSON.stringify({ ...event, ...own, ...(lane === '' ? {} : { stream_id: lane }) }));
  }

  /** @param {string} code @param {string} message @param {Record<string, any>} event */
  refuse(code, message, event) {
    const error = { type: 'invalid_request_error', code, message, param: null, event_id: event.event_id ?? null };
    this.send({ type: 'error', ...(this.isRealtime ? {} : { status: 400 }), error }, event.stream_id);
  }

  /** @param {Record<string, any>} event */
  hear(event) {
    if (event.type === 'response.create') this.enter(event);
    else if (event.type === 'response.cancel') this.cancel(event);
    else if (event.type === 'session.update') {
      this.hearsSpeech = event.session?.audio?.input?.turn_detection?.type === 'server_vad';
      this.send({ type: 'session.updated', session: event.session });
    } else if (event.type === 'conversation.item.create') {
      this.send({ type: 'conversation.item.added', item: event.item });
    } else if (event.type === 'input_audio_buffer.append') {
      if (this.hearsSpeech && !this.running.size) this.enter({ response: {} });
    } else this.refuse('unknown_event', `There is no event ${event.type}.`, event);
  }

  /** @param {Record<string, any>} event */
  enter(event) {
    const lane = event.stream_id ?? '';
    const queue = this.lanes.get(lane) ?? [];
    if (this.isRealtime && event.response?.conversation === 'none') return this.begin(event, lane);
    if (this.isRealtime && queue.length > 0) {
      this.refuse('conversation_already_has_active_response', 'A response is in progress.', event);
      return;
    }
    this.lanes.set(lane, queue);
    if (queue.push(event) === 1) this.begin(event, lane);
  }

  /** @param {Record<string, any>} event @param {string} lane */
  begin(event, lane) {
    const asked = this.isRealtime ? (event.response ?? {}) : event;
    const { name, engine, wake, tokens } = this.model;
    if (asked.model !== undefined && asked.model !== name) {
      this.refuse('model_not_found', `The model "${asked.model}" does not exist.`, event);
      this.next(event, lane);
      return;
    }
    const promptTokens = countTokens(asked.input ?? 'speech');
    const maxTokens = Math.min(asked.max_output_tokens ?? tokens.length, tokens.length);
    this.serial += 1;
    const id = `resp_${process.pid}_${this.serial}`;
    const object = this.isRealtime ? 'realtime.response' : 'response';
    const response = { id, object, output: [] };
    this.send({ type: 'response.created', response: { ...response, status: 'in_progress' } }, lane);
    const sequence = engine.submit(promptTokens, maxTokens, ({ generated, state }) => {
      const part = { response_id: id, item_id: 'item', output_index: 0, content_index: 0 };
      this.send({ type: 'response.output_text.delta', ...part, delta: tokens[generated - 1] }, lane);
      if (state !== 'finished') return;
      const usage = { input_tokens: promptTokens, output_tokens: generated, total_tokens: promptTokens + generated };
      this.running.delete(id);
      const type = this.isRealtime ? 'response.done' : 'response.completed';
      this.send({ type, response: { ...response, status: 'completed', usage } }, lane);
      this.next(event, lane);
    });
    this.running.set(id, sequence);
    event.id = id;
    wake();
  }

  /** What follows `event` in its lane. @param {Record<string, any>} event @param {string} lane */
  next(event, lane) {
    const queue = this.lanes.get(lane) ?? [];
    if (queue[0] !== event) return;
    queue.shift();
    if (queue[0] !== undefined) this.begin(queue[0], lane);
  }

  /** @param {Record<string, any>} event */
  cancel(event) {
    const lane = event.stream_id ?? '';
    const asked = [...this.lanes.values()].flat().find(({ id }) => id === event.response_id);
    const first = event.response_id === undefined ? this.lanes.get(lane)?.[0] : asked;
    const id = first?.id ?? event.response_id;
    const sequence = this.running.get(id);
    if (sequence === undefined) {
      this.refuse('response_cancel_not_active', 'No response is in progress.', event);
      return;
    }
    this.model.engine.abort(sequence);
    this.running.delete(id);
    const details = this.isRealtime
      ? { status_details: { type: 'cancelled', reason: 'client_cancelled' } }
      : { incomplete_details: { reason: 'cancelled' } };
    const type = this.isRealtime ? 'response.done' : 'response.incomplete';
    this.send({ type, response: { id, status: 'cancelled', output: [], ...details } }, first?.stream_id);
    if (first !== undefined) this.next(first, first.stream_id ?? '');
  }
}

/** Answers the upgrades of `/v1/responses` and `/v1/realtime`. @param {Server} server @param {Model} model */
export function serveSockets(server, model) {
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (req, raw, head) => {
    const path = (req.url ?? '').split('?', 1)[0];
    if (path !== '/v1/responses' && path !== '/v1/realtime') return void raw.destroy();
    sockets.handleUpgrade(req, raw, head, (socket) => {
      const session = new Session(socket, path === '/v1/realtime', model);
      if (session.isRealtime) session.send({ type: 'session.created', session: { type: 'realtime' } });
      socket.on('message', (data) => session.hear(JSON.parse(String(data))));
      socket.on('error', () => socket.terminate());
      socket.on('close', () => {
        for (const sequence of session.running.values()) model.engine.abort(sequence);
      });
    });
  });
}
