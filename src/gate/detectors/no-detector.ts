/** The reading of a controller whose constraints alone hold requests back. */
import type { SaturationDetector } from '../saturation-detector.js';

export const noDetector: SaturationDetector = {
  type: 'none',
  saturation: ({ endpoints }) => (endpoints.length === 0 ? 1 : 0),
  subscribe: () => () => {},
};
