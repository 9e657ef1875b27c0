/**
 * A store whose calls are late, lost or repeated, and written down where they reach the server.
 *
 * Invariant: what is lost is lost between the replica and this record. So every call that the server ran is in the
 * history with its answer, except those that the end of a connection cut short.
 */
import type { Store } from '../../../src/redis/index.js';
import { type LeaseAnswer, type LeaseCall, readAnswer, readCall } from './lease-call.js';

export interface RecordedCall extends LeaseCall {
  /** The number of the replica. */
  readonly replica: number;
  /** Those that had its name before have lower numbers. */
  readonly name: string;
  readonly callUs: number;
  /** When the answer came, or the connection ended: nothing runs after that. */
  returnUs: number;
  /** Undefined where the connection ended first. */
  answer: LeaseAnswer | undefined;
}

export interface History {
  replicas: number;
  /** The store forgets during the history what it knew. */
  readonly losesState: boolean;
  readonly calls: RecordedCall[];
}

export interface CallFaults {
  /** Chances, 0…1: the call never leaves, is sent twice, or its answer gets lost. */
  readonly lost: number;
  readonly repeated: number;
  readonly answerLost: number;
  /** Each way takes up to so long, ms; a repetition ten times that. */
  readonly delayMs: number;
}

export interface Wire {
  /** While true nothing leaves. */
  isCut: boolean;
  readonly replica: number;
  readonly store: Store;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const nowUs = (): number => Math.floor(performance.now() * 1_000);

export function recorded(
  server: Store,
  history: History,
  faults: CallFaults,
  random: () => number,
  edit: (text: string) => string,
  name: string,
): Wire {
  const replica = history.replicas++;

  async function send(...[script, keys, args]: Parameters<Store['run']>): Promise<unknown> {
    const call: RecordedCall = { ...readCall(args), replica, name, callUs: nowUs(), returnUs: 0, answer: undefined };
    history.calls.push(call);
    try {
      const reply = await server.run({ ...script, text: edit(script.text) }, keys, args);
      call.answer = readAnswer(reply);
      return reply;
    } catch (error) {
      // The client had no connection: the call never left.
      if (`${error}`.includes("Stream isn't writeable")) history.calls.splice(history.calls.indexOf(call), 1);
      throw error;
    } finally {
      call.returnUs = nowUs();
    }
  }

  const wire: Wire = {
    isCut: false,
    replica,
    store: {
      onError: () => () => {},
      async run(script, keys, args) {
        const { lost, repeated, answerLost, delayMs } = faults;
        if (wire.isCut || random() < lost) return new Promise(() => {});
        if (random() < repeated) {
          const repeat = pause(10 * delayMs * random()).then(() => send(script, keys, args));
          repeat.catch(() => {});
        }
        await pause(delayMs * random());
        const reply = await send(script, keys, args);
        await pause(delayMs * random());
        return random() < answerLost ? new Promise(() => {}) : reply;
      },
    },
  };
  return wire;
}
