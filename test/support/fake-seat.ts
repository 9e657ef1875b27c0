/** A seat for tests of detectors that run without a controller. */
import type { ItemView } from '../../src/index.js';
import type { SeatView } from '../../src/types/index.js';
import { fakeItem } from './fake-item.js';

export function fakeSeat(item: Partial<ItemView> = {}, seat: Partial<SeatView> = {}): SeatView {
  const usage = { promptTokens: 0, completionTokens: 0 };
  return { item: fakeItem(item), usage, isReported: false, isUnsent: false, ...seat };
}
