/** Up to which saturation each band may dispatch. Invariant: ceilings never rise as priority falls, whatever. */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard } from '../../base/faults/plugin-guard.js';
import type { BandRegistry } from '../../tiers/band-registry.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { UsageLimitPolicy } from './usage-limit-policy.js';

export class Ceilings {
  /** True when the policy hears of dispatches. */
  readonly hearsDispatches: boolean;
  /** True when the policy may open a band though the saturation stays where it is. */
  readonly reopens: boolean;
  /** True when the ceilings depend on the priorities alone. */
  readonly isConstant: boolean;
  /** The set of bands that they were computed for; -1: they hold for one judgement. */
  version = -1;
  private readonly policy: UsageLimitPolicy;
  private readonly guard: PluginGuard;
  private readonly bands: BandRegistry;

  constructor(bands: BandRegistry, errors: PluginErrorSink, policy: UsageLimitPolicy) {
    this.bands = bands;
    this.policy = policy;
    this.guard = new PluginGuard('usageLimit', policy, errors);
    this.isConstant = this.guard.read(policy, 'constant') === true;
    this.reopens = this.guard.read(policy, 'reopens') === true;
    this.hearsDispatches = this.guard.has(policy, 'dispatched');
  }

  dispatched(priority: number): void {
    this.guard.tell(this.policy, 'dispatched', priority);
  }

  /** Sets the ceilings of the configured bands, of those with requests waiting, and of the one that is judged. */
  rank(judged: PriorityBand, saturation: number): void {
    this.version = isRanked(judged) ? this.bands.version : -1;
    const bands = this.bands.all().filter((band) => isRanked(band) || band === judged);
    const ceilings = new Array<number>(bands.length).fill(1);
    const priorities = bands.map((band) => band.priority);
    try {
      const answer: unknown = this.policy.computeLimits(saturation, priorities, ceilings);
      if (answer !== undefined) this.guard.ignored(answer);
    } catch (error) {
      this.guard.failed(error);
      ceilings.fill(1);
    }
    let previous = Infinity;
    for (let i = 0; i < bands.length; i++) {
      previous = Math.min(previous, this.checked(ceilings[i]));
      (bands[i] as PriorityBand).ceiling = previous;
    }
  }

  private checked(ceiling: unknown): number {
    if (typeof ceiling === 'number' && !Number.isNaN(ceiling)) return ceiling;
    this.guard.violated('a ceiling must be a number', ceiling);
    return 1;
  }
}

/** True when the band has a ceiling while it is not judged. */
function isRanked(band: PriorityBand): boolean {
  return band.isConfigured || band.waiting > 0;
}
