/**
 * The bound on commands that stand in a client: those since the last answer. Replies that are lost for ever do not add
 * up.
 */
import { expect, it } from 'vitest';
import { type IoRedisClient, redisStore } from '../../../src/redis/index.js';
import { StoreLink } from '../../../src/redis/store/store-link.js';
import { ManualClock } from '../../../src/testing/index.js';

const script = { name: 'probe', text: 'return 1', local: () => [] };
const timeoutMs = 50;

/** A client that leaves without a reply, for ever, the calls that `isLost` names; they are counted from 0. */
function lossyLink(isLost: (call: number) => boolean) {
  const clock = new ManualClock();
  let sent = 0;
  const reply = (): Promise<unknown> => (isLost(sent++) ? new Promise(() => {}) : Promise.resolve('answer'));
  const client: IoRedisClient = { evalsha: reply, eval: reply };
  const link = new StoreLink(redisStore(client), { callTimeout: timeoutMs, clock, random: () => 0.5 }, 'here');
  /** The answer, or the code of the problem. */
  async function call(): Promise<unknown> {
    const answer = link.run(script, ['key'], []).catch((error: { problem: { code: string } }) => error.problem.code);
    for (let turn = 0; turn < 8; turn++) await undefined;
    clock.advance(timeoutMs);
    return answer;
  }
  return { link, clock, call, sent: () => sent };
}

it('a link goes on after any number of lost replies, as long as some come', async () => {
  const { call } = lossyLink((index) => index % 2 === 0);
  const answers = new Map<unknown, number>();
  for (let count = 0; count < 2_000; count++) {
    const answer = await call();
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  expect([...answers]).toEqual([
    ['timeout', 1_000],
    ['answer', 1_000],
  ]);
});

it('a link leaves no more than 256 commands in a client that answers none', async () => {
  const { call, clock, sent } = lossyLink(() => true);
  let last: unknown;
  for (let count = 0; count < 300; count++) {
    clock.advance(1_000);
    last = await call();
  }
  expect([last, sent()]).toEqual(['busy', 256]);
});
