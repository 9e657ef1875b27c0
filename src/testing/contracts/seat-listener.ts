/** The contract of everything that hears of seats. */
import type { Constraint, EndpointView, ItemView, SeatListener, Usage } from '../../index.js';
import type { SeatView } from '../../types/index.js';
import { type ContractCase, cases, expectSame, type Promises } from './contract-case.js';
import { serveWithoutFaults, survival } from './controller-fixture.js';
import { Random } from './random.js';
import { endpointView, itemView } from './views.js';

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

export const endpoints: readonly EndpointView[] = Object.freeze(
  ['a', 'b', 'c'].map((id) => Object.freeze(endpointView(id))),
);

function randomItem(random: Random, sequence: number): ItemView {
  const sizes = { inputTokens: random.int(400), maxOutputTokens: random.int(400) };
  const request = Object.freeze({
    byteSize: 1,
    model: random.pick(['m', 'n']),
    sessionId: random.pick(['r', 's', 't']),
    ...sizes,
  });
  return Object.freeze(
    itemView({ request, sequence, tokens: random.int(800), fairnessId: random.pick(['a', 'b', 'c']) }),
  );
}

/** Sends requests where there is room, and ends them in every way, all at last. `look` sees each before it is sent. */
export function playSeats(
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

/** Each hook, called at the end of a seat that nobody was told of. */
function unknownSeat(listener: SeatListener): unknown[] {
  const [endpoint] = endpoints as [EndpointView];
  const item = randomItem(new Random(9), 0);
  const seat: SeatView = { item, usage: { promptTokens: 3, completionTokens: 4 }, isReported: true, isUnsent: false };
  return [
    listener.answered?.(endpoint, 1, seat, { status: 200, headers: {} }),
    listener.reported?.(endpoint, 2, seat),
    listener.released?.(endpoint, 3, seat),
    listener.sessionEnded?.(endpoint, 4, seat),
  ];
}

/** Of whatever hears of seats; they hold for all that hears of none. */
export const seats: Promises<SeatListener> = {
  'answers nothing to what it hears of seats, also of those whose dispatch it never saw'(listener) {
    playSeats(listener, 10, () => {});
    const answers = unknownSeat(listener).filter((answer) => answer !== undefined);
    expectSame(answers.length, 0, 'answers of its hooks');
  },
};

/** The contract of seat listeners, as cases for any test framework. */
export function seatListenerContract(make: () => SeatListener): ContractCase[] {
  return cases(make, {
    ...seats,
    'is never at fault while requests come and go': (plugin) => serveWithoutFaults({ seatListener: plugin }),
    ...survival((seatListener: SeatListener) => ({ seatListener })),
  });
}
