import dns from 'node:dns/promises';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { followEndpoints } from '../../../src/gateway/epp/follow-endpoints.js';
import { EndpointPool, FlowConfigError } from '../../../src/index.js';
import { until } from '../../integration/support/until.js';

let folder: string;
let file: string;
let pool: EndpointPool;
let events: string[];
let stop: (() => void) | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-endpoints-'));
  file = join(folder, 'endpoints.yaml');
  pool = new EndpointPool();
  events = [];
});
afterEach(() => {
  stop?.();
  stop = undefined;
  rmSync(folder, { recursive: true });
});

const log = (_level: string, event: string): void => void events.push(event);

function follow(text?: string | object, isWatched = false): () => void {
  if (text !== undefined) write(text);
  stop?.();
  stop = followEndpoints({ path: file, isWatched }, pool, log);
  return stop;
}

function write(text: string | object, to = file): void {
  writeFileSync(to, typeof text === 'string' ? text : JSON.stringify(text));
}

const server = (name: string, address = '10.0.0.1', more: object = {}): object => ({ name, address, ...more });
const listing = (...endpoints: object[]): object => ({ endpoints });
const addresses = (): (string | undefined)[] => pool.endpoints.map(({ labels }) => labels.address);

describe('the servers of a file', () => {
  it('are in the pool by name, with their address and port', () => {
    follow(`
endpoints:
  - { name: a, address: 10.0.0.1 }
  - { name: b, namespace: gpus, address: 10.0.0.2, port: "9000", labels: { zone: eu } }
  - { name: c, address: "fd00::1" }
`);
    expect(pool.endpoints.map(({ id, labels }) => [id, labels])).toEqual([
      ['a', { address: '10.0.0.1:8000' }],
      ['gpus/b', { zone: 'eu', address: '10.0.0.2:9000' }],
      ['c', { address: '[fd00::1]:8000' }],
    ]);
  });

  it.each(['', 'endpoints: []', '{}'])('may be none: %j', (text) => {
    follow(text);
    expect(pool.endpoints).toEqual([]);
  });

  it.each([
    ['endpoints: 1', 'endpoints.yaml: endpoints: expected'],
    ['endpoints: [{ name: a }]', 'endpoints[0].address: expected an IP address'],
    ['endpoints: [{ name: a, address: 10.0.0.1, port: 8000 }]', 'expected a port, in quotes; got 8000'],
    ['endpoints: [{ name: a, adress: 10.0.0.1 }]', 'adress'],
    [
      'endpoints: [{ name: a, address: "1" }, { name: a, address: "2" }]',
      'expected names that no other endpoint has; got "a"',
    ],
    ['endpoints: [', 'endpoints.yaml'],
  ])('are refused at the start with what is wrong: %s', (text, message) => {
    expect(() => follow(text)).toThrow(message);
  });

  it('that stay keep their requests; one with another address is another server', () => {
    follow(listing(server('a'), server('b', '10.0.0.2')));
    const [a, b] = pool.endpoints;
    follow(
      listing(server('c', '10.0.0.3'), server('b', '10.0.0.9'), server('a', '10.0.0.1', { labels: { zone: 'eu' } })),
    );
    expect(new Set(addresses())).toEqual(new Set(['10.0.0.1:8000', '10.0.0.3:8000', '10.0.0.9:8000']));
    expect(pool.endpoints).toContain(a);
    expect(pool.endpoints).not.toContain(b);
    expect(a?.labels.zone).toBe('eu');
  });

  it('stay as they are when the file has faults', () => {
    follow(listing(server('a')));
    expect(() => follow('endpoints: [{ name: a }]')).toThrow(FlowConfigError);
    expect(addresses()).toEqual(['10.0.0.1:8000']);
  });
});

describe('a file that is watched', () => {
  const isThere = (address: string) => until(`${address} is in the pool`, () => addresses().includes(address));

  it('counts when it is written, and when another one takes its name', async () => {
    follow(listing(server('a')), true);
    write(listing(server('b', '10.0.0.2')));
    await isThere('10.0.0.2:8000');
    write(listing(server('c', '10.0.0.3')), `${file}.new`);
    renameSync(`${file}.new`, file);
    await isThere('10.0.0.3:8000');
    expect(addresses()).toEqual(['10.0.0.3:8000']);
  });

  it('changes nothing when it has faults or is gone, and that is told once', async () => {
    follow(listing(server('a')), true);
    write('endpoints: [{ name: a }]');
    await until('the fault is told', () => events.length === 1);
    rmSync(file);
    await until('that it is gone is told', () => events.length === 2);
    write(listing(server('b', '10.0.0.2')));
    await isThere('10.0.0.2:8000');
    expect(events).toEqual(['endpoints-refused', 'endpoints-refused', 'endpoints']);
  });

  it('counts where it is a link that Kubernetes puts elsewhere', async () => {
    const place = (name: string, content: object): void => {
      mkdirSync(join(folder, name));
      write(content, join(folder, name, 'endpoints.yaml'));
      symlinkSync(name, join(folder, '..data.new'));
      renameSync(join(folder, '..data.new'), join(folder, '..data'));
    };
    place('..1', listing(server('a')));
    symlinkSync(join('..data', 'endpoints.yaml'), file);
    follow(undefined, true);
    expect(addresses()).toEqual(['10.0.0.1:8000']);
    place('..2', listing(server('a', '10.0.0.2')));
    await isThere('10.0.0.2:8000');
  });

  it('counts no more at the end', async () => {
    follow(listing(server('a')), true)();
    write(listing(server('b', '10.0.0.2')));
    await new Promise(setImmediate);
    expect(events).toEqual([]);
  });
});

describe('a name in DNS', () => {
  const answers = (addresses: readonly string[] | Error): void => {
    vi.spyOn(dns, 'lookup').mockImplementation((async () => {
      if (addresses instanceof Error) throw addresses;
      return addresses.map((address) => ({ address, family: 4 }));
    }) as unknown as typeof dns.lookup);
    syncBuiltinESMExports();
  };
  const ask = (name: string): void => {
    stop = followEndpoints({ dns: name, port: 8000, interval: 10 }, pool, log);
  };
  const has = (...expected: string[]) =>
    until(`the pool has ${expected}`, () => String(addresses()) === String(expected));

  afterEach(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });

  it('is asked as the machine asks', async () => {
    ask('localhost');
    await until('an address is there', () => addresses().length > 0);
    for (const address of addresses()) expect(address).toMatch(/^(127\.0\.0\.1|\[::1\]):8000$/);
  });

  it('is asked again and again; servers that stay keep their requests', async () => {
    answers(['10.0.0.2', '10.0.0.1']);
    ask('vllm');
    await has('10.0.0.1:8000', '10.0.0.2:8000');
    const [first] = pool.endpoints;
    answers(['10.0.0.1', '10.0.0.3']);
    await has('10.0.0.1:8000', '10.0.0.3:8000');
    expect(pool.endpoints[0]).toBe(first);
    expect(events).toEqual(['endpoints', 'endpoints']);
  });

  it('without an answer changes nothing, and that is told once', async () => {
    answers(['10.0.0.1']);
    ask('vllm');
    await has('10.0.0.1:8000');
    answers(new Error('queryA ESERVFAIL vllm'));
    await until('the fault is told', () => events.length === 2);
    const { mock } = vi.mocked(dns.lookup);
    const asked = mock.calls.length;
    await until('it is asked three times more', () => mock.calls.length > asked + 3);
    expect(events).toEqual(['endpoints', 'endpoints-refused']);
    expect(addresses()).toEqual(['10.0.0.1:8000']);
    answers(['10.0.0.1']);
    await until('it is told that there is an answer again', () => events.length === 3);
  });
});
