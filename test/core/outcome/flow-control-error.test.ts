import { describe, expect, it } from 'vitest';
import { explainDrop, FlowControlError } from '../../../src/index.js';
import { type DropName, drops } from '../../adapters/http/drops.js';

describe('FlowControlError', () => {
  it('has the shape of an http-errors error', () => {
    const error = new FlowControlError(drops.capacity);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'FlowControlError',
      message: 'At most 500 requests of priority 100 may wait, and 500 are waiting.',
      code: 'ERR_FLOW_SATURATED',
      outcome: 'RejectedCapacity',
      status: 429,
      statusCode: 429,
      headers: { 'retry-after': '3', 'retry-after-ms': '2300', 'cache-control': 'no-store' },
      expose: true,
      drop: drops.capacity,
    });
  });

  it.each<[DropName, status: number, retryAfter: string | undefined]>([
    ['maxBands', 429, '1'],
    ['overloaded', 503, '1'],
    ['displaced', 429, '1'],
    ['noEndpointsEvicted', 503, '1'],
    ['ttl', 503, '30'],
    ['gone', 503, undefined],
    ['shutdownEvicted', 500, undefined],
    ['internal', 500, undefined],
  ])('%s answers %d', (name, status, retryAfter) => {
    const error = new FlowControlError(drops[name]);
    expect(error.status).toBe(status);
    expect(error.headers['retry-after']).toBe(retryAfter);
  });

  it('takes the answer of another contract', () => {
    const error = new FlowControlError(drops.ttl, { status: 429, headers: { 'retry-after': '7' } });
    expect(error).toMatchObject({
      status: 429,
      statusCode: 429,
      headers: { 'retry-after': '7' },
      code: 'ERR_FLOW_TTL_EXPIRED',
    });
  });

  it('is recognized by its brand, so that another copy of the package counts too', () => {
    const foreign = Object.defineProperty(new Error('dropped'), Symbol.for('headgate.FlowControlError'), {
      value: true,
    });
    expect(foreign instanceof FlowControlError).toBe(true);
    expect(new Error('dropped') instanceof FlowControlError).toBe(false);
    expect((null as unknown) instanceof FlowControlError).toBe(false);
    expect(('text' as unknown) instanceof FlowControlError).toBe(false);
  });
});

describe('explainDrop', () => {
  it('caps the time to come back where told', () => {
    expect(explainDrop(drops.ttl).retryAfterSeconds).toBe(30);
    expect(explainDrop(drops.ttl, 600).retryAfterSeconds).toBe(120);
    expect(explainDrop(drops.ttl, 0).retryAfterSeconds).toBe(1);
  });
});
