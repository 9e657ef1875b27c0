/** The detectors that the parameters of a composite name. */
import { Problems } from '../../../base/problems.js';
import { below } from '../../../base/schema/path.js';
import type { DetectorReferences, SaturationDetector } from '../../saturation-detector.js';

/** Without problems when a detector could not be made: its declaration has them. */
export class NamedDetectors extends Problems {
  private readonly references: DetectorReferences;

  constructor(references: DetectorReferences) {
    super();
    this.references = references;
  }

  /** The detector of a name; undefined when there is none, which is a problem at `path`. */
  find(name: string, path: string): SaturationDetector | undefined {
    const pathOf = (inner: string): string => below(path, inner);
    return this.during(() => this.references.resolve('saturationDetector', name), pathOf);
  }
}
