import { describe, expect, it } from 'vitest';
import {
  type BusyThresholdHandlerOptions,
  busyThresholdHandler,
  type HandlerResponse,
} from '../../../src/adapters/http/index.js';
import { busyThresholdDetector } from '../../../src/index.js';
import type { BusyThresholdDetector } from '../../../src/types/index.js';

type Models = BusyThresholdHandlerOptions['models'];

function setUp(models: Models = { llama: busyThresholdDetector({ activeDecodeBlocksThreshold: 0.85 }) }) {
  const handle = busyThresholdHandler({ models, authorize: () => true });
  const post = (
    body: unknown,
    headers: Record<string, string> = { 'Content-Type': 'application/json; charset=utf-8' },
  ): Promise<HandlerResponse> =>
    handle({ method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
  return { handle, post, get: () => handle({ method: 'GET', headers: {} }) };
}
const parsed = ({ body }: HandlerResponse): unknown => JSON.parse(body);

describe('busyThresholdHandler', () => {
  it('answers GET with every model, null where a threshold is off', async () => {
    const { get } = setUp(new Map([['llama', busyThresholdDetector()]]));
    const answer = await get();
    expect(answer.status).toBe(200);
    expect(answer.headers).toEqual({ 'content-type': 'application/json', 'cache-control': 'no-store' });
    expect(parsed(answer)).toEqual({
      thresholds: [
        {
          model: 'llama',
          active_decode_blocks_threshold: null,
          active_prefill_tokens_threshold: null,
          active_prefill_tokens_threshold_frac: null,
        },
      ],
    });
  });

  it('moves what is given, on every detector of the model, and leaves null alone', async () => {
    const detectors = [busyThresholdDetector({ activeDecodeBlocksThreshold: 0.85 }), busyThresholdDetector()];
    const { post } = setUp({ llama: detectors });
    const answer = await post({
      model: 'llama',
      active_decode_blocks_threshold: null,
      active_prefill_tokens_threshold: 5000,
    });
    expect(parsed(answer)).toEqual({
      model: 'llama',
      active_decode_blocks_threshold: 0.85,
      active_prefill_tokens_threshold: 5000,
      active_prefill_tokens_threshold_frac: null,
    });
    expect(detectors.map(({ thresholds }) => thresholds.activePrefillTokensThreshold)).toEqual([5000, 5000]);
  });

  it.each<[string, unknown, number, string]>([
    ['broken JSON', '{"model":', 400, 'not valid JSON'],
    [
      'a share above 1',
      { model: 'llama', active_decode_blocks_threshold: 1.5 },
      400,
      'active_decode_blocks_threshold must be between 0.0 and 1.0, got 1.5',
    ],
    [
      'a negative fraction',
      { model: 'llama', active_prefill_tokens_threshold_frac: -1 },
      400,
      'finite and at least 0.0, got -1',
    ],
    [
      'an unknown model',
      { model: 'nope', active_prefill_tokens_threshold: 1 },
      404,
      'can only be set for discovered models',
    ],
    ['a name of every object', { model: 'constructor', active_prefill_tokens_threshold: 1 }, 404, 'discovered'],
    ['no model', { active_prefill_tokens_threshold: 1 }, 422, 'missing field model'],
    ['a model that is no text', { model: 5 }, 422, 'model must be a string'],
    [
      'a threshold that is no number',
      { model: 'llama', active_decode_blocks_threshold: '0.5' },
      422,
      'must be a number, got "0.5" (string)',
    ],
    [
      'half a token',
      { model: 'llama', active_prefill_tokens_threshold: 0.5 },
      422,
      'must be an integer from 0 up, got 0.5',
    ],
    ['no object', [], 422, 'expected a JSON object'],
    ['a long body', ' '.repeat(70_000), 413, 'longer than 65536'],
  ])('refuses %s', async (_, body, status, error) => {
    const detector = busyThresholdDetector();
    const answer = await setUp({ llama: detector }).post(body);
    expect(answer.status).toBe(status);
    expect(parsed(answer)).toEqual({ error: expect.stringContaining(error) });
    expect(detector.thresholds).toEqual({});
  });

  it('rejects other media types and methods', async () => {
    const { post, handle } = setUp();
    expect((await post({ model: 'llama' }, { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post({ model: 'llama' }, {})).status).toBe(415);
    const answer = await handle({ method: 'DELETE', headers: {} });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, POST']);
  });

  it('answers a query for an unknown model with nulls', async () => {
    const answer = await setUp().post({ model: 'nope' });
    expect([answer.status, parsed(answer)]).toEqual([
      200,
      expect.objectContaining({ model: 'nope', active_decode_blocks_threshold: null }),
    ]);
  });

  it('lets nobody in whom the host does not vouch for, before it reads anything', async () => {
    const detector = busyThresholdDetector();
    const models: Record<string, BusyThresholdDetector> = { llama: detector };
    const headers = new Headers({ 'content-type': 'application/json', 'x-operator': 'no' });
    const body = JSON.stringify({ model: 'llama', active_prefill_tokens_threshold: 1 });
    const handle = busyThresholdHandler({
      models,
      authorize: async (request) => (request.headers as Headers).get('x-operator') === 'yes',
    });
    expect((await handle({ method: 'POST', headers, body })).status).toBe(403);
    headers.set('x-operator', 'yes');
    expect((await handle({ method: 'POST', headers, body })).status).toBe(200);
    const careless = busyThresholdHandler({ models, authorize: (() => 'yes') as never });
    expect((await careless({ method: 'GET', headers })).status).toBe(403);
    expect(() => busyThresholdHandler({ models } as never)).toThrow(
      'busyThresholdHandler: authorize: expected a function',
    );
    expect(() => busyThresholdHandler({} as never)).toThrow('busyThresholdHandler: 2 problems');
  });

  it('passes the failure of an authorization on to the host', async () => {
    const authorize = (): never => {
      throw new Error('directory is down');
    };
    await expect(busyThresholdHandler({ models: {}, authorize })({ method: 'GET', headers: {} })).rejects.toThrow(
      'directory is down',
    );
  });
});
