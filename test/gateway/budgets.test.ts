/** Budgets of a gateway file, over real sockets: who waits, who is told at once, and what a restart remembers. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createGateway } from '../../src/gateway/index.js';
import { fileOf, loadFor, startGateway } from './support/gateway.js';
import { startUpstream } from './support/upstream.js';

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'budgets-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

async function file(more: object = {}, budget: readonly object[] = [{ requests: 1, per: 'month' }], kept?: string) {
  const { url } = await startUpstream();
  const keys = [
    { key: 'a', tenant: 'acme', plan: 'small' },
    { key: 'b', tenant: 'other', plan: 'large' },
  ];
  const plans = { small: budget, large: [{ requests: 100, per: 'month' }] };
  const made: { flowControl?: object } = fileOf([url], { auth: { keys }, ...more }, 9);
  return { ...made, budgets: { plans, ...(kept !== undefined && { file: kept }) } };
}

const as = (key: string): RequestInit => ({ headers: { authorization: `Bearer ${key}` } });
const asked = { model: 'llama', messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 };

describe('a tenant whose budget is used up', () => {
  it('is told at once when there will be some, and another one is served', async () => {
    const { post } = await startGateway(await file());
    expect((await post(asked, as('a'))).status).toBe(200);
    const refused = await post(asked, as('a'));
    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([429, 'false']);
    const { error } = (await refused.json()) as { error: { code: string; resets_at: number; message: string } };
    const now = new Date();
    const month = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) / 1000;
    expect(error.code).toBe('ERR_FLOW_BUDGET');
    expect(Math.abs(error.resets_at - month)).toBeLessThan(5);
    expect(error.message).not.toContain('acme');
    for (let i = 0; i < 3; i++) expect((await post(asked, as('b'))).status).toBe(200);
  });

  it('waits where the budget refills in time', async () => {
    const { post } = await startGateway(await file({}, [{ requests: 1, per: 'second' }]));
    const began = performance.now();
    expect((await post(asked, as('a'))).status).toBe(200);
    const second = post(asked, as('a'));
    expect((await post(asked, as('b'))).status).toBe(200);
    expect((await second).status).toBe(200);
    expect(performance.now() - began).toBeGreaterThan(900);
  });

  it('reads with its own key what is left', async () => {
    const { post, gateway } = await startGateway(await file({}, [{ requests: 2, per: 'month' }, { tokens: 1000 }]));
    expect((await post(asked, as('a'))).status).toBe(200);
    const read = async (key: string) => {
      const answer = await fetch(`${gateway.url}/v1/budget`, as(key));
      return [answer.status, ((await answer.json()) as { data?: unknown }).data];
    };
    await vi.waitFor(async () => {
      expect(await read('a')).toEqual([
        200,
        [
          {
            of: 'acme',
            unit: 'requests',
            limit: 2,
            per: 'month',
            used: 1,
            reserved: 0,
            left: 1,
            resets_at: expect.any(Number),
          },
          expect.objectContaining({ unit: 'tokens', limit: 1000, per: 60 }),
        ],
      ]);
    });
    expect(await read('b')).toEqual([200, [expect.objectContaining({ of: 'other', left: 100 })]]);
    expect(await read('c')).toEqual([401, undefined]);
  });

  it('is named in metrics and in the inspector, with what it has used', async () => {
    const { post, gateway } = await startGateway(
      await file({ admin: { token: 'sesame' }, inspector: {} }, [{ requests: 4, per: 'month' }]),
    );
    expect((await post(asked, as('a'))).status).toBe(200);
    const metrics = await (await fetch(`${gateway.url}/metrics`, as('sesame'))).text();
    const [used] = metrics.split('\n').filter((line) => /flow_control_quota_used\{.*small acme/.test(line));
    expect(used).toMatch(/group="small acme".*unit="requests".* 1$/);
    const login = { headers: { authorization: `Basic ${btoa('ops:sesame')}` } };
    const frame = await (await fetch(`${gateway.url}/inspector?view=json`, login)).json();
    expect(frame).toMatchObject({ quotas: { rows: [{ group: 'small acme', used: 1, limit: 4, calendar: 'month' }] } });
  });

  it('reads it in headers of answers where the file says so', async () => {
    const text = await file({}, [{ requests: 5, per: 'month' }, { tokens: 1000 }]);
    const { post } = await startGateway({ ...text, budgets: { ...text.budgets, headers: true } });
    const { headers } = await post(asked, as('a'));
    const told = (name: string) => headers.get(`x-ratelimit-${name}`);
    expect([told('limit-requests'), told('remaining-requests'), told('limit-tokens')]).toEqual(['5', '4', '1000']);
    expect(told('reset-requests')).toMatch(/^\d+ms$/);
    expect(
      (await (await startGateway(text)).post(asked, as('a'))).headers.get('x-ratelimit-limit-requests'),
    ).toBeNull();
  });

  it('has not more after a reload', async () => {
    const text = await file();
    const { post, gateway } = await startGateway(text);
    expect((await post(asked, as('a'))).status).toBe(200);
    gateway.reconfigure(loadFor({ ...text, flowControl: { ...text.flowControl, maxFlows: 7 } }, undefined));
    expect((await post(asked, as('a'))).status).toBe(429);
    expect((await post(asked, as('b'))).status).toBe(200);
  });
});

describe('keys that name plans', () => {
  it('of one tenant name the same one', async () => {
    const keys = [
      { key: 'a', tenant: 'acme', plan: 'small' },
      { key: 'b', tenant: 'acme', plan: 'large' },
    ];
    await expect(file({ auth: { keys } }).then((text) => loadFor(text, undefined))).rejects.toThrow(
      'auth.keys[1].plan: expected the plan small, which acme has elsewhere; got large',
    );
    await expect(
      file({ auth: { keys: [{ ...keys[0], plan: 'smal' }] } }).then((text) => loadFor(text, undefined)),
    ).rejects.toThrow('flowControl.tenants.acme: expected one of the plans small, large (did you mean');
  });
});

describe('headgate check', () => {
  it('prints who may spend what, and warns where budgets multiply or are forgotten', async () => {
    const { checkSource } = await import('../../src/gateway/cli/check-source.js');
    const { defaultRegistry } = await import('../../src/index.js');
    const { warnings, effective } = checkSource(JSON.stringify(await file()), defaultRegistry());
    expect(warnings).toEqual(
      expect.arrayContaining([
        'budgets hold in each replica and worker: with two of them tenants may spend twice as much',
        'a restart forgets what tenants have spent: there is no budgets.file',
      ]),
    );
    const tenants = effective.find(({ section }) => section === 'Tenants')?.entries;
    expect(tenants?.[0]?.[1]).toContain('small acme: 1 requests per month');
  });
});

describe('a file of state', () => {
  it('keeps budgets over a restart', async () => {
    const state = join(folder(), 'budgets');
    const text = await file({}, undefined, state);
    const first = await createGateway(loadFor(text, undefined));
    const ask = (url: string): Promise<Response> =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(asked),
        headers: { 'content-type': 'application/json', authorization: 'Bearer a' },
      });
    expect((await ask(first.url)).status).toBe(200);
    await first.close();
    expect(existsSync(`${state}.lock`)).toBe(false);
    const second = await startGateway(text);
    expect((await ask(second.gateway.url)).status).toBe(429);
  });

  it('is of one process at a time, and that of a dead one is taken over', async () => {
    const state = join(folder(), 'budgets');
    const text = await file({}, undefined, state);
    writeFileSync(`${state}.lock`, String(process.ppid));
    await expect(createGateway(loadFor(text, undefined))).rejects.toThrow(
      `budgets.file: expected a file that this process alone writes; got process ${process.ppid} has it`,
    );
    writeFileSync(`${state}.lock`, String(2 ** 22 + 1));
    await startGateway(text);
    expect(readFileSync(`${state}.lock`, 'utf8')).toBe(String(process.pid));
  });

  const far = Date.now() + 9e8;
  const line = JSON.stringify(['small acme requests month UTC', 1, far]);
  it.each([
    ['is cut in half', `{"headgate":"budgets","version":1}\n${line}\n["small ac`, 'it is cut: 1 of it count', 429],
    [
      'is of another version',
      `{"headgate":"budgets","version":9}\n${line}\n{"end":1}\n`,
      'its version is 9: budgets begin anew',
      200,
    ],
    ['is something else', 'nonsense', 'its version is unknown: budgets begin anew', 200],
    ['is empty', '', 'its version is unknown: budgets begin anew', 200],
  ])('that %s is kept aside, and what could be read of it counts', async (_, text, message, status) => {
    const state = join(folder(), 'budgets');
    writeFileSync(state, text);
    const { post, log } = await startGateway(await file({}, undefined, state));
    expect((await post(asked, as('a'))).status).toBe(status);
    expect(readFileSync(`${state}.bad`, 'utf8')).toBe(text);
    expect(log.filter(({ event }) => event === 'budget-state').map(({ fields }) => fields.message)).toEqual([
      expect.stringContaining(message),
    ]);
  });

  it('cannot be where nothing can be written', async () => {
    const text = await file({}, undefined, join(folder(), 'missing', 'budgets'));
    await expect(createGateway(loadFor(text, undefined))).rejects.toThrow(
      'budgets.file: expected a file that this process',
    );
  });
});
