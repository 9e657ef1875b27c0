/** Questions between two processes, in marked messages. Invariant: each settles, unless the other end is silent. */

type Listen = (event: string, listener: (value: unknown) => void) => unknown;

/** One end of a channel: a `node:cluster` worker, a child's IPC `process`, a thread's `parentPort`, a `MessagePort`. */
export type CallPort = { readonly on: Listen; readonly off: Listen } & (
  | { send?: ((message: object) => unknown) | undefined; readonly connected?: boolean | undefined }
  | { postMessage(message: object): unknown }
);

interface Message<Q> {
  /** What it is about: both ends say the same. */
  readonly headgate: string;
  /** Who asks, and the number of the question; 0 wants no answer. */
  readonly from: string;
  readonly id: number;
  readonly question?: Q | undefined;
  readonly answer?: unknown;
  readonly failure?: string | undefined;
}

export interface Calls<Q> {
  /** Rejects with what the other end throws, and when it is gone. */
  ask(question: Q): Promise<unknown>;
  tell(question: Q): void;
  /** Hears nothing more, and rejects what has no answer yet. */
  end(): void;
}

export const channelIsClosed = 'the channel to the other process is closed';

export function calls<Q>(port: CallPort, about: string, answer: (question: Q) => unknown): Calls<Q> {
  const self = globalThis.crypto.randomUUID();
  const askers = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>();
  let asked = 0;
  let isOver = false;

  const send = (message: Omit<Message<Q>, 'headgate'>): boolean => post(port, { headgate: about, ...message });
  async function reply({ from, id }: Message<Q>, question: Q): Promise<void> {
    try {
      const said = await answer(question);
      if (id > 0) send({ from, id, answer: said });
    } catch (error) {
      send({ from, id, failure: error instanceof Error ? error.message : String(error) });
    }
  }
  const hear = (given: unknown): void => {
    const message: Message<Q> = Object(given);
    if (message.headgate !== about || typeof message.id !== 'number') return;
    const { from, id, question, answer: said, failure } = message;
    if (question !== undefined) void reply(message, question);
    if (question !== undefined || from !== self) return;
    if (failure === undefined) askers.get(id)?.resolve(said);
    else askers.get(id)?.reject(new Error(failure));
    askers.delete(id);
  };
  const end = (): void => {
    isOver = true;
    port.off('message', hear);
    for (const { reject } of askers.values()) reject(new Error(channelIsClosed));
    askers.clear();
  };
  port.on('message', hear);
  for (const event of ['disconnect', 'close', 'exit']) port.on(event, end);

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        const id = ++asked;
        if (isOver || !send({ from: self, id, question })) reject(new Error(channelIsClosed));
        else askers.set(id, { resolve, reject });
      }),
    tell: (question) => void send({ from: self, id: 0, question }),
    end,
  };
}

/** False when the channel is closed: the other end is gone, or will be. */
function post(port: CallPort, message: object): boolean {
  try {
    if ('postMessage' in port) port.postMessage(message);
    else if (port.connected === false || port.send === undefined) return false;
    // Without a function, a channel that breaks now would be an error of the process.
    else (port.send as (message: object, done: () => void) => unknown)(message, () => {});
    return true;
  } catch {
    return false;
  }
}
