/** The demand on a controller, as JSON for autoscalers such as KEDA's metrics-api trigger, for any framework. */
import { type FlowDemand, schemas } from '../../index.js';
import type { HandlerRequest, HandlerResponse } from './busy-threshold-handler.js';

/** The part of a controller that is read. */
export interface DemandSource {
  demand(): FlowDemand;
}

export interface DemandHandlerOptions {
  /** Whether this request may read. The answer has figures only, no names. @default everybody may */
  authorize?: ((request: HandlerRequest) => boolean | Promise<boolean>) | undefined;
}

type Authorize = NonNullable<DemandHandlerOptions['authorize']>;

const optionsSchema = schemas.object({
  authorize: schemas.optional(schemas.callable<Authorize>('a function that tells whether a request may read')),
});

export type DemandHandler = (request: HandlerRequest) => Promise<HandlerResponse>;

type WireFigures<T> = Omit<T, 'timeToDrainMs' | 'bands'> & { readonly timeToDrainMs: number | null };

/** The answer: `flow.demand()`, bands by priority, and null where something is not known. */
export interface WireDemand extends Omit<WireFigures<FlowDemand>, 'endpoints'> {
  readonly endpoints: number | null;
  readonly bands: Readonly<Record<string, WireFigures<FlowDemand['bands'][number]>>>;
}

/**
 * Answers `GET` with the demand. 403 when `authorize` says no, 405 for other methods.
 * @throws FlowConfigError
 *
 * @example
 * const handle = demandHandler(flow);
 * const { status, headers, body } = await handle({ method: request.method, headers: request.headers });
 */
export function demandHandler(flow: DemandSource, options: DemandHandlerOptions = {}): DemandHandler {
  const { authorize } = schemas.parse(optionsSchema, options, 'demandHandler');
  return async function handleDemand(request) {
    if (authorize !== undefined && (await authorize(request)) !== true) return answer(403, { error: 'not authorized' });
    if (request.method === 'GET' || request.method === 'HEAD') return answer(200, wireForm(flow.demand()));
    return answer(405, { error: `method ${request.method} is not allowed` }, { allow: 'GET, HEAD' });
  };
}

function wireForm({ bands, endpoints, timeToDrainMs, ...demand }: FlowDemand): WireDemand {
  return {
    ...demand,
    timeToDrainMs: timeToDrainMs ?? null,
    endpoints: endpoints ?? null,
    bands: Object.fromEntries(
      bands.map((band) => [band.priority, { ...band, timeToDrainMs: band.timeToDrainMs ?? null }]),
    ),
  };
}

function answer(status: number, body: object, headers: Readonly<Record<string, string>> = {}): HandlerResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(body),
  };
}
