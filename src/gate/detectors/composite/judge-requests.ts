/**
 * Combines the answers of the detectors inside a composite about single requests. A request may go to an endpoint if
 * every detector that judges this endpoint has room for it.
 */
import type { EndpointView } from '../../../endpoints/endpoint.js';
import { sumOfQuotas, sumOfSessions } from '../../reported-figures.js';
import type { RequestWait, SaturationDetector } from '../../saturation-detector.js';

type Judgement = Pick<SaturationDetector, 'withRoomFor' | 'waitOf' | 'sessionOf' | 'quotas' | 'sessions'>;

/** Whether a detector judges an endpoint. */
type Scope = (detector: SaturationDetector, endpoint: EndpointView) => boolean;

/**
 * Nothing where none of `detectors` judges single requests. A detector that fails has no say in where a request may go.
 */
export function judgeRequests(detectors: readonly SaturationDetector[], isJudgeOf: Scope = () => true): Judgement {
  const judges = detectors.filter(({ withRoomFor }) => withRoomFor !== undefined);
  const sessions = detectors.filter(({ sessionOf }) => sessionOf !== undefined);
  const tellers = detectors.filter(({ quotas }) => quotas !== undefined);
  const limits = detectors.filter(({ sessions }) => sessions !== undefined);
  return {
    ...(judges.length > 0 && {
      withRoomFor: (endpoints, item, nowMs) =>
        judges.reduce((left, judge) => {
          const judged = left.filter((endpoint) => isJudgeOf(judge, endpoint));
          if (judged.length === 0) return left;
          const roomy = new Set(judge.withRoomFor?.(judged, item, nowMs) ?? judged);
          return left.filter((endpoint) => roomy.has(endpoint) || !isJudgeOf(judge, endpoint));
        }, endpoints),
      waitOf(endpoints, item, nowMs) {
        const none = { atMs: nowMs, notBeforeMs: nowMs, missing: '' };
        const waitAt = (part: readonly EndpointView[]): RequestWait | undefined => {
          const waits = judges.flatMap((judge) => {
            const judged = part.filter((endpoint) => isJudgeOf(judge, endpoint));
            // A detector that has room for the request does not delay it.
            const isFull = judged.length > 0 && judge.withRoomFor?.(judged, item, nowMs).length === 0;
            return isFull ? (judge.waitOf?.(judged, item, nowMs) ?? none) : [];
          });
          return waits.length === 0 ? undefined : longest(waits);
        };
        // Where each has room somewhere, and nowhere all of them, the first endpoint that all have room at is awaited.
        return waitAt(endpoints) ?? soonest(endpoints.map((endpoint) => waitAt([endpoint]) ?? none));
      },
    }),
    ...(sessions.length > 0 && {
      sessionOf(item) {
        const [first, ...others] = sessions.map((detector) => detector.sessionOf?.(item));
        return others.length === 0 ? first : JSON.stringify([first, ...others]);
      },
    }),
    ...(tellers.length > 0 && {
      quotas: (nowMs) => sumOfQuotas(tellers.flatMap((teller) => teller.quotas?.(nowMs) ?? [])),
    }),
    ...(limits.length > 0 && {
      sessions: (held, nowMs) => sumOfSessions(limits.flatMap((limit) => limit.sessions?.(held, nowMs) ?? [])),
    }),
  };
}

/** There is room when one of the endpoints has some. */
function soonest(waits: readonly RequestWait[]): RequestWait {
  const first = waits.reduce((a, b) => (b.atMs < a.atMs ? b : a));
  return { ...first, notBeforeMs: Math.min(...waits.map(({ notBeforeMs }) => notBeforeMs)) };
}

/** There is room when the last of the detectors has some. */
function longest(waits: readonly RequestWait[]): RequestWait {
  const last = waits.reduce((a, b) => (b.atMs > a.atMs ? b : a));
  return { ...last, notBeforeMs: Math.max(...waits.map(({ notBeforeMs }) => notBeforeMs)) };
}
