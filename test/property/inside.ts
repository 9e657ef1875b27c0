/** The controller's private state, for checks that no public figure allows. */

import type { LinkedList } from '../../src/base/queues/linked-list.js';
import type { Dispatcher } from '../../src/core/engine/dispatcher.js';
import type { ResolvedOptions } from '../../src/core/options.js';
import type { SaturationDetector } from '../../src/gate/saturation-detector.js';
import type { Flow } from '../../src/tiers/flow.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';

export function dispatcherOf(flow: object): Dispatcher {
  return Reflect.get(flow, 'dispatcher') as Dispatcher;
}

/** The options that are in force, whatever a reconfiguration that waits its turn will bring. */
export function optionsOf(flow: object): ResolvedOptions {
  return Reflect.get(dispatcherOf(flow), 'options') as ResolvedOptions;
}

/** The detector of a band's own, by the options in force. */
export function ownDetectorOf(flow: object, priority: number): SaturationDetector | undefined {
  const { bands, defaultBand, defaultNegativeBand } = optionsOf(flow);
  const settings = bands.find((band) => band.priority === priority) ?? (priority < 0 ? defaultNegativeBand : defaultBand);
  return settings.saturationDetector;
}

/** True from a walk that stopped to let the event loop turn until the next turn. */
export function isPaused(flow: object): boolean {
  return dispatcherOf(flow).isPaused;
}

/** What is wrong with the tables behind the tiers. */
export function brokenTables(flow: object): string[] {
  const { bands, waiting, waitingBytes } = dispatcherOf(flow).backlog;
  const { flows } = bands;
  const faults: string[] = [];
  const expect = (isRight: boolean, fault: string): void => {
    if (!isRight) faults.push(fault);
  };
  const all = bands.all();
  const withWaiting = Reflect.get(bands, 'waiting') as readonly PriorityBand[];
  const idle = new Set(Reflect.get(flows, 'idle') as LinkedList<Flow>);
  expect(new Set(all.map((band) => band.priority)).size === all.length, 'two bands of one priority');
  expect(
    all.every((band, i) => i === 0 || (all[i - 1] as PriorityBand).priority > band.priority),
    'bands out of order',
  );
  expect(
    all.filter((band) => band.waiting > 0).every((band, i) => withWaiting[i] === band) &&
      withWaiting.length === all.filter((band) => band.waiting > 0).length,
    'the list of waiting bands is wrong',
  );
  let sum = 0;
  let bytes = 0;
  let known = 0;
  for (const band of all) {
    const items = band.waitingItems();
    const active = new Set(band.activeFlows());
    const held = new Set(band.held.flows());
    let heldItems = 0;
    sum += band.waiting;
    bytes += band.waitingBytes;
    known += band.flows.size;
    expect(items.length === band.waiting, `band ${band.priority} counts ${band.waiting} and holds ${items.length}`);
    expect(items.reduce((total, item) => total + item.byteSize, 0) === band.waitingBytes, `band ${band.priority} miscounts bytes`);
    let tracked = 0;
    for (const [name, known] of band.flows) {
      tracked += known.trackedInFlight;
      const own = items.filter((item) => item.flow === known);
      expect(known.name === name && known.band === band, `flow ${name} is filed wrongly`);
      expect(held.has(known) === (known.heldIn !== undefined), `flow ${name}: held ${held.has(known)}`);
      if (held.has(known)) heldItems += known.waiting;
      expect(own.length === known.waiting, `flow ${name} counts ${known.waiting} and has ${own.length}`);
      expect(own.reduce((total, item) => total + item.byteSize, 0) === known.waitingBytes, `flow ${name} miscounts bytes`);
      const places = Number(active.has(known)) + Number(held.has(known));
      expect(places === Number(known.waiting > 0), `flow ${name} with ${known.waiting} waiting stands in ${places} places`);
      const isIdle = known.waiting === 0 && known.trackedInFlight === 0;
      expect(idle.has(known) === isIdle && known.isIdle === isIdle, `flow ${name}: idle ${idle.has(known)}, expected ${isIdle}`);
      expect(known.trackedInFlight >= 0, `flow ${name} tracks ${known.trackedInFlight}`);
      idle.delete(known);
    }
    expect(heldItems === band.held.waiting, `band ${band.priority} holds back ${band.held.waiting}, its flows ${heldItems}`);
    expect(tracked === band.trackedInFlight, `band ${band.priority} tracks ${band.trackedInFlight}, its flows ${tracked}`);
  }
  expect(idle.size === 0, 'a forgotten flow is among the idle ones');
  expect(known === flows.size, `${flows.size} flows counted, ${known} known`);
  expect(sum === waiting && bytes === waitingBytes, `${waiting} (${waitingBytes} B) wait, the bands hold ${sum} (${bytes} B)`);
  return faults;
}
