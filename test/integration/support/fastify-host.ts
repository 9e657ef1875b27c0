/** The application on Fastify 5. */
import type { Server } from 'node:net';
import { PassThrough } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { flowControl } from '../../../src/adapters/fastify/index.js';
import { type Application, pathOf } from './application.js';

export async function fastifyServer(
  isHttp2: boolean,
  { gate, options, handler, before, onError }: Application,
): Promise<Server> {
  const app = (isHttp2 ? fastify({ http2: true }) : fastify()) as FastifyInstance;
  app.removeAllContentTypeParsers();
  // Leaves the body to the handler.
  app.addContentTypeParser('*', (_request: FastifyRequest, _payload: unknown, done: (error: null) => void) =>
    done(null),
  );
  app.addHook('onRequest', async (request) => before?.(request.raw));
  app.addHook('onError', async (_request, _reply, error) => onError?.(error));
  await app.register(flowControl(gate, options));
  app.all('/*', async (request, reply) => {
    await handler({
      req: request.raw,
      path: pathOf(request.url),
      flow: request.flow,
      send: (status, body) => void reply.code(status).send(body),
      stream() {
        const body = new PassThrough();
        reply.type('text/event-stream').send(body);
        return body;
      },
    });
    return reply;
  });
  await app.ready();
  return app.server;
}
