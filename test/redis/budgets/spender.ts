/** A process that spends a shared budget as fast as it can: 50 requests at once, for so many ms. */
import { Redis } from 'ioredis';
import { sharedBudgets } from '../../../src/redis/index.js';

const [port, limit, burst, forMs, mode] = process.argv.slice(2) as [string, string, string, string, string];
const client = new Redis(Number(port));
const budgets = sharedBudgets<{ tokens: number }>(client, {
  name: 'tpm',
  budgets: [{ name: 'tokens', limit: Number(limit), burst: Number(burst), cost: 'tokens' }],
  callTimeout: '10s',
});
const key = { fairnessId: 'tenant', priority: 0 };
const until = performance.now() + Number(forMs);
let taken = 0;
/** What a gateway does that looks at a counter of used tokens, and counts when an answer has ended. */
let used = 0;

async function spend(seed: number): Promise<void> {
  for (let i = seed; performance.now() < until; i++) {
    const tokens = 200 + ((i * 7919) % 800);
    if (mode === 'usual') {
      if (used < Number(limit)) {
        taken += tokens;
        await new Promise((resolve) => setTimeout(resolve, 200));
        used += tokens;
      } else await new Promise((resolve) => setTimeout(resolve, 20));
      continue;
    }
    const answer = await budgets.take({ tokens }, key);
    if (answer.isTaken) {
      taken += tokens;
      await new Promise((resolve) => setTimeout(resolve, 20));
      // Every third answer was shorter than predicted.
      const actual = i % 3 === 0 ? Math.ceil(tokens / 2) : tokens;
      taken -= tokens - actual;
      await answer.settle({ promptTokens: actual, completionTokens: 0 });
    } else await new Promise((resolve) => setTimeout(resolve, Math.min(100, answer.retryAfterMs ?? 100)));
  }
}

await Promise.all(Array.from({ length: 50 }, (_, index) => spend(index * 1_000)));
budgets.close();
client.disconnect();
process.send?.({ taken }, () => process.exit());
