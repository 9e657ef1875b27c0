import { expect, it } from 'vitest';
import { targetUrl } from '../../src/upstream/asking.js';
import { fakeEndpoint } from '../support/fake-pool.js';

it.each([
  ['10.0.0.1:8000', 'http://10.0.0.1:8000/metrics'],
  ['gpu-0', 'http://gpu-0/metrics'],
  ['https://gpu-0.example:8443/v1?x=1', 'https://gpu-0.example:8443/metrics'],
  ['fe80::1', 'http://[fe80::1]/metrics'],
  ['[fe80::1]:8000', 'http://[fe80::1]:8000/metrics'],
])('an endpoint at %s is asked at %s', (address, url) => {
  expect(targetUrl(fakeEndpoint(address), '/metrics')).toBe(url);
  expect(targetUrl(fakeEndpoint('other', { labels: { address } }), '/metrics')).toBe(url);
});

it.each([['file:///etc/passwd'], ['not a host'], ['http://']])('there is none to ask at %j', (address) => {
  expect(() => targetUrl(fakeEndpoint('a', { labels: { address } }), '/metrics')).toThrow('no URL of http or https');
});
