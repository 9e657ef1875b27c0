/** A model server of the interfaces of OpenAI and Anthropic on a real socket, which answers as a test tells it. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: { readonly model?: string; readonly stream?: boolean };
  readonly res: ServerResponse;
  /** The caller closed the connection before the answer was whole. */
  wasLeft: boolean;
}

export type Behaviour = (asked: Asked) => void;

export interface ModelServer {
  readonly url: string;
  readonly asked: Asked[];
  /** For requests from now on. */
  behave: Behaviour;
}

const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
const chat = { id: 'c1', object: 'chat.completion', created: 0, model: 'llama' };
const message = {
  id: 'm1',
  type: 'message',
  role: 'assistant',
  model: 'llama',
  stop_reason: null,
  stop_sequence: null,
};

function isMessages({ path }: Asked): boolean {
  return path.endsWith('/messages');
}

function send(res: ServerResponse, type: string, event: object): void {
  res.write(`${type === '' ? '' : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`);
}

/** The head of a stream, before any content: a comment and a delta with nothing but a role. */
function beginStream(asked: Asked): void {
  const { res } = asked;
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(': keep-alive\n\n');
  if (isMessages(asked)) {
    send(res, 'message_start', {
      type: 'message_start',
      message: { ...message, content: [], usage: { input_tokens: 7, output_tokens: 0 } },
    });
    send(res, 'content_block_start', {
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'text', text: '' },
    });
  } else {
    send(res, '', {
      ...chat,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant', content: '' } }],
    });
  }
}

export function sendText(asked: Asked, text: string): void {
  const { res } = asked;
  if (isMessages(asked))
    send(res, 'content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
  else send(res, '', { ...chat, object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: text } }] });
}

function endStream(asked: Asked): void {
  const { res } = asked;
  if (isMessages(asked)) {
    send(res, 'content_block_stop', { type: 'content_block_stop', index: 0 });
    send(res, 'message_delta', {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { output_tokens: 2 },
    });
    send(res, 'message_stop', { type: 'message_stop' });
  } else {
    const last = { ...chat, object: 'chat.completion.chunk' };
    send(res, '', { ...last, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    send(res, '', { ...last, choices: [], usage });
    res.write('data: [DONE]\n\n');
  }
  res.end();
}

/** `ser` and `ved`, as a stream where one is asked for. */
export const serve: Behaviour = (asked) => {
  const { res, body } = asked;
  if (body.stream === true) {
    beginStream(asked);
    for (const text of ['ser', 'ved']) sendText(asked, text);
    endStream(asked);
    return;
  }
  const answer = isMessages(asked)
    ? {
        ...message,
        stop_reason: 'end_turn',
        content: [{ type: 'text', text: 'served' }],
        usage: { input_tokens: 7, output_tokens: 2 },
      }
    : {
        ...chat,
        choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'served' } }],
        usage,
      };
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
};

/** One piece of text, and then nothing. */
export const stall: Behaviour = (asked) => {
  beginStream(asked);
  sendText(asked, 'ser');
};

/** The head of a stream, and no content. */
export const think: Behaviour = (asked) => beginStream(asked);

/** Nothing at all. */
export const hang: Behaviour = () => {};

export function refuse(status: number, headers: Readonly<Record<string, string>> = {}): Behaviour {
  return ({ res }) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers });
    res.end('{"type":"error","error":{"type":"rate_limit_error","message":"Rate limit reached"}}');
  };
}

/** One behaviour for each request in turn; the last for all others. */
export function inTurn(...behaviours: readonly Behaviour[]): Behaviour {
  let next = 0;
  return (asked) => behaviours[Math.min(next++, behaviours.length - 1)]!(asked);
}

async function read(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

export interface BareModelServer extends ModelServer {
  close(): void;
}

/** For programs without a test runner: whoever starts it closes it. */
export async function startBareModelServer(behave: Behaviour = serve): Promise<BareModelServer> {
  const server = createServer((req, res) => void answer(req, res).catch(() => res.destroy()));
  const model: { url: string; asked: Asked[]; behave: Behaviour } = { url: '', asked: [], behave };
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const text = await read(req);
    const asked: Asked = {
      path: req.url ?? '',
      headers: req.headers,
      body: text === '' ? {} : JSON.parse(text),
      res,
      wasLeft: false,
    };
    res.on('close', () => {
      asked.wasLeft = !res.writableFinished;
    });
    model.asked.push(asked);
    model.behave(asked);
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  model.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return Object.assign(model, { close });
}
