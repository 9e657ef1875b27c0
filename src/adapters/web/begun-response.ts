/** Signs of life where there is no Node: the response begins before that of the handler is there. */
import { realClock } from '../../base/clock.js';
import { pause } from '../../base/pause.js';
import { FlowControlError } from '../../index.js';
import type { LifeSigns } from '../http/life-signs.js';

interface Owner {
  readonly signs: LifeSigns | undefined;
  /** Of an answer that began: resolves once the runtime has it. */
  early: Promise<unknown> | undefined;
  /** The client has left an answer that began. */
  leave(): void;
}

/** The answer itself, if it comes in time; else one that has begun, and goes on with it. */
export async function showingLife(answer: Promise<Response>, owner: Owner): Promise<Response> {
  const { signs } = owner;
  if (!signs || signs.kind === 'processing') return answer;
  const late = new AbortController();
  const early = await Promise.race([answer, pause(signs.afterMs, realClock, late.signal)]).finally(() => late.abort());
  if (early) return early;
  signs.tell('begun');
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const write = (text: string): Promise<void> => writer.write(new TextEncoder().encode(text)).catch(() => {});
  const sign = async (): Promise<void> => {
    // A client that does not read is not written to.
    if ((writer.desiredSize ?? 0) <= 0) return;
    signs.tell('sign');
    await write(signs.sign());
  };
  const signing = setInterval(sign, signs.everyMs);
  let isAnswered = false;
  writer.closed.catch(() => isAnswered || owner.leave()).finally(() => clearInterval(signing));
  // A middleware in front may throw it away, unread.
  owner.early = Promise.race([sign(), pause(1_000, realClock, undefined)]);
  const goOn = async (): Promise<void> => {
    let isBroken = false;
    const response = await answer.catch((error: unknown) => {
      if (error instanceof FlowControlError) return error.getResponse();
      isBroken = true;
      return new Response(null, { status: 500 });
    });
    isAnswered = true;
    const instead = signs.instead(response.status, (name) => response.headers.get(name));
    if (instead) await write(instead(await response.text()));
    writer.releaseLock();
    // The client is told first, the runtime then.
    if (isBroken) await pause(0, realClock, undefined).then(() => answer);
    await (response.bodyUsed ? writable.close() : (response.body?.pipeTo(writable) ?? writable.close()));
  };
  goOn().catch((error: unknown) => writable.abort(error).catch(() => {}));
  const type = signs.kind === 'events' ? 'text/event-stream' : 'application/json';
  return new Response(readable, { headers: { 'content-type': type, 'cache-control': 'no-store' } });
}
