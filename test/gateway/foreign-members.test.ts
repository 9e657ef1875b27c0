import { describe, expect, it } from 'vitest';
import { fileOf, startGateway } from './support/gateway.js';
import { startUpstream } from './support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };

describe('a member that the host adds to the pool of a gateway', () => {
  it.each([
    ['an address', { labels: { address: '127.0.0.1:1' } }],
    ['labels that say nothing', { labels: { zone: 'a' } }],
    ['no labels', {}],
  ])('gets no request, with %s; the servers of the file serve on', async (_name, settings) => {
    const upstream = await startUpstream();
    const { gateway, post, log } = await startGateway(fileOf([upstream.url], {}, 4));
    gateway.pool.add('foreign', settings);
    const answers = await Promise.all(Array.from({ length: 12 }, () => post(chat)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 200));
    expect(gateway.pool.endpoints.map(({ id }) => id)).not.toContain('foreign');
    expect(log).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        event: 'foreign-server',
        fields: expect.objectContaining({ endpoint: 'foreign' }),
      }),
    );
  });
});
