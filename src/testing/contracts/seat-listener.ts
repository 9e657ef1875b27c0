/** The contracts of what hears of seats, and of constraints: room, waits, and the figures of quotas and sessions. */
import type { Constraint, EndpointView, ItemView, SeatListener, Usage } from '../../index.js';
import type { SeatView } from '../../types/index.js';
import type { ContractCase, Promises } from './contract-case.js';
import { cases, contract, expectPart, expectSame, expectThat, ids, subscription } from './contract-case.js';
import { ofController, serveCleanly, survival } from './controller-fixture.js';
import { endpointView, itemView, Random } from './views.js';

/** A seat whose host reports as the history says. */
interface Seat extends SeatView {
  usage: Usage;
  isReported: boolean;
  isUnsent: boolean;
}

interface Running {
  readonly endpoint: EndpointView;
  readonly seat: Seat;
}

const endpoints: readonly EndpointView[] = Object.freeze(['a', 'b', 'c'].map((id) => Object.freeze(endpointView(id))));

function randomItem(random: Random, sequence: number): ItemView {
  const sizes = { byteSize: 1, inputTokens: random.int(400), maxOutputTokens: random.int(400) };
  const [model, sessionId] = [random.pick(['m', 'n']), random.pick(['r', 's', 't'])];
  const request = Object.freeze({ ...sizes, model, sessionId });
  const [tokens, fairnessId] = [random.int(800), random.pick(['a', 'b', 'c'])];
  return Object.freeze(itemView({ request, sequence, tokens, fairnessId }));
}

/** Ends requests in every way: answered, reported, sent or not. `look` sees each before. At the end none runs. */
function playSeats(
  listener: SeatListener & Partial<Constraint>,
  seed: number,
  look: (item: ItemView, nowMs: number) => void,
): number {
  const random = new Random(seed);
  const running: Running[] = [];
  let nowMs = 0;
  const end = ({ endpoint, seat }: Running): void => {
    if (random.chance(0.6))
      listener.answered?.(endpoint, nowMs, seat, { status: random.pick([200, 200, 429, 500]), headers: {} });
    if (random.chance(0.7)) {
      seat.usage = { promptTokens: random.int(900), completionTokens: random.int(900) };
      seat.isReported = true;
      listener.reported?.(endpoint, nowMs, seat);
    } else {
      seat.isUnsent = random.chance(0.5);
    }
    listener.released?.(endpoint, nowMs, seat);
  };
  for (let step = 0; step < 300; step++) {
    nowMs += random.int(2000);
    const item = randomItem(random, step);
    look(item, nowMs);
    const [endpoint] = listener.withRoomFor?.(endpoints, item, nowMs) ?? endpoints;
    if (endpoint !== undefined) {
      const seat: Seat = { item, usage: { promptTokens: 0, completionTokens: 0 }, isReported: false, isUnsent: false };
      listener.dispatched?.(endpoint, nowMs, seat);
      running.push({ endpoint, seat });
    }
    if (running.length > 0 && random.chance(0.5)) end(running.splice(random.int(running.length), 1)[0] as Running);
  }
  for (const each of running) end(each);
  return nowMs;
}

/** Of whatever hears of seats; they hold for all that hears of none. */
export const seats: Promises<SeatListener> = {
  'answers nothing to what it hears of seats, also of those whose dispatch it never saw'(listener) {
    playSeats(listener, 10, () => {});
    const endpoint = endpoints[0]!;
    const item = randomItem(new Random(9), 0);
    const seat: SeatView = { item, usage: { promptTokens: 3, completionTokens: 4 }, isReported: true, isUnsent: false };
    const answers: unknown[] = [
      listener.answered?.(endpoint, 1, seat, { status: 200, headers: {} }),
      listener.reported?.(endpoint, 2, seat),
      listener.released?.(endpoint, 3, seat),
      listener.sessionEnded?.(endpoint, 4, seat),
    ];
    expectSame(answers.filter((answer) => answer !== undefined).length, 0, 'answers of its hooks');
  },
};

/** The contract of seat listeners, as cases for any test framework. */
export function seatListenerContract(make: () => SeatListener): ContractCase[] {
  return cases(make, {
    ...seats,
    'is never at fault while requests come and go': (plugin) => serveCleanly({ seatListener: plugin }),
    ...survival((seatListener: SeatListener) => ({ seatListener })),
  });
}

function expectFigures(figures: object, names: readonly string[]): void {
  for (const name of names) {
    const value: unknown = Reflect.get(figures, name);
    expectThat(typeof value === 'number' && value >= 0, `${name} must be a number from 0 up, got ${String(value)}`);
  }
}

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
        const isInTime = typeof notBeforeMs === 'number' && notBeforeMs <= atMs;
        expectThat(isInTime, `notBeforeMs must be at most ${atMs}, got ${notBeforeMs}`);
        expectThat(typeof missing === 'string' && missing !== '', 'it must say what is missing');
      });
    },
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
    ...subscription,
    ...seats,
    ...ofController(make, (each) => ({ constraints: [each()] }), {
      served: 'lets every request of a queue go in the end, and is never at fault',
      method: 'withRoomFor',
      lost: 'lets every request go in the end when it fails to say where there is room: it then has no say',
    }),
  });
}
