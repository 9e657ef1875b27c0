import { expect, it } from 'vitest';
import { bucketKey, channelOf, fairnessKeys, leaseKey } from '../../../src/redis/store/keys.js';

const space = { prefix: 'p', name: 'chat', hashKeys: false };

it('keys and channels are named by the prefix, what is shared, and the part', () => {
  expect([leaseKey(space, undefined), leaseKey(space, 'a')]).toEqual(['p:{chat}:lease', 'p:{chat}:lease:a']);
  expect(['rpm', 'tpm'].map((name) => bucketKey(space, 'acme', name))).toEqual([
    'p:{chat:acme}:rpm',
    'p:{chat:acme}:tpm',
  ]);
  expect(bucketKey(space, 'account A', 'quota')).toBe('p:{chat:account%20A}:quota');
  expect(fairnessKeys(space)).toEqual(['p:{chat}:fairness:served', 'p:{chat}:fairness:heard']);
  expect([channelOf(space, 'marks'), channelOf(space, 'sessions')]).toEqual(['p:{chat}:marks', 'p:{chat}:sessions']);
});

it('what would end the braces is encoded, half a character is another one, and a hash hides the name', () => {
  expect(bucketKey(space, 'a}b{', 'rpm')).toBe('p:{chat:a%7Db%7B}:rpm');
  expect(bucketKey(space, 'a\ud800', 'rpm')).toBe(bucketKey(space, 'a\ufffd', 'rpm'));
  expect(bucketKey({ ...space, hashKeys: true }, 'acme', 'rpm')).toMatch(/^p:\{chat:[0-9a-f]{32}\}:rpm$/);
});

it('a payer, or a group, with a long name is known by a hash', () => {
  expect(bucketKey(space, 'x'.repeat(200), 'quota')).toContain('xxx');
  expect(bucketKey(space, 'x'.repeat(201), 'quota')).toMatch(/^p:\{chat:[0-9a-f]{32}\}:quota$/);
});
