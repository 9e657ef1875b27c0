/** A replica's name: told, found, or drawn. Invariant: found names of one pool differ within a process. */
import { env as environment } from 'node:process';
import { isKeyName, newReplicaId } from '../store/store-options.js';

export interface ReplicaName {
  readonly name: string;
  /** `random`: a restart is not known as such. */
  readonly origin: 'given' | 'found' | 'random';
}

type Environment = Readonly<Record<string, string | undefined>>;

const taken = new Set<string>();

/** Found names are those that a restart keeps: a pod's, or a host's with what tells its processes apart. */
export function replicaName(given: string | undefined, pool: string, env: Environment = environment): ReplicaName {
  if (given !== undefined) return { name: given, origin: 'given' };
  const found = nameIn(env);
  if (found === undefined) return { name: newReplicaId(), origin: 'random' };
  let name = found;
  for (let count = 2; taken.has(`${pool} ${name}`); count++) name = `${found}.${count}`;
  taken.add(`${pool} ${name}`);
  return { name, origin: 'found' };
}

export function freeReplicaName(name: string, pool: string): void {
  taken.delete(`${pool} ${name}`);
}

function nameIn(env: Environment): string | undefined {
  const { HEADGATE_REPLICA: own, HOSTNAME: host, KUBERNETES_SERVICE_HOST: isInPod } = env;
  const part = env.NODE_APP_INSTANCE ?? env.PORT;
  const isHostEnough = part !== undefined || isInPod !== undefined;
  const name = own ?? (host && isHostEnough ? [host, part].filter(Boolean).join(':') : undefined);
  return isKeyName(name) ? name : undefined;
}
