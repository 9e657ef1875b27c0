/**
 * The contract of a saturation detector that judges single requests: room for each, waits, and the figures of quotas
 * and sessions.
 */
import type { EndpointView, ItemView, SaturationDetector, Usage } from '../../index.js';
import type { SeatView } from '../../types/index.js';
import { type ContractCase, expectSame, expectThat } from './contract-case.js';
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

const endpoints: readonly EndpointView[] = Object.freeze(['a', 'b', 'c'].map((id) => Object.freeze(endpointView(id))));

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

/**
 * Sends requests where the detector has room, and ends them in every way: told of an answer or not, reported or not,
 * sent or not. `look` sees each request before it is sent, at the instant of the history. At the end nothing runs.
 */
function playSeats(detector: SaturationDetector, seed: number, look: (item: ItemView, nowMs: number) => void): number {
  const random = new Random(seed);
  const running: Running[] = [];
  let nowMs = 0;
  const end = ({ endpoint, seat }: Running): void => {
    if (random.chance(0.6))
      detector.answered?.(endpoint, nowMs, seat, { status: random.pick([200, 200, 429, 500]), headers: {} });
    if (random.chance(0.7)) {
      seat.usage = { promptTokens: random.int(900), completionTokens: random.int(900) };
      seat.isReported = true;
      detector.reported?.(endpoint, nowMs, seat);
    } else {
      seat.isUnsent = random.chance(0.5);
    }
    detector.released?.(endpoint, nowMs, seat);
  };
  for (let step = 0; step < 300; step++) {
    nowMs += random.int(2000);
    const item = randomItem(random, step);
    look(item, nowMs);
    const [endpoint] = detector.withRoomFor?.(endpoints, item, nowMs) ?? endpoints;
    if (endpoint !== undefined) {
      const seat: Seat = { item, usage: { promptTokens: 0, completionTokens: 0 }, isReported: false, isUnsent: false };
      detector.dispatched?.(endpoint, nowMs, seat);
      running.push({ endpoint, seat });
    }
    if (running.length > 0 && random.chance(0.5)) end(running.splice(random.int(running.length), 1)[0] as Running);
  }
  for (const each of running) end(each);
  return nowMs;
}

function expectFigures(figures: object, names: readonly string[]): void {
  for (const name of names) {
    const value: unknown = Reflect.get(figures, name);
    expectThat(typeof value === 'number' && value >= 0, `${name} must be a number from 0 up, got ${String(value)}`);
  }
}

/** Cases for detectors that have these hooks; they hold for all others. */
export function judgedRequestCases(make: () => SaturationDetector): ContractCase[] {
  return [
    {
      name: 'has room for a request at endpoints that it was given, in the same order, and says the same when it is asked again',
      run() {
        const detector = make();
        if (detector.withRoomFor === undefined) return;
        playSeats(detector, 4, (item, nowMs) => {
          const ids = (): string[] => (detector.withRoomFor?.(endpoints, item, nowMs) ?? []).map(({ id }) => id);
          const kept = ids();
          const inOrder = endpoints.map(({ id }) => id).filter((id) => kept.includes(id));
          expectSame(kept, inOrder, 'the endpoints with room');
          expectSame(ids(), kept, 'the endpoints with room, asked again');
        });
      },
    },
    {
      name: 'tells a request without room an instant that lies ahead, not before the earliest one, and what it waits for',
      run() {
        const detector = make();
        if (detector.withRoomFor === undefined || detector.waitOf === undefined) return;
        playSeats(detector, 5, (item, nowMs) => {
          if ((detector.withRoomFor?.(endpoints, item, nowMs) ?? endpoints).length > 0) return;
          const { atMs, notBeforeMs, missing } = detector.waitOf?.(endpoints, item, nowMs) ?? {};
          // With an instant in the past the gate would look again at once, for ever.
          expectThat(typeof atMs === 'number' && atMs > nowMs, `atMs must lie after ${nowMs}, got ${atMs}`);
          expectThat(
            typeof notBeforeMs === 'number' && notBeforeMs <= atMs,
            `notBeforeMs must be at most ${atMs}, got ${notBeforeMs}`,
          );
          expectThat(typeof missing === 'string' && missing !== '', 'it must say what is missing');
        });
      },
    },
    {
      name: 'tells quotas in numbers, and has given every reservation back when nothing runs',
      run() {
        const detector = make();
        if (detector.quotas === undefined) return;
        const look = (nowMs: number): void => {
          const figures = detector.quotas?.(nowMs) ?? { quotas: [] };
          expectFigures(figures, ['unreported', 'ignoredReports', 'ignoredFigures', 'refusals']);
          for (const quota of figures.quotas)
            expectFigures(quota, ['limit', 'perMs', 'used', 'reserved', 'resetsInMs', 'waitMs', 'restsForMs']);
        };
        const endMs = playSeats(detector, 6, (_, nowMs) => look(nowMs));
        look(endMs);
        for (const { group, unit, reserved } of detector.quotas(endMs).quotas)
          expectThat(reserved === 0, `${reserved} ${unit} of ${group} stay reserved`);
      },
    },
    {
      name: 'tells sessions in numbers, counts those that are held back, and has none of them running when nothing runs',
      run() {
        const detector = make();
        if (detector.sessions === undefined) return;
        const names = ['resident', 'idle', 'maxSessions', 'waiting', 'tokens', 'expired'];
        const endMs = playSeats(detector, 7, (item, nowMs) =>
          expectFigures(detector.sessions?.([item], nowMs) ?? {}, names),
        );
        const { resident, idle, waiting } = detector.sessions([], endMs);
        expectThat(resident === idle, `${resident - idle} sessions run, and no request does`);
        expectThat(waiting === 0, `${waiting} sessions wait, and nothing is held back`);
      },
    },
  ];
}
