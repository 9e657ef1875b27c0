import { describe, expect, it } from 'vitest';
import {
  controlHeaders,
  fairnessIdHeader,
  objectiveHeader,
  sloTpotHeader,
  sloTtftHeader,
  systemOwnedHeaders,
} from '../../../src/adapters/http/index.js';

describe('header names', () => {
  it.each([
    [fairnessIdHeader, ['x-llm-d-inference-fairness-id', 'x-gateway-inference-fairness-id']],
    [objectiveHeader, ['x-llm-d-inference-objective', 'x-gateway-inference-objective']],
    [sloTtftHeader, ['x-llm-d-slo-ttft-ms', 'x-slo-ttft-ms']],
    [sloTpotHeader, ['x-llm-d-slo-tpot-ms', 'x-slo-tpot-ms']],
  ])('both generations are known, the newer first: %s', (names, expected) => {
    expect(names).toEqual(expected);
  });

  it.each([
    ...[
      'x-llm-d-inference-fairness-id',
      'x-gateway-inference-fairness-id',
      'x-llm-d-inference-objective',
      'x-gateway-inference-objective',
    ],
    ...[
      'x-llm-d-model-name-rewrite',
      'x-gateway-model-name-rewrite',
      'x-llm-d-slo-ttft-ms',
      'x-slo-ttft-ms',
      'x-llm-d-slo-tpot-ms',
    ],
    ...[
      'x-slo-tpot-ms',
      'x-llm-d-video-fps',
      'x-llm-d-video-duration-seconds',
      'x-llm-d-video-resolution',
      'x-llm-d-inference-ttl',
    ],
    ...[
      'x-gateway-destination-endpoint',
      'x-gateway-destination-endpoint-served',
      'x-gateway-destination-endpoint-subset',
    ],
    ...['x-llm-d-request-dropped-reason', 'content-length'],
  ])('the gateway owns %s', (name) => {
    expect(systemOwnedHeaders.has(name)).toBe(true);
  });

  it.each(['x-user-data', 'x-request-id', 'traceparent', 'authorization', 'content-type'])(
    'the gateway does not own %s',
    (name) => {
      expect(systemOwnedHeaders.has(name)).toBe(false);
    },
  );

  it('content-length is owned, but says nothing about flow control', () => {
    expect([...systemOwnedHeaders].filter((name) => !controlHeaders.has(name))).toEqual(['content-length']);
  });
});
