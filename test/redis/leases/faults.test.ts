/**
 * What each fault costs, in virtual time on a real store: requests over the limit, and the time until all seats can be
 * used again.
 */
import { expect, it } from 'vitest';
import { limit, spans, type VirtualStage, virtualFault } from '../support/virtual-faults.js';
import { describeWithClient } from '../support/with-store.js';

interface Fault {
  readonly replicas?: number;
  readonly over: (replicas: number) => number;
  readonly backMs: number;
  readonly play: (stage: VirtualStage) => Promise<void>;
}

const { refresh, lease, drain, forget, longest } = spans;
const nothing = (): number => 0;
const some = ({ random }: VirtualStage, ms: number): number => ms * (0.2 + 0.8 * random());

async function rollingRestart(stage: VirtualStage): Promise<void> {
  for (const replica of [...stage.live]) {
    stage.kill(replica);
    await stage.pass(some(stage, refresh));
    stage.join(replica.name);
    await stage.pass(2 * refresh);
  }
}

const faults: Readonly<Record<string, Fault>> = {
  'no fault': { over: nothing, backMs: 0, play: (stage) => stage.pass(lease) },
  'the store away for longer than a lease': {
    over: nothing,
    backMs: 0,
    async play(stage) {
      stage.setStoreAway(true);
      await stage.pass(lease + some(stage, 2 * lease));
      stage.setStoreAway(false);
    },
  },
  'the store flushed': {
    over: nothing,
    backMs: lease,
    async play(stage) {
      await stage.flush();
    },
  },
  'three restarts that lose the last second': {
    over: nothing,
    backMs: lease,
    async play(stage) {
      for (let i = 0; i < 3; i++) {
        const restore = await stage.save();
        await stage.pass(some(stage, refresh));
        stage.setStoreAway(true);
        await stage.pass(some(stage, 2 * lease));
        await restore();
        stage.setStoreAway(false);
        await stage.pass(some(stage, lease));
      }
    },
  },
  'an old snapshot after a rolling restart': {
    over: nothing,
    backMs: lease + drain,
    async play(stage) {
      const restore = await stage.save();
      await rollingRestart(stage);
      await stage.pass(lease + drain);
      await restore();
    },
  },
  'split brain, to its end': {
    over: () => limit,
    backMs: longest,
    async play(stage) {
      await stage.split();
      const other = stage.live.filter((_, index) => index % 2 === 0);
      for (const replica of other) replica.side = ':other';
      await stage.pass(some(stage, lease + drain + forget));
      for (const replica of other) replica.side = '';
    },
  },
  'the clock of the store jumps ahead': {
    over: () => limit,
    backMs: lease + longest,
    play: (stage) => stage.jump(some(stage, lease + drain + forget)),
  },
  'the clock of the store jumps back': {
    over: nothing,
    backMs: 0,
    play: (stage) => stage.jump(-some(stage, 10_000)),
  },
  'a crash loop': {
    over: nothing,
    // Busy seats move when their requests end.
    backMs: drain + longest,
    async play(stage) {
      let [replica] = stage.live;
      for (let i = 0; i < 5; i++) {
        stage.kill(replica!);
        await stage.pass(some(stage, refresh));
        replica = stage.join(replica!.name);
        await stage.pass(some(stage, 3 * refresh));
      }
    },
  },
  'replicas killed, others join': {
    over: nothing,
    backMs: lease + drain + forget + longest,
    async play(stage) {
      for (const replica of stage.live.slice(0, 2)) {
        stage.kill(replica);
        stage.join();
        await stage.pass(some(stage, lease));
      }
    },
  },
  'replicas cut off': {
    over: nothing,
    backMs: 0,
    async play(stage) {
      const cut = stage.live.filter(() => stage.random() < 0.5);
      for (const replica of cut) replica.isCut = true;
      await stage.pass(some(stage, lease + drain));
      for (const replica of cut) replica.isCut = false;
    },
  },
  'a replica cut off for longer than forgetAfter': {
    over: (replicas) => Math.floor(limit / replicas),
    backMs: longest,
    async play(stage) {
      const [replica] = stage.live;
      replica!.isCut = true;
      await stage.pass(lease + drain + forget + some(stage, 2 * longest));
      replica!.isCut = false;
    },
  },
  '3 replicas become 6 while the store is away': {
    replicas: 3,
    over: () => 3 * Math.floor(limit / 6),
    backMs: lease + longest,
    async play(stage) {
      stage.setStoreAway(true);
      for (let i = 0; i < 3; i++) stage.join();
      await stage.pass(lease + some(stage, longest));
      stage.setStoreAway(false);
    },
  },
};

/** Seeds of each kind of demand; more of them by HEADGATE_SEEDS. */
const seeds = Array.from({ length: Number(process.env.HEADGATE_SEEDS ?? 2) }, (_, index) => index + 1);
/** Who returns calls, others hear that it lacks its part, say that they heed it, and it calls again. */
const moving = 4 * refresh;

describeWithClient('the limit and its seats', { timeout: 1_200_000 }, (redis) => {
  const cases = Object.entries(faults);

  it.each(cases)(
    'is exceeded by no more than is stated, with any demand: %s',
    async (_name, { replicas, over, play }) => {
      for (const seed of seeds) {
        const count = replicas ?? 2 + (seed % 6);
        const { mostOver } = await virtualFault(redis(), seed, count, false, play);
        expect({ seed, mostOver, isWithin: mostOver <= over(count) }).toMatchObject({ isWithin: true });
      }
    },
  );

  it.each(cases)(
    'are all back in the stated time, where all are wanted: %s',
    async (_name, { replicas, backMs, play }) => {
      for (const seed of seeds) {
        const finding = await virtualFault(redis(), seed, replicas ?? 2 + (seed % 6), true, play);
        expect({ seed, ...finding, isWithin: finding.backMs <= backMs + moving }).toMatchObject({ isWithin: true });
      }
    },
  );
});
