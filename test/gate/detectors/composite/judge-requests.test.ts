import { describe, expect, it } from 'vitest';
import { judgeRequests } from '../../../../src/gate/detectors/composite/judge-requests.js';
import type { ItemView, SaturationDetector } from '../../../../src/index.js';
import type { QuotaFigures, RequestWait, SessionFigures } from '../../../../src/types/index.js';
import { fakeItem } from '../../../support/fake-item.js';
import { fakeEndpoint } from '../../../support/fake-pool.js';

const endpoints = ['a', 'b', 'c'].map((id) => fakeEndpoint(id));
const item = fakeItem();
const plain: SaturationDetector = { type: 'plain', saturation: () => 0 };

/** Has room for a request at these endpoints; notes where it was asked about. */
function judge(ids: string, wait?: Partial<RequestWait>, asked: string[] = []): SaturationDetector {
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

const idsOf = (of: ReturnType<typeof judgeRequests>): string | undefined =>
  of.withRoomFor?.(endpoints, item, 5).map(({ id }) => id).join(''); // biome-ignore format: one chain

describe('where a request has room', () => {
  it('is nobody’s question where no detector judges single requests', () => {
    expect(judgeRequests([plain, { ...plain, sessionOf: () => undefined }])).not.toHaveProperty('withRoomFor');
    expect(judgeRequests([])).toEqual({});
  });

  it('is where all that judge it have room', () => {
    expect(idsOf(judgeRequests([plain, judge('abc'), judge('bc'), plain, judge('ab')]))).toBe('b');
    expect(idsOf(judgeRequests([judge('a'), judge('b')]))).toBe('');
  });

  it('is asked of each about what the others left, and not once nothing is left', () => {
    const asked: string[] = [];
    idsOf(judgeRequests([judge('ab', undefined, asked), judge('', undefined, asked), judge('a', undefined, asked)]));
    expect(asked).toEqual(['abc', 'ab']);
  });

  it('is asked of each about the endpoints that it judges, and the others stay', () => {
    const asked: string[] = [];
    const [none, all] = [judge('', undefined, asked), judge('ab', undefined, asked)];
    const of = judgeRequests([none, all], (detector, { id }) => (detector === none ? id === 'c' : id !== 'b'));
    expect([idsOf(of), asked]).toEqual(['ab', ['c', 'a']]);
  });
});

describe('what a request waits for', () => {
  /** Has no room anywhere. */
  const full = (name: string, wait?: Partial<RequestWait>): SaturationDetector => ({
    ...judge(name, wait),
    withRoomFor: () => [],
  });
  const waitOf = (
    detectors: readonly SaturationDetector[],
    isJudgeOf?: Parameters<typeof judgeRequests>[1],
  ): RequestWait | undefined => judgeRequests(detectors, isJudgeOf).waitOf?.(endpoints, item, 5);

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
    expect(waitOf([part, elsewhere], (detector, { id }) => detector === part && id !== 'c')).toEqual({
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

describe('the session of a request', () => {
  const by = (sessionOf: (of: ItemView) => string | undefined): SaturationDetector => ({ ...plain, sessionOf });

  it('is asked of those that tell sessions apart', () => {
    expect(judgeRequests([plain])).not.toHaveProperty('sessionOf');
    const seen: ItemView[] = [];
    const one = judgeRequests([plain, by((of) => `s${seen.push(of)}`), plain]);
    expect([one.sessionOf?.(item), seen]).toEqual(['s1', [item]]);
    expect(judgeRequests([by(() => undefined)]).sessionOf?.(item)).toBeUndefined();
  });

  it('is another one where any of several says so', () => {
    const of = (...answers: (string | undefined)[]): string | undefined =>
      judgeRequests(answers.map((answer) => by(() => answer))).sessionOf?.(item);
    const all = [of('s', 't'), of('s', 'u'), of('v', 't'), of('t', 's'), of('s', undefined), of(undefined, undefined)];
    expect(new Set(all).size).toBe(all.length);
    expect(of('s', 't')).toBe(of('s', 't'));
  });
});

describe('figures of single requests', () => {
  const quotas: QuotaFigures = { quotas: [], unreported: 1, ignoredReports: 2, ignoredFigures: 3, refusals: 4 };
  const sessions: SessionFigures = { resident: 1, idle: 2, maxSessions: 3, waiting: 4, tokens: 5, expired: 6 };

  it('are those of all that tell them, added up', () => {
    const asked: unknown[] = [];
    const teller: SaturationDetector = {
      ...plain,
      quotas: (nowMs) => {
        asked.push(nowMs);
        return quotas;
      },
      sessions: (held, nowMs) => {
        asked.push(held, nowMs);
        return sessions;
      },
    };
    const of = judgeRequests([plain, teller, plain, teller]);
    expect(of.quotas?.(7)).toEqual({ quotas: [], unreported: 2, ignoredReports: 4, ignoredFigures: 6, refusals: 8 });
    expect(of.sessions?.([item], 8)).toEqual({
      resident: 2,
      idle: 4,
      maxSessions: 6,
      waiting: 8,
      tokens: 10,
      expired: 12,
    });
    expect(asked).toEqual([7, 7, [item], 8, [item], 8]);
  });

  it('are none where nobody tells them', () => {
    expect(judgeRequests([{ ...plain, quotas: () => quotas }])).not.toHaveProperty('sessions');
    expect(judgeRequests([{ ...plain, sessions: () => sessions }])).not.toHaveProperty('quotas');
  });
});
