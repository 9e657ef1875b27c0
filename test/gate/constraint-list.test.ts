import { describe, expect, it } from 'vitest';
import { type Constraint, type EndpointView, FlowController } from '../../src/index.js';
import type { QuotaFigures, RequestWait, SessionFigures } from '../../src/types/index.js';
import { constraintsIn } from '../support/constraints.js';
import { fakeItem } from '../support/fake-item.js';
import { fakeEndpoint } from '../support/fake-pool.js';
import { quota, quotaFigures, sessionFigures } from '../support/reported-figures.js';

const endpoints = ['a', 'b', 'c'].map((id) => fakeEndpoint(id));
const item = fakeItem();
const plain: Constraint = { type: 'plain', withRoomFor: (given) => given };

/** Has room for a request at these endpoints; notes where it was asked about. */
function judge(ids: string, wait?: Partial<RequestWait>, asked: string[] = []): Constraint {
  return {
    ...plain,
    type: ids,
    withRoomFor: (given) => {
      asked.push(given.map(({ id }) => id).join(''));
      return given.filter(({ id }) => ids.includes(id));
    },
    ...(wait && {
      waitOf: (given, _item, nowMs) => ({
        atMs: nowMs,
        notBeforeMs: nowMs,
        missing: `${given.length} of ${ids}`,
        ...wait,
      }),
    }),
  };
}

type Scope = (constraint: Constraint, endpoint: EndpointView) => boolean;

/** Constraints that judge some of the endpoints, as parts of a detector are. */
const scoped = (constraints: readonly Constraint[], judges: Scope) =>
  constraintsIn([
    {
      type: 'composite',
      saturation: () => 0,
      parts: constraints.map((plugin) => ({ plugin, judges: (endpoint) => judges(plugin, endpoint) })),
    },
  ]);

const idsOf = (of: ReturnType<typeof constraintsIn>): string =>
  of.withRoomFor(endpoints, item, undefined, 5).map(({ id }) => id).join(''); // biome-ignore format: one chain

describe('where a request has room', () => {
  it('is nobody’s question where there is no constraint', () => {
    expect(constraintsIn([]).areAny).toBe(false);
    expect(constraintsIn([{ type: 'dial', saturation: () => 0 }]).areAny).toBe(false);
    expect(constraintsIn([plain]).areAny).toBe(true);
  });

  it('is where all that judge it have room', () => {
    expect(idsOf(constraintsIn([plain, judge('abc'), judge('bc'), plain, judge('ab')]))).toBe('b');
    expect(idsOf(constraintsIn([judge('a'), judge('b')]))).toBe('');
  });

  it('is asked of each about what the others left, and not once nothing is left', () => {
    const asked: string[] = [];
    idsOf(constraintsIn([judge('ab', undefined, asked), judge('', undefined, asked), judge('a', undefined, asked)]));
    // Then each is asked once more, for what holds the request.
    expect(asked.slice(0, 2)).toEqual(['abc', 'ab']);
  });

  it('is asked of each about the endpoints that it judges, and the others stay', () => {
    const asked: string[] = [];
    const [none, all] = [judge('', undefined, asked), judge('ab', undefined, asked)];
    const of = scoped([none, all], (constraint, { id }) => (constraint === none ? id === 'c' : id !== 'b'));
    expect([idsOf(of), asked]).toEqual(['ab', ['c', 'a']]);
  });
});

describe('what a request waits for', () => {
  /** Has no room anywhere. */
  const full = (name: string, wait?: Partial<RequestWait>): Constraint => ({
    ...judge(name, wait),
    withRoomFor: () => [],
  });
  const waitOf = (constraints: readonly Constraint[], judges: Scope = () => true): RequestWait | undefined =>
    scoped(constraints, judges).waitOf(endpoints, item, undefined, 5);

  it('is the last of what all that judge it wait for, and not before any of them', () => {
    const [early, late] = [full('a', { atMs: 10, notBeforeMs: 9 }), full('b', { atMs: 20, notBeforeMs: 7 })];
    for (const detectors of [
      [early, late],
      [late, early],
    ]) {
      expect(waitOf(detectors)).toEqual({ atMs: 20, notBeforeMs: 9, missing: '3 of b' });
    }
  });

  it('is what the first says of those that wait equally long', () => {
    expect(waitOf([full('a', { atMs: 10 }), full('b', { atMs: 10 })])).toMatchObject({ missing: '3 of a' });
  });

  it('is nothing where none of them says', () => {
    expect(waitOf([full('a'), plain])).toEqual({ atMs: 5, notBeforeMs: 5, missing: '' });
    expect(waitOf([full('a'), full('b', { atMs: 6 })])).toEqual({ atMs: 6, notBeforeMs: 5, missing: '3 of b' });
  });

  it('is told by those that judge one of the endpoints, about these', () => {
    const [part, elsewhere] = [full('a', { atMs: 10 }), full('b', { atMs: 20 })];
    expect(waitOf([part, elsewhere], (constraint, { id }) => constraint === part && id !== 'c')).toEqual({
      atMs: 10,
      notBeforeMs: 5,
      missing: '2 of a',
    });
  });

  it('is not what a detector waits for that has room for it', () => {
    const [roomy, used] = [judge('abc', { atMs: Infinity, notBeforeMs: Infinity }), full('b', { atMs: 10 })];
    for (const detectors of [
      [roomy, used],
      [used, roomy],
    ]) {
      expect(waitOf(detectors)).toEqual({ atMs: 10, notBeforeMs: 5, missing: '3 of b' });
    }
  });

  it('is the first endpoint that all have room at, where each has room at another', () => {
    const detectors = [judge('ac', { atMs: 30, notBeforeMs: 9 }), judge('b', { atMs: 20, notBeforeMs: 8 })];
    expect(waitOf(detectors)).toEqual({ atMs: 20, notBeforeMs: 8, missing: '1 of b' });
  });
});

describe('figures', () => {
  const quotas: QuotaFigures = { quotas: [], unreported: 1, ignoredReports: 2, ignoredFigures: 3, refusals: 4 };
  const sessions: SessionFigures = { resident: 1, idle: 2, maxSessions: 3, waiting: 4, tokens: 5, expired: 6 };

  it('are those of all that tell them, added up', () => {
    const asked: unknown[] = [];
    const teller = (): Constraint => ({
      ...plain,
      quotas: (nowMs) => {
        asked.push(nowMs);
        return quotas;
      },
      sessions: (held, nowMs) => {
        asked.push(held, nowMs);
        return sessions;
      },
    });
    const of = constraintsIn([plain, teller(), plain, teller()]);
    expect(of.quotas(7)).toEqual({ quotas: [], unreported: 2, ignoredReports: 4, ignoredFigures: 6, refusals: 8 });
    expect(of.sessions(8)).toEqual({ resident: 2, idle: 4, maxSessions: 6, waiting: 8, tokens: 10, expired: 12 });
    expect(asked).toEqual([7, 7, [], 8, [], 8]);
  });

  it('are none where nobody tells them', () => {
    expect(constraintsIn([{ ...plain, quotas: () => quotas }]).sessions(0)).toBeUndefined();
    expect(constraintsIn([{ ...plain, sessions: () => sessions }]).quotas(0)).toBeUndefined();
  });
});

/** Every question: how it is asked, an answer that is right, and what stands in for a wrong one. */
const questions: readonly [
  hook: keyof Constraint,
  ask: (of: ReturnType<typeof constraintsIn>) => unknown,
  right: unknown,
  fallback: unknown,
  rule: string,
][] = [
  [
    'withRoomFor',
    (of) => of.withRoomFor(endpoints, item, undefined, 5),
    [endpoints[1]],
    endpoints,
    'withRoomFor must return an array of the endpoints that it was given',
  ],
  ['fullness', (of) => of.fullness(endpoints, 5), 0.5, 0, 'fullness must return a finite number from 0 up'],
  ['quotas', (of) => of.quotas(5), quotaFigures, undefined, 'quotas must return figures, with an array named quotas'],
  ['sessions', (of) => of.sessions(5), sessionFigures, undefined, 'sessions must return figures of sessions'],
];

describe.each(questions)('%s', (hook, ask, right, fallback, rule) => {
  const asking = (answer: () => unknown): [unknown, string[]] => {
    const faults: string[] = [];
    return [ask(constraintsIn([{ ...plain, [hook]: answer }], faults)), faults];
  };

  it('is answered by the constraint', () => {
    expect(asking(() => right)).toEqual([right, []]);
  });

  it.each([['text'], [-1], [null], [[null]], [{}]])(
    'answered by %j is reported, and as if it had not been asked',
    (wrong) => {
      expect(asking(() => wrong)).toEqual([
        fallback,
        [expect.stringContaining(`constraint plain: TypeError: ${rule}; got`)],
      ]);
    },
  );

  it('answered by an exception is reported, and as if it had not been asked', () => {
    const failing = (): never => {
      throw new Error('broken');
    };
    expect(asking(failing)).toEqual([fallback, ['constraint plain: Error: broken']]);
  });
});

describe('a wait', () => {
  it.each([
    [{ atMs: Number.NaN, notBeforeMs: 0, missing: 'x' }],
    [{ atMs: '5', notBeforeMs: 0, missing: 'x' }],
    [{ atMs: 5, notBeforeMs: undefined, missing: 'x' }],
    [{ atMs: 5, notBeforeMs: Number.NaN, missing: 'x' }],
    [{ atMs: 5, notBeforeMs: 0, missing: undefined }],
    ['text'],
    [null],
  ])('cannot be %o', (wait) => {
    const faults: string[] = [];
    const full: Constraint = { type: 'full', withRoomFor: () => [], waitOf: () => wait as RequestWait };
    expect(constraintsIn([full], faults).waitOf([endpoints[0]!], item, undefined, 7)).toEqual({
      atMs: 7,
      notBeforeMs: 7,
      missing: '',
    });
    expect(new Set(faults).size).toBe(1);
    expect(faults[0]).toContain('waitOf must return { atMs, notBeforeMs, missing }: instants in ms, and a text');
  });
});

describe('figures that cannot be', () => {
  it.each([
    [{ ...quotaFigures, quotas: [null] }],
    [{ ...quotaFigures, quotas: [{ ...quota, waitMs: Number.NaN }] }],
    [{ ...quotaFigures, quotas: [{ ...quota, group: 7 }] }],
    [{ ...quotaFigures, refusals: undefined }],
    [{ quotas: [] }],
  ])('of quotas are %o', (figures) => {
    const faults: string[] = [];
    expect(constraintsIn([{ ...plain, quotas: () => figures as never }], faults).quotas(0)).toBeUndefined();
    expect(faults).toHaveLength(1);
  });

  it.each([[{ ...sessionFigures, idle: '1' }], [{ ...sessionFigures, tokens: Number.NaN }], [{}]])(
    'of sessions are %o',
    (figures) => {
      const faults: string[] = [];
      expect(constraintsIn([{ ...plain, sessions: () => figures as never }], faults).sessions(0)).toBeUndefined();
      expect(faults).toHaveLength(1);
    },
  );
});

describe('a constraint that stays when options are read again', () => {
  it('is heard on, though it knows its listeners by identity, and once', () => {
    const listeners = new Set<() => void>();
    const announcing: Constraint = {
      ...plain,
      subscribe: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    const flow = new FlowController({ constraints: [announcing] });
    flow.reconfigure({ constraints: [announcing] });
    expect(listeners.size).toBe(1);
    flow.reconfigure({ constraints: [plain] });
    expect(listeners.size).toBe(0);
  });
});
