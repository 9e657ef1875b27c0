/**
 * Signs of life. The answer of a request that waits begins before anybody knows what it will be.
 *
 *     silent ── after ──► 200, a sign ── every ──► a sign … ── the host's head, its first bytes ──► events: as they come
 *                                                                                              └──► else: one event
 *
 * Invariant: the host finds a response that has not begun; its head is never sent, and no sign is between its bytes.
 */
import type { LifeSigns } from '../http/life-signs.js';
import type { NodeResponse } from './node-request.js';
import { callBack } from './respond.js';

/** Bytes of an answer that becomes one event; the rest is left out. */
const mostKept = 1_048_576;

interface Owner {
  /** A head was sent, and signs may follow it. */
  readonly isSilent: boolean;
  setOwnHeaders(): void;
}

/** Until the response is over or its first bytes come. */
export function showLife(res: NodeResponse, signs: LifeSigns, owner: Owner): void {
  let write: ((text: string) => boolean) | undefined;
  let isFlowing = true;
  let timer = setTimeout(look, signs.afterMs);
  const stop = (): void => clearTimeout(timer);
  res.once('close', stop);

  function look(): void {
    const hasHead = res.headersSent && write === undefined;
    if (res.writableEnded || res.destroyed || (hasHead && !(owner.isSilent && signs.kind === 'events'))) return;
    timer = setTimeout(look, signs.everyMs);
    // A client that does not read is not written to.
    if (!isFlowing) return;
    if (signs.kind !== 'processing') isFlowing = (write ?? start())(signs.sign());
    else if ('stream' in res) res.stream.additionalHeaders({ ':status': 102 });
    else res.writeProcessing();
    if (!isFlowing) res.once('drain', () => (isFlowing = true));
    signs.tell('sign');
  }

  function start(): (text: string) => boolean {
    if (res.headersSent) return (text) => Reflect.apply(res.write, res, [text]);
    owner.setOwnHeaders();
    signs.tell('begun');
    write = begin(res, signs, stop);
    return write;
  }
}

/** Sends a head, and writes to the client behind the host's back. `stop` is called at the host's first bytes. */
function begin(res: NodeResponse, signs: LifeSigns, stop: () => void): (text: string) => boolean {
  const { write, end } = res;
  const head = new Map<string, unknown>();
  let isTaken = false;
  /** Set for an answer that cannot go on as it comes. */
  let instead: ReturnType<LifeSigns['instead']>;
  const kept: Buffer[] = [];
  let size = 0;

  function take(): void {
    if (isTaken) return;
    isTaken = true;
    instead = signs.instead(res.statusCode, (name) => head.get(name));
    // The client cannot be told any more: who uploads into a refusal is cut.
    const { socket } = res;
    if (head.get('connection') === 'close') res.once('finish', () => socket?.end());
  }

  function keep(chunk: unknown): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    if (!(bytes instanceof Uint8Array)) return;
    if (size < mostKept) kept.push(Buffer.from(bytes.subarray(0, mostKept - size)));
    size += bytes.length;
  }

  res.removeHeader('content-length');
  const type = signs.kind === 'events' ? 'text/event-stream' : 'application/json';
  res.writeHead(200, { 'content-type': type, 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
  Object.defineProperty(res, 'headersSent', { get: () => isTaken, configurable: true });
  const headers = headersIn(head, res);
  Object.assign(res, headers, {
    flushHeaders: take,
    write(...given: unknown[]) {
      take();
      stop();
      if (instead === undefined) return Reflect.apply(write, res, given);
      keep(given[0]);
      callBack(given);
      return true;
    },
    end(...given: unknown[]) {
      take();
      stop();
      if (instead === undefined) return Reflect.apply(end, res, given);
      keep(given[0]);
      const text = instead(Buffer.concat(kept).toString());
      // HTTP/2 writes by the method that is replaced here.
      instead = undefined;
      return Reflect.apply(end, res, [text, () => callBack(given)]);
    },
    writeHead(status: number, ...rest: unknown[]) {
      const given = rest.at(-1);
      headers.setHeaders(Array.isArray(given) ? pairsIn(given) : Object.entries(Object(given)));
      res.statusCode = status;
      take();
      return res;
    },
  });
  return (text) => Reflect.apply(write, res, [text]);
}

/** The methods of a response that have to do with its head. */
function headersIn(head: Map<string, unknown>, res: NodeResponse) {
  const set = (all: Iterable<readonly [string, unknown]>): NodeResponse => {
    for (const [name, value] of all) if (value !== undefined) head.set(name.toLowerCase(), value);
    return res;
  };
  return {
    setHeaders: set,
    setHeader: (name: string, value: unknown) => set([[name, value]]),
    appendHeader: (name: string, value: unknown) => set([[name, [head.get(name.toLowerCase()) ?? [], value].flat()]]),
    removeHeader: (name: string) => void head.delete(name.toLowerCase()),
    getHeader: (name: string) => head.get(name.toLowerCase()),
    hasHeader: (name: string) => head.has(name.toLowerCase()),
    getHeaders: () => Object.fromEntries(head),
    getHeaderNames: () => [...head.keys()],
    writeContinue() {},
    writeProcessing() {},
    writeEarlyHints() {},
  };
}

/** A list of pairs, or of names and values by turns. */
function pairsIn(given: readonly unknown[]): [string, unknown][] {
  const flat = given.flat();
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[String(name), flat[i + 1]]] : []));
}
