import { describe, expect, it } from 'vitest';
import { readQuotas, readSessions, sumOfQuotas, sumOfSessions } from '../../src/gate/reported-figures.js';
import { quota, quotaFigures as quotas, sessionFigures as sessions } from '../support/reported-figures.js';

describe('figures of quotas', () => {
  it('are copied, so that nothing that happens to the answer later reaches a reader', () => {
    const answer = { ...quotas, quotas: [quota] };
    const read = readQuotas({ ...answer, more: 'than asked' });
    expect(read).toEqual(quotas);
    answer.quotas.pop();
    expect(read?.quotas).toHaveLength(1);
  });

  it.each(['unreported', 'ignoredReports', 'ignoredFigures', 'refusals'])('have a number of %s', (name) => {
    for (const wrong of [undefined, null, '1', Number.NaN])
      expect(readQuotas({ ...quotas, [name]: wrong })).toBeUndefined();
  });

  it.each(['limit', 'perMs', 'used', 'reserved', 'resetsInMs', 'waitMs', 'restsForMs'])(
    'have a %s for each quota',
    (name) => {
      for (const wrong of [undefined, '1', Number.NaN]) {
        expect(readQuotas({ ...quotas, quotas: [quota, { ...quota, [name]: wrong }] })).toBeUndefined();
      }
    },
  );

  it.each(['group', 'unit'])('have a %s for each quota, as text', (name) => {
    expect(readQuotas({ ...quotas, quotas: [{ ...quota, [name]: 5 }] })).toBeUndefined();
  });

  it.each([
    [undefined],
    [null],
    ['quotas'],
    [7],
    [{ ...quotas, quotas: { length: 0 } }],
    [{ ...quotas, quotas: [null] }],
  ])('are not %j', (answer) => {
    expect(readQuotas(answer)).toBeUndefined();
  });

  it('add up: the quotas one after the other, and each count', () => {
    const other = {
      quotas: [{ ...quota, group: 'other' }],
      unreported: 10,
      ignoredReports: 20,
      ignoredFigures: 30,
      refusals: 40,
    };
    const { quotas: all, ...counts } = sumOfQuotas([quotas, other, quotas]);
    expect(all.map(({ group }) => group)).toEqual(['key', 'other', 'key']);
    expect(counts).toEqual({ unreported: 12, ignoredReports: 24, ignoredFigures: 36, refusals: 48 });
  });
});

describe('figures of sessions', () => {
  it('are copied, without what nobody asked for', () => {
    expect(readSessions({ ...sessions, more: 'than asked' })).toEqual(sessions);
  });

  it.each(['resident', 'idle', 'maxSessions', 'waiting', 'tokens', 'expired'])('have a number of %s', (name) => {
    for (const wrong of [undefined, null, '1', Number.NaN])
      expect(readSessions({ ...sessions, [name]: wrong })).toBeUndefined();
  });

  it('tell of sessions elsewhere where they are shared, and leave out what is no count of them', () => {
    expect(readSessions({ ...sessions, elsewhere: 2 })).toEqual({ ...sessions, elsewhere: 2 });
    expect(readSessions({ ...sessions, elsewhere: 0 })).toEqual({ ...sessions, elsewhere: 0 });
    for (const wrong of [undefined, '2', -1, Number.NaN]) {
      expect(readSessions({ ...sessions, elsewhere: wrong })).not.toHaveProperty('elsewhere');
    }
  });

  it('add up, those elsewhere over the limits that are shared', () => {
    const sum = { resident: 6, idle: 2, maxSessions: Number.POSITIVE_INFINITY, waiting: 4, tokens: 200, expired: 8 };
    expect(sumOfSessions([sessions, sessions])).toEqual(sum);
    expect(sumOfSessions([{ ...sessions, elsewhere: 2 }, sessions])).toEqual({ ...sum, elsewhere: 2 });
    expect(
      sumOfSessions([
        { ...sessions, elsewhere: 2 },
        { ...sessions, elsewhere: 5 },
      ]),
    ).toEqual({ ...sum, elsewhere: 7 });
  });
});
