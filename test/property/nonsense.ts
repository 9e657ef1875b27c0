/** Plugins that do whatever their contract forbids, and that call the controller back from inside. */
import type {
  AdmissionPolicy,
  EndpointFilter,
  EndpointPicker,
  EndpointPool,
  EndpointView,
  EvictionFilter,
  EvictionOrdering,
  FlowFairnessPolicy,
  OrderingPolicy,
  SaturationDetector,
  UsageLimitPolicy,
} from '../../src/index.js';
import type { FlowView } from '../../src/types/index.js';
import type { Random } from './random.js';

/** What the plugins need of their world. */
export interface Mischief {
  readonly random: Random;
  /** Now and then calls a controller, or throws. */
  meddle(): void;
}

/** A value where another was asked for. */
function anything(random: Random): unknown {
  return random.pick<unknown>([
    undefined,
    null,
    Number.NaN,
    -1,
    Number.POSITIVE_INFINITY,
    '0.2',
    {},
    [],
    Promise.resolve(0),
    () => 0,
    0,
    0.5,
    3,
  ]);
}

export function nonsenseFairness({ random, meddle }: Mischief): FlowFairnessPolicy {
  const seen: FlowView[] = [];
  const remember = (flow: FlowView): void => {
    if (seen.length < 50) seen.push(flow);
    else seen[random.int(50)] = flow;
  };
  return {
    type: 'nonsense-fairness',
    createSelector(band) {
      const mood = random.int(12);
      if (mood === 0) throw new Error('createSelector');
      if (mood === 1) return anything(random) as never;
      return {
        pick() {
          meddle();
          const choice = random.int(6);
          if (choice === 0) return undefined;
          if (choice === 1) return anything(random) as never;
          if (choice === 2 && seen.length > 0) return random.pick(seen);
          if (choice === 3) return random.pick([...band.activeFlows()]);
          return band.firstActive;
        },
        flowActivated(flow) {
          remember(flow);
          meddle();
        },
        flowDeactivated: meddle,
        itemAdded: meddle,
        itemRemoved: meddle,
        ...(mood > 5 ? { dispatched: meddle } : {}),
        ...(mood > 8 ? { settled: meddle, flowRemoved: meddle } : {}),
      };
    },
  };
}

export function nonsenseOrdering({ random, meddle }: Mischief): OrderingPolicy {
  return {
    type: 'nonsense-ordering',
    compare() {
      if (random.chance(0.02)) meddle();
      if (random.chance(0.1)) throw new Error('compare');
      return random.chance(0.3) ? (anything(random) as number) : random.next() - 0.5;
    },
  };
}

/** Makes no announcements. */
export function nonsenseDetector({ random, meddle }: Mischief): SaturationDetector {
  return {
    type: 'nonsense-detector',
    saturation() {
      meddle();
      if (random.chance(0.2)) throw new Error('saturation');
      return random.chance(0.3) ? (anything(random) as number) : random.next() * 1.5;
    },
    filter(endpoints) {
      meddle();
      if (random.chance(0.2)) return anything(random) as never;
      return random.chance(0.5) ? [random.pick(endpoints)] : endpoints;
    },
    dispatched: meddle,
    released: meddle,
  };
}

export function nonsenseFilter({ random, meddle }: Mischief): EndpointFilter {
  return {
    type: 'nonsense-filter',
    classOf() {
      meddle();
      if (random.chance(0.1)) throw new Error('classOf');
      return random.chance(0.2) ? (anything(random) as string) : random.pick(['m', 'n', undefined]);
    },
    keep(endpoints) {
      meddle();
      const choice = random.int(8);
      if (choice === 0) throw new Error('keep');
      if (choice === 1) return anything(random) as never;
      if (choice === 2) return endpoints.map((endpoint) => ({ ...endpoint }));
      return random.chance(0.2) ? [] : endpoints.filter(() => random.chance(0.7));
    },
  };
}

export function nonsenseUsageLimit({ random, meddle }: Mischief): UsageLimitPolicy {
  return {
    type: 'nonsense-usage-limit',
    computeLimits(_saturation, priorities, ceilings) {
      meddle();
      if (random.chance(0.1)) throw new Error('computeLimits');
      for (let i = 0; i < ceilings.length; i++)
        ceilings[i] = random.chance(0.2) ? (anything(random) as number) : random.next() * 2;
      if (random.chance(0.1)) ceilings.length = random.int(3);
      if (random.chance(0.1)) (priorities as number[]).reverse();
    },
  };
}

export function nonsensePicker({ random, meddle }: Mischief, pool: EndpointPool): EndpointPicker {
  const seen: EndpointView[] = [];
  return {
    type: 'nonsense-picker',
    pick(endpoints) {
      seen.push(...endpoints.slice(0, 1));
      meddle();
      const choice = random.int(8);
      if (choice === 0) throw new Error('pick');
      if (choice === 1) return anything(random) as never;
      if (choice === 2) return random.pick(seen);
      if (choice === 3) return { ...random.pick(endpoints) };
      if (choice === 4) (endpoints as EndpointView[]).pop();
      if (choice === 5) for (const { id } of pool.endpoints) pool.remove(id);
      return random.pick(endpoints);
    },
  };
}

export function nonsenseEviction({ random, meddle }: Mischief): { filter: EvictionFilter; ordering: EvictionOrdering } {
  return {
    filter: {
      type: 'nonsense-filter',
      accepts({ priority }) {
        meddle();
        if (random.chance(0.1)) throw new Error('accepts');
        return random.chance(0.2) ? anything(random) === true : priority < 0;
      },
    },
    ordering: {
      type: 'nonsense-order',
      compare() {
        meddle();
        if (random.chance(0.1)) throw new Error('compare');
        return random.chance(0.3) ? (anything(random) as number) : random.next() - 0.5;
      },
    },
  };
}

export function nonsenseAdmission({ random, meddle }: Mischief): AdmissionPolicy {
  return {
    type: 'nonsense-admission',
    admit(_request, _key, view) {
      meddle();
      if (random.chance(0.1)) throw new Error('admit');
      if (random.chance(0.1)) view.saturation();
      return random.chance(0.3) ? (anything(random) as 'admit') : random.pick(['admit', { reason: 'no' }]);
    },
    released: meddle,
  };
}
