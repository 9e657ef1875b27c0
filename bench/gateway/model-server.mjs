// The model server behind every proxy. It answers at once, or streams events at the pace that `metadata` of the request
// asks for. Tells its port to the parent.
import { createServer } from 'node:http';

const text = 'hello, and what else can I do for you?';
const eventOf = (data, name) => `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' };
const delta = { choices: [{ index: 0, delta: { content: ' token' } }] };
const chatEvent = eventOf({ ...chunk, ...delta });
/** As OpenAI pads its events: the member beside the content is another one each time. */
const changingEvents = Array.from({ length: 64 }, (_, serial) =>
  eventOf({ ...chunk, ...delta, obfuscation: (serial * 7919 + 104_729).toString(36).repeat(1 + (serial % 4)) }),
);
const chatEnd = `${eventOf({ ...chunk, choices: [], usage: { prompt_tokens: 12, completion_tokens: 9 } })}data: [DONE]\n\n`;

const messageDelta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ' token' } };
const textDelta = {
  type: 'response.output_text.delta',
  item_id: 'msg_1',
  output_index: 0,
  content_index: 0,
  delta: ' token',
};
const response = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'm',
  output: [{ type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text }] }],
  usage: { input_tokens: 12, output_tokens: 9, total_tokens: 21 },
};
const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' };
const messageUsage = { input_tokens: 12, output_tokens: 9 };

/** Each interface: its answer as JSON, an event of its stream, and what begins and ends the stream. */
const interfaces = {
  '/v1/chat/completions': {
    json: {
      ...chunk,
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 12, completion_tokens: 9, total_tokens: 21 },
    },
    begin: '',
    event: chatEvent,
    end: chatEnd,
  },
  '/v1/responses': {
    json: response,
    begin: eventOf({ type: 'response.created', response: { id: 'resp_1', status: 'in_progress' } }, 'response.created'),
    event: eventOf(textDelta, textDelta.type),
    end: eventOf({ type: 'response.completed', response }, 'response.completed'),
  },
  '/v1/messages': {
    json: { ...message, content: [{ type: 'text', text }], stop_reason: 'end_turn', usage: messageUsage },
    begin: eventOf(
      { type: 'message_start', message: { ...message, content: [], usage: messageUsage } },
      'message_start',
    ),
    event: eventOf(messageDelta, messageDelta.type),
    end:
      eventOf(
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } },
        'message_delta',
      ) + eventOf({ type: 'message_stop' }, 'message_stop'),
  },
};
for (const one of Object.values(interfaces)) one.json = JSON.stringify(one.json);

const eventsAtOnce = 9;

function stream(res, { begin, event, end }, pace) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  if (pace === undefined) {
    res.write(begin);
    for (let i = 0; i < eventsAtOnce; i++) res.write(event);
    res.end(end);
    return;
  }
  const { events, everyMs, changes, beginsAtOnce } = pace;
  if (beginsAtOnce) res.write(event);
  let sent = 0;
  const timer = setInterval(() => {
    if (sent++ < events) return res.write(changes ? changingEvents[sent % changingEvents.length] : event);
    clearInterval(timer);
    res.end(end);
  }, everyMs);
  res.once('close', () => clearInterval(timer));
}

const server = createServer((req, res) => {
  const chunks = [];
  req.on('data', (part) => chunks.push(part));
  req.on('end', () => {
    const asked = interfaces[req.url];
    if (asked === undefined) return res.writeHead(404).end();
    const body = JSON.parse(Buffer.concat(chunks).toString());
    if (body.stream) stream(res, asked, body.metadata);
    else res.writeHead(200, { 'content-type': 'application/json' }).end(asked.json);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 8192, () => process.send(server.address().port));
process.on('disconnect', () => process.exit(0));
