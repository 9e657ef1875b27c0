/** Tells the listeners of a controller which bands and flows were made and removed. */
import type { PluginKind } from '../../base/faults/plugin-errors.js';
import type { BandRegistryListener } from '../../tiers/band-registry.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { EventHub } from '../event-hub.js';

export class BandEvents implements BandRegistryListener {
  private readonly events: EventHub;

  constructor(events: EventHub) {
    this.events = events;
  }

  bandAdded({ priority }: PriorityBand): void {
    if (this.events.heard.bandAdded) this.events.emit('bandAdded', { priority });
  }

  bandRemoved({ priority }: PriorityBand): void {
    if (this.events.heard.bandRemoved) this.events.emit('bandRemoved', { priority });
  }

  flowRemoved({ fairnessId, priority }: Flow): void {
    if (this.events.heard.flowRemoved) this.events.emit('flowRemoved', { fairnessId, priority });
  }

  pluginFailed(kind: PluginKind, type: string, error: unknown): void {
    this.events.pluginFailed(kind, type, error);
  }
}
