import { describe, expect, it } from 'vitest';
import { EndpointPool } from '../../src/index.js';

describe('EndpointPool.remove', () => {
  it('leaves alone a server that took the name of the one it is given', () => {
    const pool = new EndpointPool();
    const old = pool.add('server');
    expect(pool.remove(old)).toBe(true);
    const replacement = pool.add('server');
    expect(pool.remove(old)).toBe(false);
    expect(pool.get('server')).toBe(replacement);
    expect(pool.remove(replacement)).toBe(true);
    expect(pool.endpoints).toEqual([]);
  });
});
