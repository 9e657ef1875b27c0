/** Who is ill, and when the checks are: on a clock that moves only when told to. */
import { describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { EndpointPool, type HealthOptions, type HealthWatch, watchHealth } from '../../../src/upstream/index.js';
import { settled } from '../scraping/scraper-rig.js';

type Behaviour = { status?: number; refuses?: boolean; afterMs?: number };

const refused = (): Error =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }) });
const silent: Behaviour = { afterMs: Number.POSITIVE_INFINITY };

class World {
  readonly clock = new ManualClock();
  readonly pool = new EndpointPool();
  readonly questions: { readonly url: string; readonly signal: AbortSignal }[] = [];
  readonly told: string[] = [];
  readonly behaviours: Record<string, Behaviour>;
  readonly watch: HealthWatch;

  constructor(behaviours: Record<string, Behaviour>, options: HealthOptions = {}) {
    this.behaviours = behaviours;
    for (const id of Object.keys(behaviours)) this.pool.add(id);
    this.watch = watchHealth(this.pool, {
      clock: this.clock,
      fetch: (url, { signal }) => this.answer(url, signal),
      ...options,
    });
    this.watch.on('ill', ({ endpoint, failures, reason }) =>
      this.told.push(`${endpoint.id} ill ${failures} ${reason}`),
    );
    this.watch.on('well', ({ endpoint }) => this.told.push(`${endpoint.id} well`));
    this.watch.on('suspect', () => this.told.push('suspect'));
    this.watch.on('trusted', () => this.told.push('trusted'));
  }

  /** The rounds go on, step by step, so that answers and time limits come in their order. */
  async run(ms: number): Promise<void> {
    for (let step = 0; step < ms / 100; step++) {
      this.clock.advance(100);
      await settled();
    }
  }

  get states(): string {
    return this.pool.endpoints.map(({ state }) => state).join(' ');
  }

  private answer(url: string, signal: AbortSignal): Promise<{ ok: boolean; status: number }> {
    this.questions.push({ url, signal });
    const { status = 200, refuses = false, afterMs = 0 } = this.behaviours[new URL(url).hostname] ?? {};
    if (refuses) return Promise.reject(refused());
    const answer = { ok: status < 300, status };
    if (afterMs === 0) return Promise.resolve(answer);
    return new Promise((resolve, reject) => {
      if (afterMs !== Number.POSITIVE_INFINITY) this.clock.setTimeout(() => resolve(answer), afterMs);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  }
}

describe('a server', () => {
  it.each<[string, Behaviour, string]>([
    ['answers 500', { status: 500 }, 'status 500'],
    ['leads elsewhere', { status: 302 }, 'status 302'],
    ['refuses connections', { refuses: true }, 'fetch failed: ECONNREFUSED'],
    ['is silent', silent, 'no answer within 1000 ms'],
  ])('that %s is ill after three checks in a row', async (_, behaviour, reason) => {
    const world = new World({ a: behaviour, b: {} });
    await world.run(3_900);
    expect(world.states).toBe('ready ready');
    await world.run(1_300);
    expect(world.states).toBe('ill ready');
    expect(world.told).toEqual([`a ill 3 ${reason}`]);
  });

  it('that fails twice, is well, and fails twice again stays ready', async () => {
    const world = new World({ a: { status: 503 }, b: {} }, { intervalMs: 1_000 });
    await world.run(1_500);
    world.behaviours.a = {};
    await world.run(1_000);
    world.behaviours.a = { status: 503 };
    await world.run(2_000);
    expect(world.questions.filter(({ url }) => url === 'http://a/health')).toHaveLength(5);
    expect(world.told).toEqual([]);
  });

  it('is ready again after as many good checks in a row as the option says', async () => {
    const world = new World({ a: { status: 503 }, b: {} }, { intervalMs: 1_000, failures: 1, successes: 3 });
    await world.run(500);
    world.behaviours.a = {};
    await world.run(2_000);
    world.behaviours.a = { status: 503 };
    await world.run(1_000);
    world.behaviours.a = {};
    await world.run(2_000);
    expect(world.states).toBe('ill ready');
    await world.run(1_000);
    expect(world.told).toEqual(['a ill 1 status 503', 'a well']);
  });

  it('that is draining stays so, whatever its checks say', async () => {
    const world = new World({ a: { status: 503 }, b: {} }, { failures: 1 });
    world.pool.update('a', { state: 'draining' });
    await world.run(3_000);
    world.behaviours.a = {};
    await world.run(3_000);
    expect(world.states).toBe('draining ready');
  });

  it('has one question at a time, and none once it has left or the watch has stopped', async () => {
    const world = new World({ a: silent, b: silent }, { intervalMs: 500, timeoutMs: 1_200 });
    await world.run(1_100);
    expect(world.questions).toHaveLength(2);
    world.pool.remove('a');
    await world.run(600);
    expect(world.questions).toHaveLength(3);
    world.watch.stop();
    await world.run(5_000);
    expect(world.questions).toHaveLength(3);
    expect(world.told).toEqual([]);
  });

  it('begins anew under a new URL', async () => {
    const world = new World({ a: { status: 503 }, b: {} }, { intervalMs: 1_000 });
    await world.run(1_500);
    world.pool.update('a', { labels: { address: 'c:80' } });
    world.behaviours.c = { status: 503 };
    await world.run(1_500);
    expect(world.states).toBe('ready ready');
    await world.run(1_000);
    expect(world.states).toBe('ill ready');
  });
});

describe('the time that an answer may take', () => {
  it('is twice what the other servers take, if this is more', async () => {
    const world = new World({ a: { afterMs: 800 }, b: { afterMs: 900 }, c: {} }, { failures: 1 });
    await world.run(2_500);
    world.behaviours.c = { afterMs: 1_500 };
    await world.run(8_000);
    expect(world.told).toEqual([]);
    world.behaviours.c = silent;
    await world.run(4_000);
    expect(world.told).toEqual(['c ill 1 no answer within 1800 ms']);
  });
});

describe('when no server answers', () => {
  it('every server keeps its work, and the checks are suspected once', async () => {
    const world = new World({ a: silent, b: silent, c: { afterMs: 1_100 } });
    await world.run(20_000);
    expect(world.states).toBe('ready ready ready');
    expect(world.told).toEqual(['suspect']);
  });

  it('the first that answers well ends the suspicion, and the silence of the others counts', async () => {
    const world = new World({ a: silent, b: silent });
    await world.run(10_000);
    world.behaviours.b = {};
    await world.run(4_000);
    expect(world.states).toBe('ill ready');
    expect(world.told.map((line) => line.replace(/ \d.*/, ''))).toEqual(['suspect', 'trusted', 'a ill']);
  });

  it('the last server that has work keeps it, although the others have been ill for long', async () => {
    const world = new World({ a: { status: 500 }, b: {} });
    await world.run(8_000);
    world.behaviours.b = silent;
    await world.run(20_000);
    expect(world.states).toBe('ill ready');
  });

  it('a server that has just joined is no proof that the checks work', async () => {
    const world = new World({ a: silent, b: silent });
    await world.run(4_500);
    world.behaviours.c = silent;
    world.pool.add('c');
    await world.run(10_000);
    expect(world.states).toBe('ready ready ready');
  });

  it('a server that nobody checks has work: then silence counts', async () => {
    const world = new World(
      { a: silent, free: {} },
      { urlOf: ({ id }) => (id === 'free' ? undefined : `http://${id}/`) },
    );
    await world.run(6_000);
    expect(world.states).toBe('ill ready');
  });

  it('they are all ill if the host wants it so', async () => {
    const world = new World({ a: silent, b: silent }, { whenAllSilent: 'ill' });
    await world.run(6_000);
    expect(world.states).toBe('ill ill');
  });

  it('but say that they are ill, or refuse, they are believed', async () => {
    const world = new World({ a: { status: 503 }, b: { refuses: true } });
    await world.run(6_000);
    expect(world.states).toBe('ill ill');
  });
});

describe('the results of checks', () => {
  it('are told one by one, silence that is held against nobody apart', async () => {
    const world = new World({ a: { status: 503 }, b: {}, c: silent }, { intervalMs: 1_500 });
    const results: string[] = [];
    world.watch.on('checked', ({ endpoint, result }) => results.push(`${endpoint.id} ${result}`));
    await world.run(1_400);
    expect(results).toEqual(['a ill', 'b well', 'c silent']);
    results.length = 0;
    world.behaviours.a = silent;
    world.behaviours.b = silent;
    await world.run(1_500);
    expect(results).toContain('c disregarded');
  });
});

describe('wrong options', () => {
  it('are an error with every fault', () => {
    const wrong = { failures: 0, successes: 1.5, timeoutMs: 0, whenAllSilent: 'panic' } as unknown as HealthOptions;
    const issues = (() => {
      try {
        watchHealth(new EndpointPool(), wrong);
      } catch (error) {
        return error instanceof FlowConfigError ? error.issues.map(({ path }) => path) : undefined;
      }
      return undefined;
    })();
    expect(issues).toEqual(['timeoutMs', 'failures', 'successes', 'whenAllSilent']);
  });
});
