/** `headgate simulate`, as a process. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { progressLine } from '../../../../src/gateway/cli/simulate/progress.js';
import { bundleCli, type Ended } from '../../support/bundled-cli.js';

let cli: Awaited<ReturnType<typeof bundleCli>>;
beforeAll(async () => {
  cli = await bundleCli();
});
afterAll(() => cli.remove());

const file = (name: string, text: string): string => {
  writeFileSync(`${cli.folder}/${name}`, text);
  return `${cli.folder}/${name}`;
};
const simulate = (...args: string[]): Promise<Ended> => cli.start(['simulate', ...args]).ended;

const scenario = (maxConcurrency: number): string => `name: ${maxConcurrency} seats
duration: 20s
servers: [{ name: gpu, model: slots, slots: 4, serviceTime: 100ms }]
traffic: [{ tenant: chat, class: chat, arrivals: { type: poisson, rate: 25 } }]
plugins: [{ type: concurrency-detector, parameters: { maxConcurrency: ${maxConcurrency} } }]
saturationDetector: { pluginRef: concurrency-detector }
`;

describe('a scenario', () => {
  it('is run to a table, to JSON and to one page, each the same every time', async () => {
    const path = file('a.yaml', scenario(4));
    const page = `${cli.folder}/report.html`;
    const [first, again, table] = [
      await simulate(path, '--json', '--html', page),
      await simulate(path, '--json'),
      await simulate(path),
    ];
    expect([first.status, again.status, table.status]).toEqual([0, 0, 0]);
    expect(again.stdout).toBe(first.stdout);
    expect(JSON.parse(first.stdout)[0].counts.completed).toBeGreaterThan(400);
    expect(first.stderr).toBe(`wrote ${page}\n`);
    expect(readFileSync(page, 'utf8')).toContain('<svg');
    expect(table.stdout).toMatch(/^ +arrived +done.*\nall .*\nclass chat /);
    expect(table.stderr).toBe('');
  });

  it('is held against another one, over several seeds', async () => {
    const { stdout, status } = await simulate(
      file('a.yaml', scenario(4)),
      '--compare',
      file('b.yaml', scenario(2)),
      '--seeds',
      '2',
    );
    expect(status).toBe(0);
    expect(stdout).toContain('4 seats');
    expect(stdout).toContain('2 seats');
  });

  it('with faults ends with 1 and lists all of them, with line and column', async () => {
    const { stderr, status } = await simulate(
      file('bad.yaml', 'duration: 0s\nservers:\n  - model: slot\ntraffic: []\n'),
    );
    expect(status).toBe(1);
    expect(stderr).toMatch(/^headgate: scenario: 3 problems\n/);
    expect(stderr.match(/line \d+, column \d+/g)).toEqual([
      'line 1, column 11',
      'line 3, column 12',
      'line 4, column 1',
    ]);
  });

  it('that is not there is said in one line', async () => {
    expect(await simulate(`${cli.folder}/none.yaml`)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^headgate: ENOENT.*\n$/),
    });
  });
});

describe('a search', () => {
  it('prints every value that it tried, and both ends of the range that will do', async () => {
    const { stdout, status } = await simulate(
      file('a.yaml', scenario(4)),
      '--find',
      'gate.maxConcurrency=1..16',
      '--so-that',
      'ttft.p95 < 300ms',
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /ttft\.p95 < 300ms and served >= 95% holds for gate\.maxConcurrency from 4, to 16, where the search ended\. The scenario has 4\.\n$/,
    );
  });

  it('for what cannot be says which value came closest, and by how much it misses', async () => {
    const { stdout, status } = await simulate(
      file('a.yaml', scenario(4)),
      '--find',
      'gate.maxConcurrency=1..16',
      '--so-that',
      'ttft.p95 < 50ms',
    );
    expect(status).toBe(1);
    expect(stdout).toMatch(
      /No value from 1 to 16 will do\. gate\.maxConcurrency = \d+ comes closest: it misses by \d+\.\d %\.\n$/,
    );
  });

  it('for what nobody measures says what there is', async () => {
    const given = ['--find', 'gate.maxConcurrency=1..2', '--so-that', 'ttft.p95(nobody) < 1s'];
    const { stdout, status } = await simulate(file('a.yaml', scenario(4)), ...given);
    expect(status).toBe(1);
    expect(stdout).toContain('There is no class or tenant nobody; there are chat.');
  });

  it('does not take the times of nobody, or of few, for good ones', async () => {
    const path = file('short.yaml', `${scenario(4)}flowControl: { defaultRequestTTL: 1ms }\n`);
    const given = ['--find', 'gate.maxConcurrency=1..8', '--so-that', 'queued.p99 < 1s', '--json'];
    const { curve, soThat } = JSON.parse((await simulate(path, ...given)).stdout);
    expect(soThat).toBe('queued.p99 < 1s and served >= 95%');
    expect(curve[0]).toMatchObject({ value: 1, fails: ['served'] });

    const never = ['--find', 'servers[gpu].serviceTime=3600000..7200000', '--so-that', 'ttft.p99(chat) < 1s'];
    const { stdout, status } = await simulate(path, ...never);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^ +3600000 +– +0\.0 % +0\.0 % +no: ttft\.p99\(chat\) of nobody, served\(chat\), served$/m);
    expect(stdout).toMatch(/will do\. Nobody was served of whom it speaks, or the scenario does not measure it\.\n$/);
  });

  it('over a grid has a line for each combination', async () => {
    const { stdout, status } = await simulate(
      file('a.yaml', scenario(4)),
      '--sweep',
      'gate.maxConcurrency=2,4',
      '--sweep',
      'servers[gpu].slots=1..2',
    );
    expect(status).toBe(0);
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.trim().split(/ +/).slice(0, 2).join(' ')),
    ).toEqual(['gate.maxConcurrency servers[gpu].slots', '2 1', '2 2', '4 1', '4 2']);
  });
});

describe('a record', () => {
  const record = 'arrival,promptTokens,outputTokens,colour\n0,5,5,red\n1,,5,red\n2,5,5,red\n';

  it('with faults is refused with the lines', async () => {
    const { stderr, status } = await simulate(file('a.yaml', scenario(4)), '--from', file('record.csv', record));
    expect(status).toBe(1);
    expect(stderr).toMatch(/2 problems\n {2}line 1: expected .*; got "colour"\n {2}line 3: expected .*; got a hole\n$/);
  });

  it('is simulated without them where told so, and they are counted', async () => {
    const { stdout, stderr, status } = await simulate(
      file('a.yaml', scenario(4)),
      '--from',
      file('record.csv', record),
      '--skip-bad-lines',
      '--json',
    );
    expect(status).toBe(0);
    expect(JSON.parse(stdout)[0].counts.requests).toBe(2);
    expect(stderr).toMatch(/record\.csv: 1 line was left out\. Its faults: line 1: .*got "colour"; and 1 more\n$/);
  });
});

describe('the progress line', () => {
  it('tells how far it is and how long it may take, at most ten times a second, and goes away', () => {
    const written: string[] = [];
    let nowMs = 0;
    const line = progressLine({ isTTY: true, write: (text) => written.push(text) }, () => nowMs);
    line.show('a', 0);
    nowMs = 50;
    line.show('a', 0.1);
    nowMs = 1000;
    line.show('a', 0.25);
    line.clear();
    expect(written).toEqual(['\r\u001b[Ka 0 %', '\r\u001b[Ka 25 %, about 3 s left', '\r\u001b[K']);
  });

  it('is not there where nobody watches', () => {
    const written: string[] = [];
    const line = progressLine({ write: (text) => written.push(text) }, () => 0);
    line.show('a', 0.5);
    line.clear();
    expect(written).toEqual([]);
  });
});
