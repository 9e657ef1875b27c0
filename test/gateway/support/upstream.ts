/** A model server whose every answer is in the hands of the test. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

interface Received {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly body: string;
}

export interface Upstream {
  readonly url: string;
  readonly server: Server;
  /** Requests for answers, in the order in which their bodies were whole. */
  readonly received: Received[];
}

export type Answer = (received: Received, index: number) => void;

/** What servers say of themselves, with nothing waiting. */
export const idleMetrics =
  '# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 0\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 0\n' +
  '# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc 0\n';

function completion(content: string, model = 'llama'): object {
  return {
    id: 'c1',
    object: 'chat.completion',
    created: 0,
    model,
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  };
}

export function sse(content: string): string {
  const chunk = {
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 0,
    model: 'llama',
    choices: [{ index: 0, delta: { content } }],
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

/** Answers with the whole, or streams it, as it was asked. */
export const serve: Answer = ({ res, body }) => {
  const { stream, model } = JSON.parse(body || '{}');
  if (stream !== true) {
    res.setHeader('content-type', 'application/json').end(JSON.stringify(completion('served', model)));
    return;
  }
  res.setHeader('content-type', 'text/event-stream').write(sse('ser'));
  res.write(sse('ved'));
  res.end('data: [DONE]\n\n');
};

export async function startUpstream(answer: Answer = serve): Promise<Upstream> {
  const received: Received[] = [];
  const server = createServer(async (req, res) => {
    if (req.url === '/metrics') {
      res.end(idleMetrics);
      return;
    }
    if (req.url === '/v1/models') {
      const data = [{ id: 'llama', object: 'model', created: 1, owned_by: 'test' }];
      res.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data }));
      return;
    }
    let body = '';
    try {
      for await (const chunk of req) body += chunk;
    } catch {
      return;
    }
    const one = { req, res, body };
    received.push(one);
    answer(one, received.length - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, received };
}
