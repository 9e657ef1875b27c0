/** Merges the subscriptions of several detectors into one. */
import type { SaturationDetector } from '../../saturation-detector.js';

/**
 * The `subscribe` of a detector that is made of others; nothing when one of them does not announce its changes, because
 * then the gate must look by a timer anyway. If one subscription fails, the earlier ones are taken back.
 */
export function mergeSubscriptions(
  children: readonly SaturationDetector[],
): Pick<SaturationDetector, 'subscribe' | 'fades'> {
  if (children.some((child) => child.subscribe === undefined)) return {};
  return {
    ...(children.some(({ fades }) => fades === true) && { fades: true }),
    subscribe(listener) {
      const stops: (() => void)[] = [];
      const stopAll = (): void => {
        for (const stop of stops.splice(0)) stop();
      };
      try {
        for (const child of children) stops.push(child.subscribe?.(listener) ?? (() => {}));
      } catch (error) {
        stopAll();
        throw error;
      }
      return stopAll;
    },
  };
}
