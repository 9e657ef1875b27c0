/**
 * Streams that bring no content in time, over real sockets. The gateway's time stands still but for what a test lets
 * pass, whatever the load.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { until } from '../../integration/support/until.js';
import { fileOf, startGateway } from '../support/gateway.js';
import { type Answer, serve, sse, startUpstream, type Upstream } from '../support/upstream.js';

const chat = { model: 'llama', stream: true, messages: [{ role: 'user', content: 'hello' }] };
const firstTokenMs = 5000;
const timeouts = { firstToken: '5s', firstTokenByModel: { o3: '10m' } };
const role = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n';

const hang: Answer = () => {};
/** The head of a stream, and no content. */
const think: Answer = ({ res }) => {
  res.setHeader('content-type', 'text/event-stream').write(`: keep-alive\n\n${role}`);
};

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** The server has a request; the limit was set before that was sent. */
async function isAsked(server: Upstream): Promise<void> {
  await until('the server is asked', () => server.received.length === 1);
}

/** No token comes from this server in time. */
async function isLate(server: Upstream): Promise<void> {
  await isAsked(server);
  vi.advanceTimersByTime(firstTokenMs);
}

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
    const answer = post(chat);
    await isAsked(slow);
    vi.advanceTimersByTime(firstTokenMs - 1);
    expect(log.filter(({ event }) => event === 'retry')).toEqual([]);
    vi.advanceTimersByTime(1);
    const response = await answer;
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
      for (const server of upstreams) await isLate(server);
      const last = upstreams[servers - 1]!;
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
    const answer = (await startGateway(file)).post(chat);
    for (const server of slow) await isLate(server);
    expect((await answer).status).toBe(200);
    expect([...slow, other].map(({ received }) => received.length)).toEqual([1, 1, 1]);
  });

  it.each([
    ['a model with a time of its own', { ...chat, model: 'o3' }],
    ['an answer in one piece', { ...chat, stream: false }],
  ])('is no matter for %s', async (_what, body) => {
    const slow = await startUpstream(hang);
    const other = await startUpstream();
    const { post } = await startGateway(fileOf([slow.url, other.url], { timeouts }, 1));
    const answer = post(body);
    await isLate(slow);
    slow.received[0]!.res.end('served late');
    expect(await (await answer).text()).toBe('served late');
    expect([slow.received.length, other.received.length]).toEqual([1, 0]);
  });

  it('is one that ends, refuses or fails, too: what it has is passed on', async () => {
    const answers: readonly (readonly [Answer, number, string])[] = [
      [
        ({ res }) => res.setHeader('content-type', 'text/event-stream').end('data: [DONE]\n\n'),
        200,
        'data: [DONE]\n\n',
      ],
      [({ res }) => res.writeHead(400).end('{"error":"no"}'), 400, '{"error":"no"}'],
      [serve, 200, `${sse('ser')}${sse('ved')}data: [DONE]\n\n`],
    ];
    for (const [answer, status, text] of answers) {
      const { post } = await startGateway(
        fileOf(
          [(await startUpstream(answer)).url, (await startUpstream(hang)).url],
          { timeouts: { firstToken: '5m' } },
          1,
        ),
      );
      const response = await post(chat);
      expect([response.status, await response.text()]).toEqual([status, text]);
    }
  });
});
