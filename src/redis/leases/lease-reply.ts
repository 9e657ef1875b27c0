/** What the lease script answers, held against what was asked. */
import { numbersOf } from '../store/store-link.js';
import type { StoreProblem } from '../store/store-problem.js';
import type { CapacityLease, Grant } from './capacity-lease.js';

export const replyWidth = 15;

type Asked = Pick<CapacityLease, 'told'>;

/** One grant for each lease asked for, in order. Undefined: not the script's, another replica's, or above the limit. */
export function grantsOf(reply: unknown, incarnation: string, asked: readonly Asked[]): readonly Grant[] | undefined {
  if (!Array.isArray(reply) || reply.length !== asked.length * replyWidth) return undefined;
  const grants: Grant[] = [];
  for (const [index, { told }] of asked.entries()) {
    const [name, ...figures] = reply.slice(index * replyWidth, (index + 1) * replyWidth);
    const grant = String(name) === incarnation ? grantOf(figures) : undefined;
    if (grant === undefined || !(isRepeated(grant) || isWithin(grant, told.limit))) return undefined;
    grants.push(grant);
  }
  return grants;
}

/** The number of the call that an answer is for; NaN if it is none of the script, or for another replica. */
export function sequenceIn(reply: unknown, incarnation: string): number {
  const isOurs = Array.isArray(reply) && reply.length % replyWidth === 0 && String(reply[0]) === incarnation;
  return isOurs ? Number(reply[1]) : NaN;
}

/** The store has seen the call, or a later one, already, or another replica has the name: there is no grant. */
export const isRepeated = ({ grant }: Grant): boolean => grant === -1;

function isWithin({ grant, safe, limit, largestLimit, replicas, held, target }: Grant, toldLimit: number): boolean {
  const isInOrder = 0 <= safe && safe <= grant && grant <= limit && limit <= Math.min(toldLimit, largestLimit);
  return isInOrder && replicas >= 1 && held >= 0 && target >= 0;
}

function grantOf(figures: readonly unknown[]): Grant | undefined {
  const numbers = numbersOf(figures, replyWidth - 1);
  if (numbers === undefined || !numbers.every(Number.isSafeInteger)) return undefined;
  const [sequence = 0, grant = 0, safe = 0, epoch = 0, learning, ...rest] = numbers;
  const [replicas = 0, limit = 0, largestLimit = 0, held = 0, target = 0, poolWeight = 0, ...more] = rest;
  const [birth = 0, rivals = 0, lack = 0] = more;
  const others = { replicas, limit, largestLimit, held, target, poolWeight, birth, rivals, lack };
  return { sequence, grant, safe, epoch, isLearning: learning === 1, ...others };
}

export function mismatch(where: string, key: string, { limit, largestLimit }: Grant): StoreProblem {
  const cause = `some replicas say ${limit}, others ${largestLimit}`;
  const message = `${where}: ${cause} (key ${key}): ${limit} is in force until all say the same; give pools of different limits different names`;
  return { code: 'limit-mismatch', message, keys: [key], cause };
}

export function nameConflict(where: string, key: string, name: string): StoreProblem {
  const cause = `another live replica is called "${name}"`;
  const message = `${where}: ${cause} (key ${key}): the limit holds, but a restart of one is not known as such; give each replica a name of its own`;
  return { code: 'name-conflict', message, keys: [key], cause };
}
