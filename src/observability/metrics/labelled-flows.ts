/** Waiting requests of a band by fairness ID, as a bounded label tells them apart. */
import { type BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import type { ControllerFigures } from '../../index.js';

export type BandFigures = ControllerFigures['bands'][number];
export type WaitingFigures = NonNullable<ReturnType<BandFigures['waitingOf']>>;

/** A figure of a flow. */
export interface LabelledValue {
  readonly priority: number;
  /** Empty where fairness IDs are not told. */
  readonly label: string;
  readonly value: number;
}

/** Each label of which something waits; the rest is `other`. Without labels the whole band, under ''. O(labels). */
export function eachLabelledFlow(
  band: BandFigures,
  labels: BoundedLabel | undefined,
  tell: (label: string, figures: WaitingFigures) => void,
): void {
  if (labels === undefined) return void tell('', band);
  if (band.waiting === 0) return;
  if (!labels.isFull) admitWaiting(band, labels);
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

/** How far each fairness ID that waits, and has a label, is ahead of those that go next, where a band keeps account. */
export function counterLags(bands: readonly BandFigures[], labels: BoundedLabel | undefined): LabelledValue[] {
  const lags: LabelledValue[] = [];
  if (labels === undefined) return lags;
  for (const band of bands) {
    if (!band.keepsAccount) continue;
    eachLabelledFlow(band, labels, (label) => {
      const value = band.leadOf(label);
      if (value !== undefined) lags.push({ priority: band.priority, label, value });
    });
  }
  return lags;
}

/** Ends when the labels are used up: it looks at no more flows than labels, and the few that never get one. */
function admitWaiting(band: BandFigures, labels: BoundedLabel): void {
  for (const fairnessId of band.waitingIds()) {
    labels.of(fairnessId);
    if (labels.isFull) return;
  }
}
