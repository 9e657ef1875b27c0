/** Requests whose size or rank cannot be: each is told or taken for something bounded, and nothing of it stays. */
import { expect, it } from 'vitest';
import { until } from '../integration/support/until.js';
import { dataUrl, picture } from './sizes/pictures.js';
import { fileOf, startGateway } from './support/gateway.js';
import { startUpstream } from './support/upstream.js';

const keys = [
  { key: 'plain', tenant: 'plain', priority: 3, maxPriority: 50 },
  { key: 'proxy', tenant: 'proxy', trusted: true },
];
const objectives = { premium: 100, batch: -10 };
const serviceTiers = { priority: 'premium', flex: 'batch' };

async function started() {
  const upstream = await startUpstream();
  const server = { id: 'u', url: upstream.url, priority: 'dynamo' };
  const more = {
    auth: { keys },
    objectives,
    serviceTiers,
    scrape: { enabled: false },
    limits: { maxRequestBytes: '16Mi' },
  };
  const { post, gateway, log } = await startGateway(fileOf([server], more, 4));
  const bands: number[] = [];
  gateway.flow.on('dispatched', ({ item }) => bands.push(item.priority));
  let asked = 0;
  /** The status, the line in the log, and the body that the server got, if it got one. */
  const ask = async (body: string, key = 'plain') => {
    const { length } = upstream.received;
    const answer = await post(body, { headers: { authorization: `Bearer ${key}` } });
    const text = await answer.text();
    asked += 1;
    const lines = () => log.filter(({ event }) => event === 'request');
    await until('it is logged', () => lines().length === asked);
    const { waiting, inFlight, inFlightTokens } = gateway.flow.stats();
    expect([waiting, inFlight, inFlightTokens]).toEqual([0, 0, 0]);
    const passed = upstream.received[length]?.body;
    return { status: answer.status, text, line: lines().at(-1)?.fields, passed, band: bands.at(-1) };
  };
  return { ask, gateway };
}

const chat = (...content: unknown[]): string =>
  JSON.stringify({ model: 'qwen', max_tokens: 9, messages: [{ role: 'user', content }] });
const image = (url: string): unknown => ({ type: 'image_url', image_url: { url } });
function lying(): string {
  const file = picture('png');
  file.writeUInt32BE(2 ** 31, 16);
  return dataUrl('image/png', file);
}
/** Levels of JSON that a result within a result adds. */
const nested = (levels: number): unknown =>
  levels === 0 ? 'x' : [{ type: 'tool_result', tool_use_id: 't', content: nested(levels - 1) }];

it.each<[string, () => string, number, RegExp]>([
  ['with a picture of 2^31 px', () => chat(image(lying())), 200, /^9\+1x999\+9$/],
  [
    'whose 8 MiB of a picture never close',
    () => chat(image('x')).slice(0, -8) + 'A'.repeat(2 ** 23),
    400,
    /^undefined$/,
  ],
  [
    'of 10,000 parts',
    () => chat(...Array.from({ length: 10_000 }, () => image('https://a/b'))),
    200,
    /^\d{5}\+1024x999\+9$/,
  ],
  [
    'of 10,000 texts',
    () => chat(...Array.from({ length: 10_000 }, () => ({ type: 'text', text: 'abcd' }))),
    200,
    /^10009\+9$/,
  ],
  ['with 100 results of tools in each other', () => chat(...(nested(100) as unknown[])), 200, /^\d{1,3}\+9$/],
  ['with 200 of them', () => chat(...(nested(200) as unknown[])), 400, /^undefined$/],
])('a request %s', async (_what, make, status, estimate) => {
  const { ask } = await started();
  const answer = await ask(make());
  expect(answer.status).toBe(status);
  expect(String(answer.line?.estimate)).toMatch(estimate);
  if (status === 400) expect(JSON.parse(answer.text).error.code).toBe('invalid_json');
  // And the next one is served.
  expect((await ask(chat({ type: 'text', text: 'hi' }))).status).toBe(200);
});

const withField = (field: string): string => `{"model":"qwen","messages":[{"role":"user","content":"hi"}],${field}}`;

it.each(['7', '{}', 'null', '"unmapped"', '"__proto__"', '"constructor"', '["flex"]', `"${'f'.repeat(100_000)}"`])(
  'a tier that nobody maps, %s, leaves the priority of its key, and passes',
  async (tier) => {
    const { ask } = await started();
    const { status, band, passed } = await ask(withField(`"service_tier":${tier}`));
    expect([status, band]).toEqual([200, 3]);
    expect(passed).toContain(`"service_tier":${tier}`);
  },
);

const hint = (priority: string): string => withField(`"nvext":{"agent_hints":{"priority":${priority}}}`);
const rankOf = (passed = '{}'): unknown => JSON.parse(passed).nvext?.agent_hints?.priority;

it.each<[string, number | undefined]>([
  [String(2 ** 31), 2 ** 31],
  [String(-(2 ** 40)), -(2 ** 40)],
  ['1e400', undefined],
  [String(2 ** 60), undefined],
  ['0.5', undefined],
  ['"9"', undefined],
  ['null', undefined],
])(
  'a priority of %s of a trusted sender is its band, if it is an integer that can be, and passes',
  async (given, band) => {
    const { ask } = await started();
    const answer = await ask(hint(given), 'proxy');
    expect([answer.status, answer.band]).toEqual([200, band ?? 0]);
    if (band !== undefined) expect(rankOf(answer.passed)).toBe(band);
  },
);

it.each(['2147483648', '1e400', '"9"', '{"a":1}'])('a priority of %s of any other is taken out', async (given) => {
  const { ask } = await started();
  const answer = await ask(hint(given));
  expect([answer.status, answer.band, rankOf(answer.passed)]).toEqual([200, 3, 3]);
});

it.each(['NaN', 'Infinity', '+5', '0x10', '.5', '1e'])('a priority of %s is no JSON, and told', async (given) => {
  const { ask } = await started();
  for (const key of ['plain', 'proxy']) {
    const { status, text, passed } = await ask(hint(given), key);
    expect([status, JSON.parse(text).error.code, passed]).toEqual([400, 'invalid_json', undefined]);
  }
});
