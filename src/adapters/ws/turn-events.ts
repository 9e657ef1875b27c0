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

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const endings: ReadonlySet<string> = new Set(['completed', 'done', 'failed', 'incomplete', 'cancelled']);

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

export const isEnd = ({ type }: TurnEvent): boolean => endings.has(type.slice('response.'.length));
export const isCancel = ({ type }: TurnEvent): boolean => /^response\.(?:cancel|interrupt)$/.test(type);

/** An error of the adapter itself. */
export function fault(status: number, code: string, message: string): object {
  return { type: 'server_error', param: null, message, code, status };
}

type Told = Pick<TurnEvent, 'responseId'> & { readonly id: string; readonly req: Pick<TurnEvent, 'lane' | 'eventId'> };
type ToldStatus = 'queued' | 'failed' | 'cancelled';

/**
 * What the client reads of its turn in place of the server's events; `more` is its place or error. Before its response
 * has begun it has the name `id`, and fails by `error`. Source: ResponseQueuedEvent; Realtime's clients pass over it.
 */
export function turnText(dialect: SocketDialect, turn: Told, status: ToldStatus, more?: object): string {
  const { id, responseId, req } = turn;
  const isRealtime = dialect === 'realtime';
  const written = (event: object): string => {
    const own = isRealtime ? { event_id: `event_${crypto.randomUUID()}` } : { sequence_number: 0 };
    return JSON.stringify({ ...own, ...(req.lane !== '' && { stream_id: req.lane }), ...event });
  };
  const isError = status === 'failed' && responseId === undefined;
  if (isError) return written({ ...(!isRealtime && more), error: { ...more, event_id: req.eventId }, type: 'error' });
  const object = isRealtime ? 'realtime.response' : 'response';
  const response = { id: responseId ?? id, object, status, output: [] };
  if (status === 'queued') return written({ type: 'response.queued', response, ...more });
  const reason = more === undefined ? { reason: isRealtime ? 'client_cancelled' : status } : { error: more };
  if (isRealtime) {
    const status_details = { type: status, ...reason };
    return written({ type: 'response.done', response: { ...response, status_details } });
  }
  const type = more === undefined ? 'response.incomplete' : 'response.failed';
  return written({
    type,
    response: { ...response, ...(more === undefined ? { incomplete_details: reason } : reason) },
  });
}
