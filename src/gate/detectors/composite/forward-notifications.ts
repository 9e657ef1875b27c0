/**
 * Forwards each call about seats and answers from a composite to the detectors inside. If one of them fails, the others
 * still get the call.
 */
import type { EndpointView } from '../../../endpoints/endpoint.js';
import type { SaturationDetector } from '../../saturation-detector.js';

type News = Pick<SaturationDetector, 'dispatched' | 'answered' | 'reported' | 'released' | 'sessionEnded'>;

const hooks = [
  'dispatched',
  'answered',
  'reported',
  'released',
  'sessionEnded',
] as const satisfies readonly (keyof News)[];

/**
 * The hooks that some of `detectors` have. They reach all of them, or those that `judgesOf` names for an endpoint; the
 * first failure is thrown.
 */
export function forwardNotifications(
  detectors: readonly SaturationDetector[],
  judgesOf: (endpoint: EndpointView) => readonly SaturationDetector[] = () => detectors,
): News {
  const heard = hooks.filter((hook) => detectors.some((detector) => detector[hook] !== undefined));
  return Object.fromEntries(
    heard.map((hook) => [
      hook,
      (...news: Parameters<Required<News>['answered']>): void => {
        tellAll(judgesOf(news[0]), (detector) => detector[hook]?.(...news));
      },
    ]),
  );
}

function tellAll(detectors: readonly SaturationDetector[], tell: (detector: SaturationDetector) => void): void {
  const errors: unknown[] = [];
  for (const detector of detectors) {
    try {
      tell(detector);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
