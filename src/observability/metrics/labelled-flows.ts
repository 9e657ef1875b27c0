/** A controller as observers need it, and its waiting requests by fairness ID, as a bounded label tells them apart. */

import { type BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import { requestField, textIn } from '../../base/request-field.js';
import type { ControllerFigures, FlowController, FlowRequest } from '../../index.js';

/** `enqueue` is not called: it tells the compiler the type of the requests. */
export type ObservedFlow<R extends FlowRequest = FlowRequest> = Pick<FlowController<R>, 'enqueue' | 'on' | 'figures'>;

/** Ends an observation of a controller. */
export interface Observation {
  /** Takes everything back that was registered. Repeating it does nothing. */
  stop(): void;
}

export type BandFigures = ControllerFigures['bands'][number];
export type WaitingFigures = NonNullable<ReturnType<BandFigures['waitingOf']>>;

/** Each label of which something waits; the rest is `other`. Without labels the whole band, under ''. O(labels). */
export function eachLabelledFlow(
  band: BandFigures,
  labels: BoundedLabel | undefined,
  tell: (label: string, figures: WaitingFigures) => void,
): void {
  if (labels === undefined) return void tell('', band);
  if (band.waiting === 0) return;
  // Ends when the labels are used up: it looks at no more flows than labels, and the few that never get one.
  for (const fairnessId of labels.isFull ? [] : band.waitingIds()) {
    labels.of(fairnessId);
    if (labels.isFull) break;
  }
  let { waiting, waitingBytes } = band;
  for (const label of labels.kept()) {
    const figures = band.waitingOf(label);
    if (figures === undefined) continue;
    tell(label, figures);
    waiting -= figures.waiting;
    waitingBytes -= figures.waitingBytes;
    if (waiting === 0) return;
  }
  tell(otherLabel, { waiting, waitingBytes });
}

/** Where a host does not say how it names models. */
export const modelIn = (request: unknown): string | undefined => textIn(requestField(request, 'model'));
