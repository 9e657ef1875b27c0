/** Questions and answers between the primary of a gateway and one of its workers, in both directions. */

import type { OperatorQuestion } from '../operators/operator-routes.js';

/** What can be asked; `alive` for a sign of life. */
export type CallName = OperatorQuestion | 'alive' | 'start' | 'reload' | 'stop';

/** What a channel of processes offers: `process` in a worker, and a worker of `node:cluster`. */
export interface Channel {
  send?(message: object, done: () => void): unknown;
  on(event: 'message', listener: (message: unknown) => void): unknown;
}

interface CallMessage {
  /** Marks our messages among those of `node:cluster` and of stores. */
  readonly gateway: 'question' | 'answer' | 'failure';
  readonly id: number;
  readonly what: CallName;
  readonly text: string;
}

interface Asker {
  resolve(text: string): void;
  reject(error: Error): void;
}

export class Calls {
  private readonly channel: Channel;
  private readonly askers = new Map<number, Asker>();
  private asked = 0;

  /** `answer` says what is asked here; what it throws is thrown at the other end. */
  constructor(channel: Channel, answer: (what: CallName, text: string) => Promise<string>) {
    this.channel = channel;
    channel.on('message', (given) => {
      const { gateway, id, what, text } = Object(given) as CallMessage;
      if (gateway === 'question') {
        const reply = (kind: CallMessage['gateway'], say: string): void =>
          this.send({ gateway: kind, id, what, text: say });
        answer(what, text).then(
          (say) => reply('answer', say),
          (error) => reply('failure', error instanceof Error ? error.message : String(error)),
        );
      } else if (gateway === 'answer') this.settle(id)?.resolve(text);
      else if (gateway === 'failure') this.settle(id)?.reject(new Error(text));
    });
  }

  /** Does not settle while the other end says nothing; see `end`. */
  ask(what: CallName, text = ''): Promise<string> {
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      this.askers.set(id, { resolve, reject });
      this.send({ gateway: 'question', id, what, text });
    });
  }

  /** The other end is gone. */
  end(): void {
    for (const id of [...this.askers.keys()]) this.settle(id)?.reject(new Error('the process is gone'));
  }

  private settle(id: number): Asker | undefined {
    const asker = this.askers.get(id);
    this.askers.delete(id);
    return asker;
  }

  private send(message: CallMessage): void {
    // A channel that is closed says so by the end of the process.
    this.channel.send?.(message, () => {});
  }
}
