/** Whether a server and a client see what they see behind the reference. */
import { expect } from 'vitest';
import { differs } from './differences.js';
import type { Immediate, Side } from './fake-envoy.js';
import type { Json } from './json.js';

const destination = 'x-gateway-destination-endpoint';
const droppedReason = 'x-llm-d-request-dropped-reason';
/** The bytes of a body that a vector names by their number alone. */
const unknownByte = '\0';

const isControl = (name: string): boolean => /^x-(llm-d|gateway|slo)-/.test(name) && name !== destination;

export function seesHeaders(side: Side, { header_mutation }: Json, fill: (text: string) => string): void {
  expect(side.seen, 'headers').toBeDefined();
  for (const { key, raw_value } of header_mutation?.set_headers ?? []) {
    const name = key.toLowerCase();
    if (name === 'x-went-into-resp-headers') {
      differs('x-went-into-resp-headers is not set');
      continue;
    }
    const got = side.seen?.get(name);
    if (isControl(name)) {
      differs('control headers are taken off');
      expect(got, name).toBeUndefined();
    } else if (name === 'traceparent') {
      differs('spans are the proxy’s');
      expect(got).toBe(side.sent.get(name));
    } else if (raw_value === '{uuid}' || raw_value === '*') expect(got, name).toMatch(/./);
    // The reference writes bodies anew, which changes their length; that of ours is compared with the body.
    else if (name !== 'content-length') expect(got, name).toBe(fill(raw_value));
  }
}

export function seesRefusal(immediate: Immediate | undefined, { status, headers, body }: Json): void {
  expect(immediate?.status).toBe(status);
  const told = headers?.set_headers?.find(({ key }: Json) => key === droppedReason)?.raw_value;
  const got = immediate?.headers.get(droppedReason);
  if (got === 'evicted-priority') differs('evicted-priority');
  if (told !== undefined) expect(got?.replace('evicted-priority', 'evicted')).toBe(told);
  if (body !== immediate?.body) differs('texts of refusals');
}

/** Adds a piece to what the reference sent. Bodies are compared when they end, and until then nothing may be missing. */
export async function seesBody(
  bodies: Map<Side, string>,
  side: Side,
  { body_mutation }: Json,
  until: (check: () => void) => Promise<void>,
): Promise<void> {
  const { body = '', body_base64, body_bytes, end_of_stream } = body_mutation.streamed_response;
  const bytes = body_base64 === undefined ? Buffer.from(body) : Buffer.from(body_base64, 'base64');
  const piece = body_bytes === undefined ? bytes.toString('latin1') : unknownByte.repeat(body_bytes);
  const whole = (bodies.get(side) ?? '') + piece;
  bodies.set(side, whole);
  if (end_of_stream) await until(() => expect(side.isOver).toBe(true));
  else await until(() => expect(side.body.length).toBeGreaterThanOrEqual(whole.length));
  if (!end_of_stream || side.body === whole) return;
  if (whole.includes(unknownByte)) expect(side.body.length).toBe(whole.length);
  else expect(parsed(side.body)).toEqual(parsed(whole));
  differs('bytes of a body stay');
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
