/** The groups of a request at an endpoint, while used. Invariant: no endpoint remembers one that is not in `groups`. */
import { BoundedLabel } from '../../base/bounded-label.js';
import { put } from '../../base/put.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { WindowFactory } from './quota-group.js';
import { QuotaGroup } from './quota-group.js';
import type { ResolvedGroup } from './quota-options.js';

/** Clients choose the names of models, so only this many have groups of their own; all others share one. */
const mostModels = 1000;

/** From this many groups on, unused ones are removed, because the IDs of endpoints may change for ever. */
const manyGroups = 10_000;

interface Remembered {
  readonly labels: EndpointView['labels'];
  readonly byModel: Map<string | undefined, readonly QuotaGroup[]>;
}

export class GroupTable {
  private readonly templates: readonly ResolvedGroup[];
  private readonly windowOf: WindowFactory;
  private readonly tellsModels: boolean;
  private readonly models = new BoundedLabel(mostModels);
  private readonly groups = new Map<string, QuotaGroup>();
  private remembered = new WeakMap<EndpointView, Remembered>();
  private sweepsAt = manyGroups;

  constructor(templates: readonly ResolvedGroup[], windowOf: WindowFactory) {
    this.templates = templates;
    this.windowOf = windowOf;
    this.tellsModels = templates.some(({ models, perModel }) => models !== undefined || perModel);
  }

  /** Every group so far. */
  all(): Iterable<QuotaGroup> {
    return this.groups.values();
  }

  /** The groups of a request for `model` at `endpoint`, in the order of the options; without a model, those of all. */
  of(endpoint: EndpointView, model: string | undefined, nowMs: number): readonly QuotaGroup[] {
    const known = this.tellsModels && model !== undefined ? this.models.of(model) : undefined;
    let remembered = this.remembered.get(endpoint);
    if (remembered === undefined || remembered.labels !== endpoint.labels) {
      remembered = { labels: endpoint.labels, byModel: new Map() };
      this.remembered.set(endpoint, remembered);
    }
    let groups = remembered.byModel.get(known);
    if (groups === undefined) {
      if (this.groups.size >= this.sweepsAt) {
        this.sweep(nowMs);
        return this.of(endpoint, model, nowMs);
      }
      groups = this.templates.flatMap((template, index) => this.find(template, index, endpoint, known));
      remembered.byModel.set(known, groups);
    }
    return groups;
  }

  /** O(groups), once in as many new groups at least. */
  private sweep(nowMs: number): void {
    for (const [key, group] of this.groups) {
      if (!group.isAsNew(nowMs)) continue;
      this.groups.delete(key);
      group.end();
    }
    this.remembered = new WeakMap();
    this.sweepsAt = Math.max(manyGroups, 2 * this.groups.size);
  }

  private find(template: ResolvedGroup, index: number, endpoint: EndpointView, asked: string | undefined) {
    if (asked === undefined && (template.perModel || template.models !== undefined)) return [];
    const model = asked ?? '';
    const member = memberOf(template, endpoint);
    if (member === undefined || (template.is !== undefined && template.is !== member)) return [];
    if (template.models?.some((family) => isOfFamily(model, family)) === false) return [];
    const key = JSON.stringify([index, member, template.perModel ? model : '']);
    const known = this.groups.get(key);
    const name = nameOf(template, member, model);
    return [known ?? put(this.groups, key, new QuotaGroup(name, template, this.windowOf))];
  }
}

/** The name that the endpoint goes by in a group of this kind; undefined when it belongs to none. */
function memberOf({ by, label = '' }: ResolvedGroup, { id, labels }: EndpointView): string | undefined {
  if (by === 'pool') return '';
  return by === 'endpoint' ? id : labels[label];
}

/** `gpt-4o*` is every model whose name begins so. */
export function isOfFamily(model: string, family: string): boolean {
  return family.endsWith('*') ? model.startsWith(family.slice(0, -1)) : model === family;
}

/** `account A`, `key-1`, `the pool for gpt-4o*`. */
function nameOf({ name, by, label, is, models, perModel }: ResolvedGroup, member: string, model: string): string {
  const bare = { pool: 'the pool', endpoint: member, label: `${label} ${member}` }[by];
  const own = name === undefined ? bare : name + (by === 'pool' || is !== undefined ? '' : ` ${member}`);
  if (perModel) return `${own} for ${model === '' ? 'requests without a model' : model}`;
  return name === undefined && models !== undefined ? `${own} for ${models.join(', ')}` : own;
}
