// What the size of a prompt costs to find: bytes of bodies through the scanner alone, and with the counter of sizes, in
// turns. Pictures are passed at the speed of memory, for which a copy of the bytes stands.
//
//     npm run bench -- scanning --rounds 40
import { parseArgs } from 'node:util';
import { JsonScanner } from '../src/gateway/bodies/json-scanner.ts';
import { PromptCounter } from '../src/gateway/sizes/prompt-parts.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '40' } } });
const words = 'The quick brown fox jumps over the lazy dog, "twice",\nand again; naïve café 😀 '.repeat(14_000);
const picture = `data:image/png;base64,${Buffer.alloc(2_250_000, 0x5a).toString('base64')}`;
const chat = (content) => Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }));
const bodies = {
  'a chat of text': chat(words),
  'a picture of 3 MB': chat([{ type: 'image_url', image_url: { url: picture } }]),
};
/** As sockets hand them over. */
const pieceBytes = 65_536;
const wanted = new Set(['model', 'messages', 'stream', 'max_tokens']);

function scan(bytes, counter) {
  const scanner = new JsonScanner(wanted, counter);
  for (let at = 0; at < bytes.length; at += pieceBytes) scanner.push(bytes.subarray(at, at + pieceBytes));
  scanner.end();
}

const ways = {
  scanned: (bytes) => scan(bytes),
  'with sizes': (bytes) => scan(bytes, new PromptCounter()),
  copied: (bytes) => Buffer.from(bytes),
};

for (const [name, bytes] of Object.entries(bodies)) {
  const least = {};
  for (let round = 0; round < Number(values.rounds); round++)
    for (const [way, pass] of Object.entries(ways)) {
      const began = process.hrtime.bigint();
      pass(bytes);
      least[way] = Math.min(least[way] ?? Infinity, Number(process.hrtime.bigint() - began) / bytes.length);
    }
  const told = Object.entries(least).map(([way, ns]) => `${way} ${ns.toFixed(2)}`);
  const beyond = least['with sizes'] - least.scanned;
  console.log(`${name}, ${bytes.length} bytes, ns a byte: ${told.join(', ')}; sizes cost ${beyond.toFixed(2)}`);
}
