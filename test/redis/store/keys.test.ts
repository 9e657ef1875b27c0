import { expect, it } from 'vitest';
import { budgetKeys, channelOf, fairnessKeys, leaseKey, quotaKey } from '../../../src/redis/store/keys.js';

const space = { prefix: 'p', name: 'chat', hashKeys: false };

it('keys and channels are named by the prefix, what is shared, and the part', () => {
  expect([leaseKey(space, undefined), leaseKey(space, 'a')]).toEqual(['p:{chat}:lease', 'p:{chat}:lease:a']);
  expect(budgetKeys(space, 'acme', [{ name: 'rpm' }, { name: 'tpm' }])).toEqual([
    'p:{chat:acme}:rpm',
    'p:{chat:acme}:tpm',
  ]);
  expect(quotaKey(space, 'account A')).toBe('p:{chat:account%20A}:quota');
  expect(fairnessKeys(space)).toEqual(['p:{chat}:fairness:served', 'p:{chat}:fairness:heard']);
  expect([channelOf(space, 'marks'), channelOf(space, 'sessions')]).toEqual(['p:{chat}:marks', 'p:{chat}:sessions']);
});

it('what would end the braces is encoded, half a character is another one, and a hash hides the name', () => {
  expect(budgetKeys(space, 'a}b{', [{ name: 'rpm' }])).toEqual(['p:{chat:a%7Db%7B}:rpm']);
  expect(budgetKeys(space, 'a\ud800', [{ name: 'rpm' }])).toEqual(budgetKeys(space, 'a\ufffd', [{ name: 'rpm' }]));
  expect(budgetKeys({ ...space, hashKeys: true }, 'acme', [{ name: 'rpm' }])[0]).toMatch(
    /^p:\{chat:[0-9a-f]{32}\}:rpm$/,
  );
});

it('a quota with a long name is known by a hash', () => {
  expect(quotaKey(space, 'x'.repeat(200))).toContain('xxx');
  expect(quotaKey(space, 'x'.repeat(201))).toMatch(/^p:\{chat:[0-9a-f]{32}\}:quota$/);
});
