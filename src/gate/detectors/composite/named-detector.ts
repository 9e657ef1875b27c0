/** The detectors that the parameters of a composite name. */
import { type ConfigIssue, FlowConfigError } from '../../../base/faults/flow-config-error.js';
import { below } from '../../../base/schema/path.js';
import type { DetectorReferences, SaturationDetector } from '../../saturation-detector.js';

export class NamedDetectors {
  private readonly issues: ConfigIssue[] = [];
  private readonly references: DetectorReferences;

  constructor(references: DetectorReferences) {
    this.references = references;
  }

  /** The detector of a name; undefined when there is none, which becomes an issue at `path`. */
  find(name: string, path: string): SaturationDetector | undefined {
    try {
      return this.references.resolve('saturationDetector', name);
    } catch (error) {
      if (!(error instanceof FlowConfigError)) throw error;
      this.issues.push(...error.issues.map((issue) => ({ ...issue, path: below(path, issue.path) })));
      return undefined;
    }
  }

  /** For a composite that lacks a detector. No issues when it could not be made: its declaration has them. */
  toError(type: string): FlowConfigError {
    return new FlowConfigError(type, this.issues);
  }
}
