/** A live page of one controller: a page, its stream of frames, and the same as JSON, all under one path. */
import { headerText } from '../../base/headers/header-source.js';
import * as s from '../../base/schema/schema.js';
import { explainWait, type FlowController, overviewOf } from '../../index.js';
import { broadcast } from './broadcast.js';
import { type FrameWait, frameText, toFrame } from './frame.js';
import { History } from './history.js';
import { aliases, shortenName } from './names.js';
import { answerNode, type NodeLikeRequest, type NodeLikeResponse } from './node-answer.js';
import { type InspectorOptions, type InspectorRequest, type InspectorView, inspectorOptions } from './options.js';
import { builtPage } from './page/built-page.js';
import { sharedTable } from './shared-limits.js';

/** Mount one of the two. Neither reads a body, and neither changes anything. */
export interface Inspector {
  /** For Hono and every fetch runtime: `app.get('/inspector', (c) => page.fetch(c.req.raw))`. */
  fetch(request: Request): Promise<Response>;
  /** For node:http, Express, Koa (`ctx.respond = false`), Fastify (`reply.hijack()`). `next`: faults of `authorize`. */
  node(req: NodeLikeRequest, res: NodeLikeResponse, next?: (error?: unknown) => void): Promise<void>;
  /** What this process alone shows, as JSON: a frame, or why the request of that ID waits. */
  alone(view: InspectorView, id: string): string;
  /** Pages that watch now. */
  readonly watchers: number;
  /** Ends all streams, so that a server can close, and the history. Later pages are served without the past. */
  close(): void;
}

/** Headers of every answer: browsers must not cache it, frame it, guess its type, or send its address to others. */
const guards: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};

/**
 * Shows a controller as it works: bands and their flows, the gate, endpoints, outcomes, the longest waits and why. The
 * path that it is mounted at answers with the page, with `?view=events` its stream, with `?view=json` one frame. While
 * nobody watches, a reading is taken every five seconds, so that the page shows what led to this moment.
 * @throws FlowConfigError that lists every problem
 * @example
 * const page = inspector(flow, { authorize: ({ headers }) => isOperator(headers) });
 * app.use('/inspector', page.node);
 */
export function inspector(flow: FlowController<never>, options: InspectorOptions = {}): Inspector {
  const resolved = s.parse(inspectorOptions, options, 'inspector');
  const { authorize, hosts, intervalMs, maxWatchers, clock, together } = resolved;
  let history: History | undefined = resolved.history ? new History(flow, clock) : undefined;
  const nameOf = resolved.fairnessIds === 'hidden' ? aliases() : shortenName;
  let frame: { readonly json: string; readonly madeAtMs: number } | undefined;

  /** However many ask, a controller is looked at no more than twice in an interval. */
  function currentFrame(): string {
    const nowMs = clock.now();
    if (frame === undefined || nowMs - frame.madeAtMs >= intervalMs / 2) {
      const overview = overviewOf(flow, resolved.bounds);
      const made = toFrame(overview, history, nameOf, intervalMs, nowMs, sharedTable(resolved.shared));
      frame = { json: frameText(made), madeAtMs: nowMs };
    }
    return frame.json;
  }
  const alone = (view: InspectorView, id: string): string =>
    view === 'frame' ? currentFrame() : JSON.stringify(found(flow, resolved.idOf, id));
  const ofAll = async (view: InspectorView, id: string): Promise<string> =>
    together === undefined ? alone(view, id) : JSON.stringify(await together(view, id));
  const stream = broadcast(clock, intervalMs, () => ofAll('frame', ''));

  async function answer(request: InspectorRequest): Promise<Response> {
    if (authorize === undefined)
      return rejection(403, 'The inspector is off: give it `authorize`, a function that tells who may look.');
    if (!hosts(hostOf(request))) return rejection(421, 'This page is not known by the name in `Host`.');
    const verdict = await authorize(request);
    if (verdict instanceof Response) return verdict;
    if (verdict !== true) return rejection(403, 'not authorized');
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return rejection(405, 'read-only', { allow: 'GET, HEAD' });
    const { searchParams } = new URL(request.url, 'http://localhost');
    const response = await view(searchParams.get('view'), request.method === 'HEAD', searchParams.get('id'));
    return request.method === 'HEAD' ? new Response(null, response) : response;
  }

  async function view(name: string | null, isHead: boolean, id: string | null): Promise<Response> {
    switch (name) {
      case null:
        return page();
      case 'json':
        return respond(200, 'application/json', await ofAll('frame', ''));
      case 'find':
        if (id === null || id === '') return rejection(400, 'expected id=…, the name of a request');
        return respond(200, 'application/json', await ofAll('find', id));
      case 'events':
        if (isHead) return respond(200, 'text/event-stream', null);
        if (stream.watchers >= maxWatchers)
          return rejection(503, `${maxWatchers} pages watch already`, { 'retry-after': '10' });
        return respond(200, 'text/event-stream', stream.watch(), { 'x-accel-buffering': 'no' });
      default:
        return rejection(404, 'views are: none for the page, events, json, find');
    }
  }

  return {
    fetch: ({ method, url, headers }) => answer({ method, url, headers }),
    node: (req, res, next) => answerNode(answer, req, res, next),
    alone,
    get watchers() {
      return stream.watchers;
    },
    close() {
      stream.close();
      history?.stop();
      history = undefined;
    },
  };
}

/** The answer of `view=find`. */
export type FoundWait =
  | { readonly isWaiting: false }
  | ({ readonly isWaiting: true; readonly why: string } & Pick<FrameWait, 'priority' | 'waitedMs' | 'decidedBy'>);

/** Why the request of that ID waits. O(waiting). */
function found(flow: FlowController<never>, idOf: (request: never) => string | undefined, id: string): FoundWait {
  const wait =
    explainWait(flow, (request) => idOf(request) === id) ??
    (/^\d{1,15}$/.test(id) ? explainWait(flow, Number(id)) : undefined);
  if (wait === undefined) return { isWaiting: false };
  const { priority, waitedMs, decidedBy, text: why } = wait;
  return { isWaiting: true, priority, waitedMs: Math.round(waitedMs), decidedBy, why };
}

/** Without the port; empty when there is none. */
function hostOf({ headers, url }: InspectorRequest): string {
  const authority: unknown = Reflect.get(headers, ':authority');
  const named =
    headerText(headers, 'host') ??
    (typeof authority === 'string' ? authority : URL.canParse(url) ? new URL(url).host : '');
  return named.replace(/:\d+$/, '').toLowerCase();
}

/** Nothing but what has the nonce runs or styles; nothing is loaded but the page's own stream. */
const pagePolicy = [
  "default-src 'none'; script-src 'nonce-%nonce%'; style-src 'nonce-%nonce%'; connect-src 'self'; img-src data:",
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

/** One document with its style and its script inside, for a nonce that is made for every answer. */
function page(): Response {
  const nonce = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(18))));
  const policy = { 'content-security-policy': pagePolicy.replaceAll('%nonce%', nonce) };
  return respond(200, 'text/html; charset=utf-8', builtPage.replaceAll('%nonce%', nonce), policy);
}

function rejection(status: number, error: string, headers: Readonly<Record<string, string>> = {}): Response {
  return respond(status, 'application/json', JSON.stringify({ error }), headers);
}

function respond(
  status: number,
  contentType: string,
  body: string | ReadableStream<Uint8Array> | null,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(body, { status, headers: { 'content-type': contentType, ...guards, ...headers } });
}
