import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fromAddresses } from '../../../src/adapters/node/index.js';
import { FlowConfigError } from '../../../src/index.js';

const from = (remoteAddress: string | undefined) => ({ socket: { remoteAddress } });

describe('fromAddresses', () => {
  it.each([
    ['10.0.0.0/8', '10.200.3.4', true],
    ['10.0.0.0/8', '::ffff:10.200.3.4', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.0/8', '::ffff:11.0.0.1', false],
    ['127.0.0.1', '127.0.0.1', true],
    ['127.0.0.1', '127.0.0.2', false],
    ['fd00::/8', 'fd12::1', true],
    ['fd00::/8', 'fe80::1', false],
    ['::1', '::1', true],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['fe80::1', 'fe80::1%eth0', true],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', 'fd00::1', false],
  ])('%s has %s: %s', (range, address, isIn) => {
    expect(fromAddresses([range])(from(address))).toBe(isIn);
  });

  it('believes no socket that is gone or has no address, and nobody where no range is given', () => {
    expect(fromAddresses(['0.0.0.0/0', '::/0'])(from(undefined))).toBe(false);
    expect(fromAddresses(['0.0.0.0/0', '::/0'])(from('/run/headgate.sock'))).toBe(false);
    expect(fromAddresses([])(from('127.0.0.1'))).toBe(false);
  });

  it.each([
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '::/129',
    'fe80::1%eth0',
    'fe80::%eth0/10',
    7,
  ])('refuses %j', (range) => {
    expect(() => fromAddresses(['10.0.0.1', range as string])).toThrow(FlowConfigError);
    expect(() => fromAddresses(['10.0.0.1', range as string])).toThrow(
      'fromAddresses: [1]: expected an IPv4 or IPv6 address, or a range',
    );
  });

  it.each(['10.0.0.0/8', undefined, { 0: '10.0.0.0/8' }])('rejects %j in place of a list', (ranges) => {
    expect(() => fromAddresses(ranges as never)).toThrow(
      'fromAddresses: expected a list of addresses and ranges; got ',
    );
  });

  it('knows a client of a socket for both families', async () => {
    const believed: boolean[] = [];
    const trust = fromAddresses(['127.0.0.0/8']);
    const server = http.createServer((req, res) => {
      believed.push(trust(req));
      res.end();
    });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    onTestFinished(() => void server.close());
    await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).text();
    expect(believed).toEqual([true]);
  });
});
