/** Whether a model server refused a request because it has too much to do. */

/** An answer of a model server, as far as it was read. */
export interface WorkerAnswer {
  readonly status: number;
  /** The body of an error: plain text, or JSON with the message as `message`, `error` or `error.message`. */
  readonly body?: string | undefined;
}

/**
 * True for a refusal because of load, after which the endpoint should get no work for a moment: 503 and 529, and any error whose message
 * begins with `Server overloaded:`. A message that begins with `Server unavailable:` tells of a worker that is gone, which is another matter.
 * Source: Dynamo, request rejection.
 */
export function isOverloadRefusal({ status, body = '' }: WorkerAnswer): boolean {
  if (!(status >= 400)) return false;
  const message = messageIn(body).trimStart();
  if (message.startsWith('Server overloaded:')) return true;
  return (status === 503 || status === 529) && !message.startsWith('Server unavailable:');
}

function messageIn(body: string): string {
  try {
    return textOf(JSON.parse(body)) ?? body;
  } catch {
    return body;
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return undefined;
  return textOf(Reflect.get(value, 'message')) ?? textOf(Reflect.get(value, 'error'));
}
