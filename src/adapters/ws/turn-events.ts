/**
 * What frames say of turns in two dialects: Responses over WebSocket, where `stream_id` names a lane, and Realtime.
 * Source: openai-node, `src/resources/responses/responses.ts` (ResponsesClientEvent, ResponsesServerEvent) and
 * `src/resources/realtime/realtime.ts` (ResponseCreateEvent, ResponseDoneEvent, RealtimeErrorEvent).
 */
import { fieldsOf, parseJson } from '../../base/stream/content-pieces.js';

export type SocketDialect = 'responses' | 'realtime';

/** An event of the client or the server that is about a response. */
export interface TurnEvent {
  readonly type: string;
  /** Responses of one lane come one after the other; empty where the client named none. */
  readonly lane: string;
  /** The name that the client gave to its event; in an error: to the one at fault. */
  readonly eventId: string | undefined;
  readonly responseId: string | undefined;
  /** All of it. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A turn, as the texts below name it. */
export interface NamedTurn {
  /** Of a turn that the server has not begun. */
  readonly id: string;
  readonly responseId: string | undefined;
  readonly event: Pick<TurnEvent, 'lane' | 'eventId'>;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const endings: ReadonlySet<string> = new Set(['completed', 'done', 'failed', 'incomplete', 'cancelled']);
const cancels: ReadonlySet<string> = new Set(['response.cancel', 'response.interrupt']);

/** Undefined for a frame that is about no response. Escapes hide no name: a turn without a seat would hide in them. */
export function turnEvent(text: string): TurnEvent | undefined {
  if (!/"response\.|"error"|\\u/.test(text)) return undefined;
  const fields = fieldsOf(parseJson(text));
  const type = textOf(fields?.type);
  if (fields === undefined || (type !== 'error' && type?.startsWith('response.') !== true)) return undefined;
  return {
    type,
    lane: textOf(fields.stream_id) ?? '',
    eventId: textOf(type === 'error' ? fieldsOf(fields.error)?.event_id : fields.event_id),
    responseId: textOf(fields.response_id) ?? textOf(fieldsOf(fields.response)?.id),
    fields,
  };
}

export function endsTurn({ type }: TurnEvent): boolean {
  return endings.has(type.slice('response.'.length));
}

export function cancelsTurn({ type }: TurnEvent): boolean {
  return cancels.has(type);
}

/** An error of the adapter itself. */
export function fault(status: number, code: string, message: string): object {
  return { type: 'server_error', param: null, message, code, status };
}

/** For a client whose turn waits. Source: ResponseQueuedEvent; clients of Realtime pass over what they do not know. */
export function queuedText(dialect: SocketDialect, turn: NamedTurn, place: object | undefined): string {
  return written(dialect, turn, { type: 'response.queued', response: responseOf(dialect, turn, 'queued'), ...place });
}

/** `error`, or for a response that has begun the event that ends it. */
export function failureText(dialect: SocketDialect, turn: NamedTurn, error: object): string {
  if (turn.responseId !== undefined) return endText(dialect, turn, 'failed', error);
  const { eventId: event_id } = turn.event;
  return written(dialect, turn, {
    ...(dialect === 'responses' && error),
    error: { ...error, event_id },
    type: 'error',
  });
}

/** The client cancelled a turn that the server had not begun. */
export function cancelledText(dialect: SocketDialect, turn: NamedTurn): string {
  return endText(dialect, turn, 'cancelled', undefined);
}

/** For the server, which then stops. */
export function cancelText({ responseId: response_id }: NamedTurn): string {
  return JSON.stringify({ type: 'response.cancel', response_id });
}

function endText(dialect: SocketDialect, turn: NamedTurn, status: 'failed' | 'cancelled', error?: object): string {
  const response = responseOf(dialect, turn, status);
  const isFailed = error !== undefined;
  if (dialect === 'realtime') {
    const status_details = { type: status, ...(isFailed ? { error } : { reason: 'client_cancelled' }) };
    return written(dialect, turn, { type: 'response.done', response: { ...response, status_details } });
  }
  const details = isFailed ? { error } : { incomplete_details: { reason: status } };
  const type = isFailed ? 'response.failed' : 'response.incomplete';
  return written(dialect, turn, { type, response: { ...response, ...details } });
}

function responseOf(dialect: SocketDialect, { responseId, id }: NamedTurn, status: string) {
  const object = dialect === 'realtime' ? 'realtime.response' : 'response';
  return { id: responseId ?? id, object, status, output: [] };
}

function written(dialect: SocketDialect, { event: { lane } }: NamedTurn, event: object): string {
  const own = dialect === 'realtime' ? { event_id: `event_${crypto.randomUUID()}` } : { sequence_number: 0 };
  return JSON.stringify({ ...own, ...(lane !== '' && { stream_id: lane }), ...event });
}
