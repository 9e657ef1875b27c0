// Fuzzes one bundled target by coverage: node fuzz-target.mjs TARGET CORPUS SECONDS SEED BROKEN. Inputs are made of those
// of the corpus by chance; one that reaches new blocks of code, or runs a block much more often, joins them. V8 counts
// the blocks; it is asked once for many inputs, and again for each where it has news. Replays the corpus alone in 0 s.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [target, corpus, seconds, seed, broken] = process.argv.slice(2);
const longest = 4_096;
const inputsAtOnce = 32;
const slowMs = 5_000;

const session = new Session();
session.connect();
function ask(method, given) {
  let answer;
  session.post(method, given, (error, result) => {
    if (error !== null) throw new Error(error.message);
    answer = result;
  });
  return answer;
}
ask('Profiler.enable');
ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
const url = pathToFileURL(target).href;
const { fuzz, seededRandom } = await import(url);
const random = seededRandom(Number(seed));
const upTo = (end) => Math.floor(random() * Math.max(end, 1));

const reached = new Set();
/** Blocks, with the orders of magnitude of their counts, that no input reached before those since it was asked last. */
function news() {
  const { result } = ask('Profiler.takePreciseCoverage');
  const ranges = result
    .filter((script) => script.url === url)
    .flatMap(({ functions }) => functions.flatMap((each) => each.ranges));
  return ranges.flatMap(({ startOffset, endOffset, count }) => {
    const block = `${startOffset}-${endOffset}-${Math.min(Math.floor(Math.log2(count)), 8)}`;
    return count === 0 || reached.has(block) ? [] : [block];
  });
}

function note(blocks) {
  for (const block of blocks) reached.add(block);
  return blocks.length > 0;
}

let runs = 0;
function play(input) {
  runs++;
  const startedAtMs = performance.now();
  try {
    fuzz(input);
    if (performance.now() - startedAtMs > slowMs) throw new Error(`takes more than ${slowMs} ms`);
  } catch (error) {
    const file = `${broken}${createHash('sha256').update(input).digest('hex').slice(0, 8)}`;
    writeFileSync(file, input);
    console.error(`${file}:\n${JSON.stringify(input.toString('latin1')).slice(0, 2_000)}\n${error?.stack ?? error}`);
    process.exit(1);
  }
}

const inputs = readdirSync(corpus).map((name) => readFileSync(join(corpus, name)));
for (const input of inputs) play(input);
note(news());
const given = inputs.length;

const bytes = Buffer.from('"\'{}[]()<>:;,.=-+#&*|!%@\\/ \t\r\n\0\x7f\xff\x80019eE', 'latin1');
const wordsOf = (input) => input.toString('latin1').match(/\w+|[^\w\s]+/g) ?? [];
let words = inputs.flatMap(wordsOf);
const cut = (input) => [input.subarray(0, upTo(input.length + 1)), upTo(input.length + 1)];

const changes = [
  (input) => {
    const copy = Buffer.from(input);
    if (copy.length > 0) copy[upTo(copy.length)] ^= 1 << upTo(8);
    return copy;
  },
  (input) => {
    const copy = Buffer.from(input);
    if (copy.length > 0) copy[upTo(copy.length)] = bytes[upTo(bytes.length)];
    return copy;
  },
  (input) => {
    const at = upTo(input.length + 1);
    const word = Buffer.from(words[upTo(words.length)] ?? '0', 'latin1');
    return Buffer.concat([input.subarray(0, at), word, input.subarray(at)]);
  },
  (input) => {
    const at = upTo(input.length + 1);
    return Buffer.concat([
      input.subarray(0, at),
      bytes.subarray(upTo(bytes.length)).subarray(0, 1),
      input.subarray(at),
    ]);
  },
  (input) => {
    const [head] = cut(input);
    return Buffer.concat([head, input.subarray(head.length + 1 + upTo(16))]);
  },
  (input) => {
    const at = upTo(input.length + 1);
    const part = input.subarray(at, at + 1 + upTo(64));
    return Buffer.concat([
      input.subarray(0, at),
      ...Array.from({ length: 1 + upTo(8) }, () => part),
      input.subarray(at),
    ]);
  },
  (input) => {
    const [head] = cut(input);
    const other = inputs[upTo(inputs.length)];
    return Buffer.concat([head, other.subarray(upTo(other.length + 1))]);
  },
];

function changed(input) {
  let made = input;
  for (let times = 1 + upTo(4); times > 0; times--) made = changes[upTo(changes.length)](made).subarray(0, longest);
  return made;
}

const endsAtMs = performance.now() + Number(seconds) * 1_000;
while (performance.now() < endsAtMs) {
  const made = Array.from({ length: inputsAtOnce }, () => changed(inputs[upTo(inputs.length)]));
  for (const input of made) play(input);
  if (news().length === 0) continue;
  // Which of them was it?
  for (const input of made) {
    play(input);
    if (!note(news())) continue;
    inputs.push(input);
    words = [...words, ...wordsOf(input)].slice(-2_000);
  }
}
for (const input of inputs.slice(given))
  writeFileSync(join(corpus, createHash('sha256').update(input).digest('hex').slice(0, 12)), input);
console.log(
  `held by ${runs} inputs; ${reached.size} states of blocks; the corpus grew from ${given} to ${inputs.length}`,
);
process.exit(0);
