/** What a client reads while it waits, and in place of an answer that comes late: in the words of three interfaces. */
import { type HeaderSource, headerText } from '../../base/headers/header-source.js';
import { fieldsOf, parseJson } from '../../base/stream/content-pieces.js';
import type { WaitExplanation } from '../../types/index.js';

/** Signs of life for clients whose requests wait. */
export interface WaitingOptions<Subject> {
  /** Silence before the answer of a stream begins, with 200; ms above 0. @default 15_000 */
  readonly after?: number | undefined;
  /** From sign to sign; ms above 0. @default 10_000 */
  readonly every?: number | undefined;
  /** Who asks for a stream. @default by `Accept`, or by `stream` of a parsed body */
  readonly isStream?: ((subject: Subject) => boolean) | undefined;
  /** Its place for signs to tell, as `explainWait` finds it: your load shows. @default untold */
  readonly place?: ((subject: Subject) => WaitExplanation | undefined) | undefined;
  /** Others get `102 Processing`; some clients fail at it. @default false */
  readonly informational?: boolean | undefined;
  /** `whitespace`: other answers begin with spaces, and 200 whatever comes. @default silence */
  readonly json?: 'whitespace' | undefined;
  /** Told of answers that began, of signs, and of failures after. */
  readonly onSign?: ((what: 'begun' | 'sign' | 'failed') => void) | undefined;
}

/** The signs for one request. */
export interface LifeSigns {
  readonly kind: 'events' | 'whitespace' | 'processing';
  readonly afterMs: number;
  readonly everyMs: number;
  sign(): string;
  /** Where the request stands, if that is told. */
  place(): Place | undefined;
  /** What to write for the body of an answer that cannot go on as it comes; undefined if it can. Tells of failures. */
  instead(status: number, headerOf: (name: string) => unknown): ((body: string) => string) | undefined;
  tell(what: 'begun' | 'sign' | 'failed'): void;
}

type Place = { readonly position: number; readonly estimated_wait_ms: number | undefined };
type Fields = Readonly<Record<string, unknown>>;
type Dialect = 'openai' | 'responses' | 'anthropic';

/** Undefined where the request gets none. `begun` is called once its answer has begun. */
export function lifeSigns<Subject>(
  subject: Subject,
  options: WaitingOptions<Subject>,
  { headers, req, asked = req }: { readonly headers: HeaderSource; readonly req?: unknown; readonly asked?: unknown },
  begun: () => void,
): LifeSigns | undefined {
  const { url = '', body }: { url?: string; body?: unknown } = Object(asked);
  const { after = 15_000, every = 10_000, isStream, place, informational, json, onSign } = options;
  const isAsked =
    isStream?.(subject) ??
    (headerText(headers, 'accept')?.includes('text/event-stream') || fieldsOf(body)?.stream === true);
  const other = json ?? (informational === true ? 'processing' : undefined);
  const kind = isAsked ? 'events' : other;
  if (kind === undefined) return undefined;
  const dialect = dialectOf(url);
  const written = (status: number, retryAfterMs: unknown, text: string): string =>
    kind === 'events'
      ? eventsOf(dialect, status, Number(retryAfterMs) || undefined, text)
      : JSON.stringify({ error: { message: text, type: 'server_error', param: null, code: String(status) } });
  return {
    kind,
    afterMs: after,
    everyMs: every,
    place: () => placeOf(place?.(subject)),
    sign: () => (kind === 'events' ? signOf(dialect, placeOf(place?.(subject))) : ' '),
    instead(status, headerOf) {
      const isPlain = (headerOf('content-encoding') ?? 'identity') === 'identity';
      if (!isPlain || status >= 400) onSign?.('failed');
      if (!isPlain) return () => written(502, undefined, 'The answer is compressed.');
      const isEvents = status < 300 && String(headerOf('content-type')).startsWith('text/event-stream');
      return isEvents || kind !== 'events' ? undefined : written.bind(undefined, status, headerOf('retry-after-ms'));
    },
    tell(what) {
      if (what === 'begun') begun();
      onSign?.(what);
    },
  };
}

function dialectOf(url: string): Dialect {
  const [path = ''] = url.split('?', 1);
  if (path.endsWith('/messages')) return 'anthropic';
  return path.endsWith('/responses') ? 'responses' : 'openai';
}

/** Comments, which every reader of events leaves out; Anthropic's clients know an event for it. */
function signOf(dialect: Dialect, place: Place | undefined): string {
  const ping = dialect === 'anthropic' ? 'event: ping\ndata: {"type": "ping"}\n\n' : '';
  if (place === undefined) return ping || ': waiting\n\n';
  const { position, estimated_wait_ms: ms } = place;
  return `: waiting position=${position}${ms === undefined ? '' : ` eta=${Math.ceil(ms / 1000)}s`}\n\n${ping}`;
}

function placeOf(wait: WaitExplanation | undefined): Place | undefined {
  if (wait === undefined) return undefined;
  const { ahead = 0, aheadInOtherFlows, inHigherBands, estimatedWaitMs } = wait;
  return { position: ahead + aheadInOtherFlows + inHigherBands + 1, estimated_wait_ms: estimatedWaitMs };
}

/** The error object of an answer, with what its head would have told. */
export function errorOf(status: number, wait: number | undefined, text: string, body: Fields | undefined): Fields {
  const message = body?.detail ?? (text || `status ${status}`);
  const given = fieldsOf(body?.error) ?? { message, code: String(status) };
  return { type: 'server_error', param: null, ...given, status, retry_after_ms: wait };
}

function eventsOf(dialect: Dialect, status: number, retryAfterMs: number | undefined, text: string): string {
  // Who asked for a stream and is answered in whole gets it as one event.
  if (status < 400) return `${text.replace(/^/gm, 'data: ')}\n\n`;
  const body = fieldsOf(parseJson(text));
  const error = errorOf(status, retryAfterMs, text, body);
  if (dialect === 'openai') return eventOf({ ...body, error });
  if (dialect === 'responses') return eventOf({ sequence_number: 0, ...error, error, type: 'error' }, 'error');
  const isOverload = status === 429 || status === 503 || status === 529;
  const type = body?.type === 'error' ? error.type : isOverload ? 'overloaded_error' : 'api_error';
  return eventOf({ type: 'error', error: { ...error, type } }, 'error');
}

function eventOf(data: object, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}
