/** An answer that tells when its body is over: read, cancelled or broken off. */

/** The same answer; `end` is called once, at once where there is no body. It reads ahead of nobody. */
export function onBodyEnd(response: Response, end: () => void): Response {
  // React Native has no bodies as streams.
  if (!response.body) {
    end();
    return response;
  }
  const reader = response.body.getReader();
  let isOver = false;
  const over = (): void => {
    if (!isOver) end();
    isOver = true;
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) {
            controller.enqueue(value);
            return;
          }
          over();
          controller.close();
        } catch (error) {
          over();
          controller.error(error);
        }
      },
      cancel(reason) {
        over();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers, url, redirected } = response;
  return Object.defineProperties(new Response(body, { status, statusText, headers }), {
    url: { value: url },
    redirected: { value: redirected },
  });
}
