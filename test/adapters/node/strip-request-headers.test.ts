import { describe, expect, it } from 'vitest';
import { type NodeRequest, stripRequestHeaders } from '../../../src/adapters/node/index.js';

/** Node's own way: derived from rawHeaders when first read, by the count that was received. */
function request(rawHeaders: string[]) {
  const count = rawHeaders.length;
  let headers: Record<string, string> | undefined;
  return {
    rawHeaders,
    get headers() {
      headers ??= Object.fromEntries(
        Array.from({ length: count / 2 }, (_, i) => [rawHeaders[2 * i]!.toLowerCase(), rawHeaders[2 * i + 1]!]),
      );
      return headers;
    },
    headersDistinct: { 'x-slo-ttft-ms': ['5'], host: ['here'] } as Record<string, string[]>,
  };
}

describe('stripRequestHeaders', () => {
  it('takes the flow headers off all forms', () => {
    const req = request([
      'Host',
      'here',
      'X-SLO-TTFT-ms',
      '5',
      'x-llm-d-inference-objective',
      'vip',
      'X-User',
      'u',
      'x-slo-ttft-ms',
      '6',
    ]);
    stripRequestHeaders(req as unknown as NodeRequest);
    expect(req.rawHeaders).toEqual(['Host', 'here', 'X-User', 'u']);
    expect(req.headers).toEqual({ host: 'here', 'x-user': 'u' });
    expect(req.headersDistinct).toEqual({ host: ['here'] });
  });

  it('leaves a request without any alone', () => {
    const rawHeaders = ['Host', 'here', 'X-User', 'x-slo-ttft-ms'];
    const req = request([...rawHeaders]);
    stripRequestHeaders(req as unknown as NodeRequest);
    expect(req.rawHeaders).toEqual(rawHeaders);
  });

  it('copes with HTTP/2, which has no headersDistinct', () => {
    const { rawHeaders, headers } = request([':path', '/', 'x-gateway-inference-fairness-id', 'a']);
    const req = { rawHeaders, headers };
    stripRequestHeaders(req as unknown as NodeRequest);
    expect(req.rawHeaders).toEqual([':path', '/']);
    expect(req.headers).toEqual({ ':path': '/' });
  });
});
