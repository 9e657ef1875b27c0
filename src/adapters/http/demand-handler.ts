/** The demand on a controller, as JSON for autoscalers such as KEDA's metrics-api trigger, for any framework. */
import * as s from '../../base/schema/schema.js';
import type { ControllerFigures, FlowController } from '../../index.js';
import { answer, type HandlerRequest, type HandlerResponse } from './busy-threshold-handler.js';

/** The part of a controller that is read. */
export type DemandSource = Pick<FlowController, 'figures'>;

export interface DemandHandlerOptions {
  /** Whether this request may read. The answer has figures only, no names. @default everybody may */
  authorize?: ((request: HandlerRequest) => boolean | Promise<boolean>) | undefined;
}

type Authorize = NonNullable<DemandHandlerOptions['authorize']>;

const optionsSchema = s.object({
  authorize: s.optional(s.callable<Authorize>('a function that tells whether a request may read')),
});

export type DemandHandler = (request: HandlerRequest) => Promise<HandlerResponse>;

/** Of the whole queue, or of one band. Rates are averages over the last seconds. */
export interface WireDemandFigures {
  readonly waiting: number;
  readonly waitingTokens: number;
  readonly waitingBytes: number;
  readonly arrivedPerSecond: number;
  readonly dispatchedPerSecond: number;
  /** Null when something waits and nothing was measured. */
  readonly timeToDrainMs: number | null;
}

/** The answer: what `flow.figures()` says of demand, and null where something is not known. */
export interface WireDemand extends WireDemandFigures {
  /** Waiting and in flight together: the number that a large enough pool would run. */
  readonly requests: number;
  readonly inFlight: number;
  readonly inFlightTokens: number;
  /** 1 is full, and an empty pool. */
  readonly saturation: number;
  /** Model servers in the pool; null for a controller without one. */
  readonly endpoints: number | null;
  /** Absent for a controller without a pool. */
  readonly availableEndpoints?: number | undefined;
  /** By priority. */
  readonly bands: Readonly<Record<string, WireDemandFigures & { readonly priority: number }>>;
}

/**
 * Answers `GET` with the demand. 403 when `authorize` says no, 405 for other methods. @throws FlowConfigError
 * @example
 * const handle = demandHandler(flow);
 * const { status, headers, body } = await handle({ method: request.method, headers: request.headers });
 */
export function demandHandler(flow: DemandSource, options: DemandHandlerOptions = {}): DemandHandler {
  const { authorize } = s.parse(optionsSchema, options, 'demandHandler');
  return async function handleDemand(request) {
    if (authorize !== undefined && (await authorize(request)) !== true) return answer(403, { error: 'not authorized' });
    if (request.method === 'GET' || request.method === 'HEAD') return answer(200, wireForm(flow.figures()));
    return answer(405, { error: `method ${request.method} is not allowed` }, { allow: 'GET, HEAD' });
  };
}

function wireForm({ stats, pool, bands, ...rates }: ControllerFigures): WireDemand {
  const { waiting, waitingBytes, inFlight, inFlightTokens, saturation } = stats;
  return {
    requests: waiting + inFlight,
    ...demandOf({ waiting, waitingBytes, ...rates }),
    inFlight,
    inFlightTokens,
    saturation,
    endpoints: pool?.endpoints ?? null,
    availableEndpoints: pool?.available,
    bands: Object.fromEntries(bands.map((band) => [band.priority, { priority: band.priority, ...demandOf(band) }])),
  };
}

function demandOf(figures: Pick<ControllerFigures['bands'][number], keyof WireDemandFigures>): WireDemandFigures {
  const { waiting, waitingTokens, waitingBytes, arrivedPerSecond, dispatchedPerSecond, timeToDrainMs = null } = figures;
  return { waiting, waitingTokens, waitingBytes, arrivedPerSecond, dispatchedPerSecond, timeToDrainMs };
}
