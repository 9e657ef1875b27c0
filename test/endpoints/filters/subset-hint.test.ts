import { describe, expect, it } from 'vitest';
import { endpointsInSubset, subsetHintFromText } from '../../../src/endpoints/filters/subset-hint-filter.js';
import { EndpointPool } from '../../../src/index.js';

function pool(...ids: string[]): EndpointPool {
  const members = new EndpointPool();
  for (const id of ids) members.add(id);
  return members;
}

function chosen(members: EndpointPool, hint: readonly unknown[] | undefined | null): string[] {
  return endpointsInSubset(members.endpoints, hint).map(({ id }) => id);
}

describe('endpointsInSubset', () => {
  const members = pool('10.0.0.1', '10.0.0.2:8000', 'http://10.0.0.3:8000/v1', '[fd00::1]:8000');

  it('allows all without a hint, and none with an empty one', () => {
    expect(chosen(members, undefined)).toHaveLength(4);
    expect(chosen(members, null)).toHaveLength(4);
    expect(chosen(members, [])).toEqual([]);
    expect(chosen(members, ['', 7, null])).toEqual([]);
  });

  it('compares the IPs, in the order of the pool', () => {
    expect(chosen(members, ['10.0.0.3:1', 5, '10.0.0.1:8080'])).toEqual(['10.0.0.1', 'http://10.0.0.3:8000/v1']);
    expect(chosen(members, ['fd00::1'])).toEqual(['[fd00::1]:8000']);
    expect(chosen(members, ['[FD00::1]:9'])).toEqual(['[fd00::1]:8000']);
    expect(chosen(members, ['10.0.0.9:8000'])).toEqual([]);
  });

  it('goes by the label when an endpoint is named otherwise', () => {
    const named = new EndpointPool();
    named.add('server-a', { labels: { address: '10.0.0.1:8000' } });
    named.add('server-b', { labels: { address: '10.0.0.2:8000' } });
    expect(chosen(named, ['10.0.0.2:8000'])).toEqual(['server-b']);
  });
});

describe('subsetHintFromText', () => {
  it('tells no hint from an empty one', () => {
    expect(subsetHintFromText(undefined)).toBeUndefined();
    expect(subsetHintFromText(null)).toBeUndefined();
    expect(subsetHintFromText(' ')).toEqual([]);
    expect(subsetHintFromText('10.0.0.1:80, 10.0.0.2:80,')).toEqual(['10.0.0.1:80', '10.0.0.2:80']);
  });
});
