/** Finds the sender of a request by its key. Keys are compared by digest, in constant time, whichever is right. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { AuthConfig, SenderConfig } from '../settings/gateway-config.js';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** True when both texts are the same. */
export const isSameSecret = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));

/** The key in `Authorization: Bearer …`, in `x-api-key` or in `api-key`, as clients of model APIs send it. */
export function keyOf(headers: IncomingHttpHeaders): string | undefined {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
  const other = headers['x-api-key'] ?? headers['api-key'];
  return bearer ?? (typeof other === 'string' && other !== '' ? other : undefined);
}

export class Senders {
  private readonly known: readonly (readonly [Buffer, SenderConfig])[];
  private readonly anonymous: SenderConfig | undefined;

  constructor({ keys, anonymous }: AuthConfig) {
    this.known = keys.map((sender) => [digest(sender.key), sender]);
    this.anonymous = anonymous;
  }

  /** Keys are for this gateway, and must not reach the servers behind it. */
  get ownsKeys(): boolean {
    return this.known.length > 0;
  }

  /** False for a sender of another configuration. O(keys). */
  has(sender: SenderConfig): boolean {
    return sender === this.anonymous || this.known.some(([, known]) => known === sender);
  }

  /** Undefined when the request must be rejected. O(keys). */
  identify(headers: IncomingHttpHeaders): SenderConfig | undefined {
    const key = this.known.length === 0 ? undefined : keyOf(headers);
    if (key === undefined) return this.anonymous;
    const given = digest(key);
    let found: SenderConfig | undefined;
    for (const [expected, sender] of this.known) if (timingSafeEqual(given, expected)) found = sender;
    return found ?? this.anonymous;
  }
}
