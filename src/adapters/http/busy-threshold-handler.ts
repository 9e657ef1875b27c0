/** `/busy_threshold`, by which Dynamo's front end reads and moves the busy thresholds of models, for any framework. */
import { describeValue } from '../../base/faults/flow-config-error.js';
import { type HeaderSource, headerValue } from '../../base/headers/header-source.js';
import * as s from '../../base/schema/schema.js';
import { parseJson } from '../../base/stream/content-pieces.js';
import type { BusyThresholdDetector, BusyThresholds } from '../../types/index.js';
import type { HttpErrorResponse } from './to-http-response.js';

/** What the handler reads of a request, whatever framework it comes from. */
export interface HandlerRequest {
  readonly method: string;
  readonly headers: HeaderSource;
  /** The whole body as text; absent or empty for GET. */
  readonly body?: string | undefined;
}

export type HandlerResponse = HttpErrorResponse;

/** One detector, or all that serve the model: an update goes to each, and the first one answers. */
type Detectors = BusyThresholdDetector | readonly BusyThresholdDetector[];

export interface BusyThresholdHandlerOptions {
  /** Model name → detectors. Read at every request, so that models may come and go. */
  models: ReadonlyMap<string, Detectors> | Readonly<Record<string, Detectors>>;
  /** Whether this request may read and move thresholds: who may change them can switch off overload protection. */
  authorize: (request: HandlerRequest) => boolean | Promise<boolean>;
  /** Longest body, in characters. @default 65536 */
  maxBodyLength?: number | undefined;
}

const optionsSchema = s.object({
  models: s.value(
    'a Map or an object of detectors by model name',
    (given): given is BusyThresholdHandlerOptions['models'] => {
      return typeof given === 'object' && given !== null;
    },
  ),
  authorize: s.callable<BusyThresholdHandlerOptions['authorize']>(
    'a function that tells whether a request may move thresholds',
  ),
  maxBodyLength: s.optional(s.positiveInteger(), 65_536),
});

export type BusyThresholdHandler = (request: HandlerRequest) => Promise<HandlerResponse>;

/** Field on the wire → threshold; what its number must be beyond being one, and the status if it is not. */
const fields = {
  active_decode_blocks_threshold: {
    threshold: 'activeDecodeBlocksThreshold',
    isRight: (value: number) => value >= 0 && value <= 1,
    must: 'between 0.0 and 1.0',
    status: 400,
  },
  active_prefill_tokens_threshold: {
    threshold: 'activePrefillTokensThreshold',
    isRight: (value: number) => Number.isSafeInteger(value) && value >= 0,
    must: 'an integer from 0 up',
    status: 422,
  },
  active_prefill_tokens_threshold_frac: {
    threshold: 'activePrefillTokensThresholdFrac',
    isRight: (value: number) => value >= 0 && value < Infinity,
    must: 'finite and at least 0.0',
    status: 400,
  },
} as const;

type Field = keyof typeof fields;
const fieldNames = Object.keys(fields) as readonly Field[];

/** Ends the handling of a request with this answer. */
class Rejection {
  readonly answer: HandlerResponse;

  constructor(status: number, error: string, headers: Readonly<Record<string, string>> = {}) {
    this.answer = answer(status, { error }, headers);
  }
}

/**
 * Answers `GET` with the thresholds of all models, and `POST { model, …thresholds }` by moving those given; a POST
 * without any reads those of its model. Null or missing leaves a threshold as it is. Errors come as `{ "error": … }`:
 * 400 bad JSON or a number out of range, 403 not authorized, 404 an update of an unknown model, 405, 413, 415, 422 a
 * missing or mistyped field. Differs from Dynamo: it must be told who is authorized; a moved threshold counts at once.
 * @throws FlowConfigError
 * @example
 * const handle = busyThresholdHandler({ models: { llama: detector }, authorize: ({ headers }) => mayMove(headers) });
 * const { status, headers, body } = await handle({ method, headers: request.headers, body: await request.text() });
 */
export function busyThresholdHandler(options: BusyThresholdHandlerOptions): BusyThresholdHandler {
  const { models, authorize, maxBodyLength } = s.parse(optionsSchema, options, 'busyThresholdHandler');
  const entries = (): Iterable<[string, Detectors]> =>
    models instanceof Map ? models.entries() : Object.entries(models);

  function readAll(): object {
    const known = [...entries()].flatMap(([model, detectors]) => {
      const [first] = listOf(detectors);
      return first === undefined ? [] : [wireForm(model, first.thresholds)];
    });
    return { thresholds: known };
  }
  function readOrUpdate(request: HandlerRequest): object {
    const { model, thresholds } = readBody(request, maxBodyLength);
    const detectors = [...entries()].flatMap(([name, each]) => (name === model ? listOf(each) : []));
    if (Object.keys(thresholds).length === 0) return wireForm(model, detectors[0]?.thresholds ?? {});
    const named = JSON.stringify(model);
    if (detectors.length === 0)
      throw new Rejection(404, `model ${named} is not known: thresholds can only be set for discovered models`);
    for (const detector of detectors) detector.update(thresholds);
    return wireForm(model, detectors[0]?.thresholds ?? {});
  }

  return async function handleBusyThreshold(request) {
    try {
      if ((await authorize(request)) !== true) throw new Rejection(403, 'not authorized');
      if (request.method === 'GET') return answer(200, readAll());
      if (request.method === 'POST') return answer(200, readOrUpdate(request));
      throw new Rejection(405, `method ${request.method} is not allowed`, { allow: 'GET, POST' });
    } catch (rejection) {
      if (!(rejection instanceof Rejection)) throw rejection;
      return rejection.answer;
    }
  };
}

function readBody({ headers, body = '' }: HandlerRequest, maxLength: number) {
  const mediaType = headerValue(headers, ['content-type'])?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (mediaType !== 'application/json' && !mediaType.endsWith('+json'))
    throw new Rejection(415, 'expected content-type application/json');
  if (body.length > maxLength) throw new Rejection(413, `the body is longer than ${maxLength} characters`);
  const parsed = parseJson(body);
  if (parsed === undefined) throw new Rejection(400, 'the body is not valid JSON');
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new Rejection(422, 'expected a JSON object');
  const record: Readonly<Record<string, unknown>> = { ...parsed };
  const { model } = record;
  if (typeof model !== 'string')
    throw new Rejection(422, model === undefined ? 'missing field model' : 'model must be a string');
  const given = fieldNames.filter((name) => record[name] !== undefined && record[name] !== null);
  return {
    model,
    thresholds: Object.fromEntries(given.map((name) => [fields[name].threshold, readThreshold(name, record[name])])),
  };
}

function readThreshold(name: Field, value: unknown): number {
  const { isRight, must, status } = fields[name];
  if (typeof value !== 'number') throw new Rejection(422, `${name} must be a number, got ${describeValue(value)}`);
  if (!isRight(value)) throw new Rejection(status, `${name} must be ${must}, got ${value}`);
  return value;
}

function wireForm(model: string, thresholds: Readonly<BusyThresholds>): object {
  return { model, ...Object.fromEntries(fieldNames.map((name) => [name, thresholds[fields[name].threshold] ?? null])) };
}

/** A response in JSON. */
export function answer(status: number, body: object, headers: Readonly<Record<string, string>> = {}): HandlerResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(body),
  };
}

function listOf(detectors: Detectors): readonly BusyThresholdDetector[] {
  return 'update' in detectors ? [detectors] : detectors;
}
