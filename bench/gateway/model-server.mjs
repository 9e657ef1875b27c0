// The model server behind every proxy: a small JSON answer, or a stream of events at a fixed pace. Tells its port to
// the parent.
import { createServer } from 'node:http';

const answer = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'hello, and what else can I do for you?' },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 12, completion_tokens: 9, total_tokens: 21 },
});
const eventOf = (content) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: { content } }] })}\n\n`;
const event = eventOf(' token');
const usage = `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [], usage: { prompt_tokens: 12, completion_tokens: 9 } })}\n\n`;

function stream(res, { events, everyMs }) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  let left = events;
  const timer = setInterval(() => {
    if (left-- > 0) return res.write(event);
    clearInterval(timer);
    res.end(`${usage}data: [DONE]\n\n`);
  }, everyMs);
  res.once('close', () => clearInterval(timer));
}

const server = createServer((req, res) => {
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('end', () => {
    const body = JSON.parse(Buffer.concat(chunks).toString());
    if (body.stream) stream(res, body.metadata);
    else res.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 4096, () => process.send(server.address().port));
process.on('disconnect', () => process.exit(0));
