/** A login that every browser knows: 401 makes it ask for name and password, and send them with all that follows. */
import { GcraWindow } from '../../base/gcra-window.js';
import { headerText } from '../../base/headers/header-source.js';
import { putLatest } from '../../base/put.js';
import * as s from '../../base/schema/schema.js';
import { type Clock, realClock } from '../../index.js';
import type { InspectorRequest } from './options.js';

export interface BasicLoginOptions {
  /** The name does not matter; the password alone decides. At least one character. */
  readonly password: string;
  /** The name that the browser shows. @default 'headgate' */
  readonly realm?: string | undefined;
  /** @default the platform's monotonic clock */
  readonly clock?: Clock | undefined;
}

const optionsSchema = s.object({
  password: s.text('a password'),
  realm: s.optional(s.text('a name without quotes'), 'headgate'),
  clock: s.optional(s.clock(), realClock),
});

/**
 * An `authorize` that asks for a password by HTTP's basic authentication; compared in constant time. An address that
 * was wrong ten times gets 429, and one more try in six seconds; all addresses together have a hundred, and five more
 * in a second. Use it behind TLS, or on an address that only operators reach.
 * @throws FlowConfigError when there is no password
 * @example const page = inspector(flow, { authorize: basicLogin({ password: process.env.INSPECTOR_PASSWORD }) });
 */
export function basicLogin(options: BasicLoginOptions): (request: InspectorRequest) => Promise<boolean | Response> {
  const { password, realm, clock } = s.parse(optionsSchema, options, 'basicLogin');
  const attempts = new LoginAttempts();
  const challenge = {
    'www-authenticate': `Basic realm="${realm.replace(/[^\w .-]/g, '')}", charset="UTF-8"`,
    'cache-control': 'no-store',
  };
  return async ({ headers, address = '' }) => {
    const given = passwordIn(headerText(headers, 'authorization'));
    if (given !== undefined) {
      const from = networkOf(address);
      const waitMs = attempts.take(from, clock.now());
      if (waitMs > 0) {
        const later = { 'retry-after': String(Math.ceil(waitMs / 1_000)), 'cache-control': 'no-store' };
        return new Response('Too many wrong passwords.', { status: 429, headers: later });
      }
      if (await isSame(given, password)) {
        attempts.giveBack(from, clock.now());
        return true;
      }
    }
    return new Response('The password is missing or wrong.', { status: 401, headers: challenge });
  };
}

/** An IPv6 client has a network of 64 bits to itself; an IPv4 address may be written as one of IPv6. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address.replace(/^.*:/, '');
  const [head = '', tail] = address.split('%', 1)[0]!.split('::');
  const groups = head.split(':');
  const zeros = tail === undefined ? [] : ['0', '0', '0', '0'];
  return [...(head === '' ? [] : groups), ...zeros].slice(0, 4).join(':');
}

/** Of `Basic base64(name:password)`. */
function passwordIn(authorization: string | undefined): string | undefined {
  const encoded = /^basic +([\w+/=]+) *$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return undefined;
  try {
    const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    const pair = new TextDecoder().decode(bytes);
    return pair.slice(pair.indexOf(':') + 1);
  } catch {
    return undefined;
  }
}

/** Compares digests, so that neither length nor beginning shows in the time that it takes. */
async function isSame(a: string, b: string): Promise<boolean> {
  const digest = async (words: string): Promise<Uint8Array> =>
    new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(words)));
  const [left, right] = [await digest(a), await digest(b)];
  let difference = 0;
  for (let index = 0; index < left.length; index++) difference |= (left[index] as number) ^ (right[index] as number);
  return difference === 0;
}

const mostAddresses = 1_000;

/** How often a password may be tried, by address and in all: leaky buckets. Invariant: at most `mostAddresses`. */
class LoginAttempts {
  /** The longest untouched first. */
  private readonly byAddress = new Map<string, GcraWindow>();
  private readonly ofAll = new GcraWindow(5, 1_000, 100);

  /** Takes a try, and returns 0; or, where none may be taken, how long to wait, ms. */
  take(address: string, nowMs: number): number {
    const own = this.byAddress.get(address) ?? new GcraWindow(1, 6_000, 10);
    const waitMs = Math.max(own.roomAtMs(1, nowMs), this.ofAll.roomAtMs(1, nowMs)) - nowMs;
    if (waitMs > 0) return waitMs;
    own.take(1, nowMs);
    this.ofAll.take(1, nowMs);
    putLatest(this.byAddress, address, own, mostAddresses);
    return 0;
  }

  /** The password was right: the try was none. */
  giveBack(address: string, nowMs: number): void {
    const own = this.byAddress.get(address);
    own?.giveBack(1, nowMs);
    if (own?.used(nowMs) === 0) this.byAddress.delete(address);
    this.ofAll.giveBack(1, nowMs);
  }
}
