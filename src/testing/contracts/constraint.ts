/** The contract of every constraint: room for each request, waits, and the figures of quotas and sessions. */
import type { Constraint, EndpointView } from '../../index.js';
import {
  type ContractCase,
  contract,
  expectPart,
  expectSame,
  expectThat,
  ids,
  type Promises,
  subscription,
} from './contract-case.js';
import { ofController } from './controller-fixture.js';
import { endpoints, playSeats, seats } from './seat-listener.js';

function expectFigures(figures: object, names: readonly string[]): void {
  for (const name of names) {
    const value: unknown = Reflect.get(figures, name);
    expectThat(typeof value === 'number' && value >= 0, `${name} must be a number from 0 up, got ${String(value)}`);
  }
}

/** Of what it tells pages and exporters. */
const toldFigures: Promises<Constraint> = {
  'tells quotas in numbers, and has given every reservation back when nothing runs'(constraint) {
    if (constraint.quotas === undefined) return;
    const look = (nowMs: number): void => {
      const figures = constraint.quotas?.(nowMs) ?? { quotas: [] };
      expectFigures(figures, ['unreported', 'ignoredReports', 'ignoredFigures', 'refusals']);
      for (const quota of figures.quotas)
        expectFigures(quota, ['limit', 'perMs', 'used', 'reserved', 'resetsInMs', 'waitMs', 'restsForMs']);
    };
    const endMs = playSeats(constraint, 6, (_, nowMs) => look(nowMs));
    look(endMs);
    for (const { group, unit, reserved } of constraint.quotas(endMs).quotas)
      expectThat(reserved === 0, `${reserved} ${unit} of ${group} stay reserved`);
  },
  'tells sessions in numbers, counts those that are held back, and has none of them running when nothing runs'(
    constraint,
  ) {
    if (constraint.sessions === undefined) return;
    const names = ['resident', 'idle', 'maxSessions', 'waiting', 'tokens', 'expired'];
    const endMs = playSeats(constraint, 7, (item, nowMs) =>
      expectFigures(constraint.sessions?.([item], nowMs) ?? {}, names),
    );
    const { resident, idle, waiting } = constraint.sessions([], endMs);
    expectThat(resident === idle, `${resident - idle} sessions run, and no request does`);
    expectThat(waiting === 0, `${waiting} sessions wait, and nothing is held back`);
  },
  'tells how much is used as a number from 0 to below 1, where it tells it'(constraint) {
    playSeats(constraint, 8, (_, nowMs) => {
      const used = constraint.fullness?.(endpoints, nowMs) ?? 0;
      expectThat(used >= 0 && used < 1, `fullness must be from 0 to below 1, got ${used}`);
    });
  },
};

/** The contract of constraints, as cases for any test framework. */
export function constraintContract(make: () => Constraint): ContractCase[] {
  return contract(make, {
    'has room for a request at endpoints that it was given, in the same order, and says the same when it is asked again'(
      constraint,
    ) {
      playSeats(constraint, 4, (item, nowMs) => {
        const withRoom = (): readonly EndpointView[] => constraint.withRoomFor(endpoints, item, nowMs);
        expectPart(withRoom(), endpoints);
        expectSame(ids(withRoom()), ids(withRoom()), 'the endpoints with room, asked again');
      });
    },
    'tells a request without room an instant that lies ahead, not before the earliest one, and what it waits for'(
      constraint,
    ) {
      if (constraint.waitOf === undefined) return;
      playSeats(constraint, 5, (item, nowMs) => {
        if (constraint.withRoomFor(endpoints, item, nowMs).length > 0) return;
        const { atMs, notBeforeMs, missing } = constraint.waitOf?.(endpoints, item, nowMs) ?? {};
        // With an instant in the past the gate would look again at once, for ever.
        expectThat(typeof atMs === 'number' && atMs > nowMs, `atMs must lie after ${nowMs}, got ${atMs}`);
        expectThat(
          typeof notBeforeMs === 'number' && notBeforeMs <= atMs,
          `notBeforeMs must be at most ${atMs}, got ${notBeforeMs}`,
        );
        expectThat(typeof missing === 'string' && missing !== '', 'it must say what is missing');
      });
    },
    ...toldFigures,
    ...subscription,
    ...seats,
    ...ofController(make, (each) => ({ constraints: [each()] }), {
      served: 'lets every request of a queue go in the end, and is never at fault',
      method: 'withRoomFor',
      lost: 'lets every request go in the end when it fails to say where there is room: it then has no say',
    }),
  });
}
