/** An answer with another body in the place of its own. Everything else stays as the platform's fetch has it. */

/** Of the answer's own realm or package, so that `instanceof` holds there. */
export function withBody(answer: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, ok, headers, url, redirected, type } = answer;
  const isReal = Object.prototype.toString.call(answer) === '[object Response]';
  const Own: typeof Response = isReal ? Reflect.get(answer, 'constructor') : Response;
  return alike(new Own(body, { headers }), { status, statusText, ok, headers, url, redirected, type });
}

/** By properties, because no constructor takes the address, nor every status. */
function alike(answer: Response, told: Readonly<Record<string, unknown>>): Response {
  const { clone } = answer;
  const own = Object.fromEntries(Object.entries(told).map(([name, value]) => [name, { value }]));
  return Object.defineProperties(answer, { ...own, clone: { value: () => alike(clone.call(answer), told) } });
}
