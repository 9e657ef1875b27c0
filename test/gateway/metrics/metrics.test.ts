/** What `/metrics` of the gateway says, and how much of it a client can make. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { until } from '../../integration/support/until.js';
import { fileOf, type Started, startGateway } from '../support/gateway.js';
import { type Answer, serve, sse, startUpstream } from '../support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };
const overloaded: Answer = ({ res }) => res.writeHead(503).end('{"message":"Server overloaded: queue full"}');

async function scrape({ gateway }: Started): Promise<string> {
  return (await fetch(`${gateway.url}/metrics`)).text();
}

const ended = ({ log }: Started, count: number) =>
  until('the requests have ended', () => log.filter(({ event }) => event === 'request').length >= count);

describe('the metrics of the gateway', () => {
  it('count answers by status and by who made them', async () => {
    const upstream = await startUpstream((received, index) =>
      index === 0 ? serve(received, index) : received.res.writeHead(418).end(),
    );
    const started = await startGateway(fileOf([upstream.url]));
    await (await started.post(chat)).text();
    await (await started.post(chat)).text();
    await (await started.post('{')).text();
    started.gateway.flow.reconfigure({ limits: { maxRequests: 0 }, saturationDetector: () => 2 });
    await (await started.post(chat)).text();
    await ended(started, 4);
    const text = await scrape(started);
    for (const line of [
      'headgate_http_responses_total{status="200",source="upstream"} 1',
      'headgate_http_responses_total{status="418",source="upstream"} 1',
      'headgate_http_responses_total{status="400",source="gateway"} 1',
      'headgate_http_responses_total{status="429",source="flow_control"} 1',
      'headgate_upstream_requests_total{endpoint="u0"} 2',
    ]) {
      expect(text).toContain(line);
    }
  });

  it('tell of each server what it refused, what it failed at, and what went elsewhere', async () => {
    const full = await startUpstream(overloaded);
    const broken = await startUpstream(({ res }) => res.destroy());
    const started = await startGateway(fileOf([full.url, broken.url], {}, 4));
    expect((await started.post(chat)).status).toBe(502);
    await ended(started, 1);
    const text = await scrape(started);
    expect(text).toContain('headgate_upstream_refusals_total{endpoint="u0"} 1');
    expect(text).toContain('headgate_upstream_retries_total{endpoint="u0"} 1');
    expect(text).toContain('headgate_upstream_failures_total{endpoint="u1",code="upstream_failed"} 1');
    expect(text).toContain('headgate_http_responses_total{status="502",source="gateway"} 1');
  });

  it('tell the time to the first token, tokens by tenant, and what runs of each tenant', async () => {
    let go = (): void => {};
    const upstream = await startUpstream((received, index) => {
      if (index === 0) return serve(received, index);
      received.res.setHeader('content-type', 'text/event-stream').write(sse('first'));
      go = () => received.res.end('data: [DONE]\n\n');
    });
    const started = await startGateway(
      fileOf([upstream.url], { auth: { anonymous: { tenant: 'acme', priority: 7 } } }),
    );
    await (await started.post(chat)).text();
    await ended(started, 1);
    const running = await started.post({ ...chat, stream: true });
    const during = await scrape(started);
    expect(during).toMatch(
      /flow_control_flow_in_flight_requests\{fairness_id="acme",priority="7",inference_pool=""\} 1/,
    );
    go();
    await running.text();
    await ended(started, 2);
    const text = await scrape(started);
    expect(text).toMatch(/headgate_tokens_total\{fairness_id="acme",kind="prompt"\} 3/);
    expect(text).toMatch(/headgate_tokens_total\{fairness_id="acme",kind="completion"\} 3/);
    expect(text).toMatch(/headgate_time_to_first_token_seconds_count\{priority="7",model_name="llama"\} 1/);
    expect(text).not.toMatch(/flow_in_flight_requests\{/);
  });

  it('count streams that were cut, by who cut them', async () => {
    const upstream = await startUpstream(({ res }, index) => {
      res.setHeader('content-type', 'text/event-stream').write(sse('first'), () => index === 0 && res.destroy());
    });
    const started = await startGateway(fileOf([upstream.url]));
    await (await started.post({ ...chat, stream: true })).text().catch(() => {});
    const leaving = new AbortController();
    const second = await started.post({ ...chat, stream: true }, { signal: leaving.signal });
    leaving.abort();
    await second.text().catch(() => {});
    await ended(started, 2);
    const text = await scrape(started);
    expect(text).toContain('headgate_streams_cut_total{by="upstream"} 1');
    expect(text).toContain('headgate_streams_cut_total{by="client"} 1');
    expect(text).toContain('headgate_streams_cut_total{by="timeout"} 0');
  });

  it('tell how the process is, however many gateways it has', async () => {
    const upstream = await startUpstream();
    const both = [await startGateway(fileOf([upstream.url])), await startGateway(fileOf([upstream.url]))];
    for (const started of both) {
      const text = await scrape(started);
      for (const name of [
        'process_cpu_seconds_total',
        'nodejs_eventloop_lag_p99_seconds',
        'nodejs_heap_size_used_bytes',
      ]) {
        expect(text.match(new RegExp(`^${name} `, 'gm'))).toHaveLength(1);
      }
    }
  });
});

describe('/demand', () => {
  it('tells autoscalers what is asked for, and asks strangers for the token', async () => {
    const upstream = await startUpstream();
    const { gateway } = await startGateway(fileOf([upstream.url]));
    const open = await fetch(`${gateway.url}/demand`);
    expect([open.status, await open.json()]).toEqual([200, expect.objectContaining({ requests: 0, endpoints: 1 })]);
    const keys = [{ key: 'sk-1', tenant: 'acme' }];
    const guarded = await startGateway(fileOf([upstream.url], { auth: { keys }, admin: { token: 'sk-admin' } }));
    const ask = (init: RequestInit = {}) => fetch(`${guarded.gateway.url}/demand`, init);
    expect((await ask()).status).toBe(401);
    expect((await ask({ headers: { authorization: 'Bearer sk-admin' } })).status).toBe(200);
  });
});

describe('docs/gateway.md', () => {
  it('has every metric of the gateway with its type and labels', async () => {
    const page = readFileSync(new URL('../../../docs/gateway.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `(headgate_\w+)` \| (\w+) \| (.*?) \|/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    const started = await startGateway(fileOf([(await startUpstream()).url]));
    const types = [...(await scrape(started)).matchAll(/^# TYPE (headgate_\w+ \w+)$/gm)].map(([, type]) => type);
    expect(rows).toEqual(types);
  });
});

describe('labels of models', () => {
  it('are those of the file and those that a server has answered for; what a client makes up is one label', async () => {
    const upstream = await startUpstream((received, index) => {
      if (JSON.parse(received.body).model === 'llama') serve(received, index);
      else received.res.writeHead(404).end('{"error":{"message":"no such model"}}');
    });
    const started = await startGateway(fileOf([upstream.url], { models: { list: ['listed'] } }, 50));
    await (await started.post(chat)).text();
    await ended(started, 1);
    for (const model of ['llama', 'listed']) await (await started.post({ ...chat, model })).text();
    for (let index = 0; index < 300; index++) await (await started.post({ ...chat, model: `made-up-${index}` })).text();
    await ended(started, 303);
    const text = await scrape(started);
    const models = new Set([...text.matchAll(/[{,]model_name="([^"]*)"/g)].map(([, model]) => model));
    expect([...models].sort()).toEqual(['listed', 'llama', 'other']);
  });
});
