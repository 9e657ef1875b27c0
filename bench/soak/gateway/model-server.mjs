// One model server: answers whole or as a stream, after a while; now and then it refuses, fails, or breaks off. It is
// killed without warning. Arguments: its port, 0 for any, and a seed.
import { createServer } from 'node:http';
import { seededRandom } from '../../lib/random.mjs';

const [port, seed] = process.argv.slice(2).map(Number);
const random = seededRandom(seed);
const chance = (share) => random() < share;
const json = { 'content-type': 'application/json' };
const usage = { prompt_tokens: 12, completion_tokens: 9, total_tokens: 21 };

const eventOf = (choices, more) => `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices, ...more })}\n\n`;

function stream(res) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  let left = 1 + Math.floor(random() * 20);
  const breaksOff = chance(0.03);
  const timer = setInterval(() => {
    if (breaksOff && left === 1) return res.destroy();
    if (left-- > 0) return res.write(eventOf([{ index: 0, delta: { content: ' token' } }]));
    clearInterval(timer);
    return res.end(`${eventOf([], { usage })}data: [DONE]\n\n`);
  }, 5);
  res.once('close', () => clearInterval(timer));
}

function refuse(res) {
  const status = [429, 500, 503, 529][Math.floor(random() * 4)];
  const headers = chance(0.5) ? { ...json, 'retry-after-ms': '50' } : json;
  res.writeHead(status, headers).end(JSON.stringify({ error: { message: 'Server overloaded: soak', code: 'soak' } }));
}

function answer(res, isStream) {
  if (res.destroyed) return;
  if (chance(0.04)) refuse(res);
  else if (chance(0.01)) res.destroy();
  else if (isStream) stream(res);
  else res.writeHead(200, json).end(JSON.stringify({ object: 'chat.completion', choices: [], usage }));
}

const server = createServer((req, res) => {
  if (req.url === '/health') return res.end('ok');
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('error', () => {});
  req.on('end', () => {
    const isStream = Buffer.concat(chunks).includes('"stream":true');
    setTimeout(() => answer(res, isStream), random() * 60);
  });
});
server.listen(port, '127.0.0.1', 1024, () => process.send(server.address().port));
process.on('disconnect', () => process.exit());
