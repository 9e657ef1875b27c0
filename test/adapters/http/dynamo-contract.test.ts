import { describe, expect, it } from 'vitest';
import { dynamoBody, dynamoContract, dynamoOverloadStatus, toHttpResponse } from '../../../src/adapters/http/index.js';
import { drops } from './drops.js';

const answer = (drop: keyof typeof drops, status?: number) =>
  toHttpResponse(drops[drop], { contract: dynamoContract(status), body: dynamoBody, random: () => 0 });

describe('dynamoContract', () => {
  it('answers overload with the documented status and body, and Retry-After', () => {
    const { status, headers, body } = answer('capacity');
    expect(status).toBe(503);
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'retry-after': '3' });
    expect(JSON.parse(body)).toEqual({
      message: 'Service temporarily unavailable: All workers are busy, please retry later',
      type: 'service_unavailable',
      code: 503,
    });
    expect(answer('ttl').status).toBe(503);
  });

  it('answers as later releases at 529', () => {
    const { status, headers, body } = answer('ttl', 529);
    expect(status).toBe(529);
    expect(headers['retry-after']).toBe('30');
    expect(JSON.parse(body)).toEqual({ message: 'Service temporarily overloaded', type: 'Overloaded', code: 529 });
  });

  it('keeps what is no overload apart from it', () => {
    expect(answer('noEndpointsEvicted', 529).status).toBe(503);
    expect(answer('shutdownEvicted', 529).status).toBe(503);
    expect(answer('gone', 529).status).toBe(503);
    expect(answer('internal', 529).status).toBe(500);
    expect(JSON.parse(answer('internal').body)).toMatchObject({ type: 'internal_server_error', code: 500 });
    expect(JSON.parse(answer('noEndpointsEvicted', 529).body).message).not.toContain('busy');
  });

  it('reads the status from the environment as Dynamo does', () => {
    expect(['503', '429', '999', '199', '1000', ' 503', 'abc', '', undefined].map(dynamoOverloadStatus)).toEqual([
      503, 429, 999, 529, 529, 529, 529, 529, 529,
    ]);
  });
});

describe("contract 'dynamo'", () => {
  it('is the documented status and body by one word', () => {
    const { status, headers, body } = toHttpResponse(drops.overloaded, { contract: 'dynamo', random: () => 0 });
    expect(status).toBe(503);
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'retry-after': '1' });
    expect(JSON.parse(body)).toEqual({
      message: 'Service temporarily unavailable: All workers are busy, please retry later',
      type: 'service_unavailable',
      code: 503,
    });
  });
});
