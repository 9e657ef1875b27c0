/** Streams that bring no content in time, over real sockets. */
import { describe, expect, it } from 'vitest';
import { until } from '../integration/support/until.js';
import { errorOf, fileOf, startGateway } from './support/gateway.js';
import { type Answer, serve, sse, startUpstream } from './support/upstream.js';

const chat = { model: 'llama', stream: true, messages: [{ role: 'user', content: 'hello' }] };
const timeouts = { firstToken: '250ms', firstTokenByModel: { o3: '10m' } };
const role = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n';

const hang: Answer = () => {};
/** The head of a stream, and no content. */
const think: Answer = ({ res }) => {
  res.setHeader('content-type', 'text/event-stream').write(`: keep-alive\n\n${role}`);
};

describe('a stream without a content token in time', () => {
  it.each([
    ['no answer', hang],
    ['comments and a role alone', think],
  ])('is asked of another server, and the client gets nothing of the first: %s', async (_what, late) => {
    const slow = await startUpstream(late);
    const other = await startUpstream();
    const { post, gateway, log } = await startGateway(fileOf([slow.url, other.url], { timeouts }, 1));
    let wasLeft = false;
    slow.server.on('request', (_req, res) => res.on('close', () => (wasLeft = !res.writableFinished)));
    const response = await post(chat);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(`${sse('ser')}${sse('ved')}data: [DONE]\n\n`);
    expect([slow.received.length, other.received.length]).toEqual([1, 1]);
    await until('the slow server was left', () => wasLeft);
    await until('every seat came back', () => gateway.flow.stats().inFlight === 0);
    expect(log.some(({ event, fields }) => event === 'retry' && fields?.code === 'first_token_timeout')).toBe(true);
  });

  it('waits where no other server is left, or the last attempt is made', async () => {
    for (const servers of [1, 2]) {
      const upstreams = await Promise.all(Array.from({ length: servers }, () => startUpstream(think)));
      const { post } = await startGateway(
        fileOf(
          upstreams.map(({ url }) => url),
          { timeouts },
          1,
        ),
      );
      const answer = post(chat);
      const last = upstreams[servers - 1]!;
      await until('the last server was asked', () => last.received.length === 1);
      await new Promise((resolve) => setTimeout(resolve, 400));
      last.received[0]!.res.end(sse('served'));
      expect(await (await answer).text()).toBe(`: keep-alive\n\n${role}${sse('served')}`);
      expect(upstreams.map(({ received }) => received.length)).toEqual(upstreams.map(() => 1));
    }
  });

  it('goes on as often as the file says, each time to a server that it has not been at', async () => {
    const slow = [await startUpstream(think), await startUpstream(hang)];
    const other = await startUpstream();
    const file = fileOf(
      [...slow, other].map(({ url }) => url),
      { timeouts, retry: { max: 2 } },
      1,
    );
    expect((await (await startGateway(file)).post(chat)).status).toBe(200);
    expect([...slow, other].map(({ received }) => received.length)).toEqual([1, 1, 1]);
  });

  it.each([
    ['a model with a time of its own', { ...chat, model: 'o3' }],
    ['an answer in one piece', { ...chat, stream: false }],
  ])('is no matter for %s', async (_what, body) => {
    const slow = await startUpstream(hang);
    const { post } = await startGateway(
      fileOf([slow.url, (await startUpstream()).url], { timeouts: { ...timeouts, firstByte: '500ms' } }, 1),
    );
    expect(await errorOf(await post(body))).toMatchObject({ status: 504, code: 'upstream_timeout' });
    expect(slow.received).toHaveLength(1);
  });

  it('is one that ends, refuses or fails, too: what it has is passed on', async () => {
    const answers: readonly (readonly [Answer, number, string])[] = [
      [({ res }) => res.setHeader('content-type', 'text/event-stream').end('data: [DONE]\n\n'), 200, 'data: [DONE]\n\n'],
      [({ res }) => res.writeHead(400).end('{"error":"no"}'), 400, '{"error":"no"}'],
      [serve, 200, `${sse('ser')}${sse('ved')}data: [DONE]\n\n`],
    ];
    for (const [answer, status, text] of answers) {
      const { post } = await startGateway(
        fileOf([(await startUpstream(answer)).url, (await startUpstream(hang)).url], { timeouts: { firstToken: '5m' } }, 1),
      );
      const response = await post(chat);
      expect([response.status, await response.text()]).toEqual([status, text]);
    }
  });
});
