/** What the engine answers to one call, and what is wrong with an answer. */
import type { EngineProblem } from '../engine/engine-problem.js';
import type { Grant } from './capacity-lease.js';
import { replyWidth } from './lease-script.js';

export function grantOf(reply: readonly unknown[], at: number): Grant {
  const [sequence, grant, safe, epoch, learning, replicas, limit, largestLimit, held, target, poolWeight] = reply
    .slice(at + 1, at + replyWidth)
    .map(Number) as [number, number, number, number, number, number, number, number, number, number, number];
  return {
    sequence,
    grant,
    safe,
    epoch,
    isLearning: learning === 1,
    replicas,
    limit,
    largestLimit,
    held,
    target,
    poolWeight,
  };
}

export function mismatch(where: string, key: string, { limit, largestLimit }: Grant): EngineProblem {
  const cause = `some replicas say ${limit}, others ${largestLimit}`;
  const message = `${where}: ${cause} (key ${key}): ${limit} is in force until all say the same; give pools of different limits different names`;
  return { code: 'limit-mismatch', message, keys: [key], cause };
}

export function badReply(where: string, keys: readonly string[]): EngineProblem {
  const cause = 'the answer belongs to another call';
  const message = `${where}: ${cause} (keys ${keys.join(', ')}): something between here and the engine drops or repeats answers`;
  return { code: 'bad-reply', message, keys, cause };
}
