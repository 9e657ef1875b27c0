/**
 * SHA-256 at once, on every runtime: Node has it in a module of its own, and elsewhere it comes as a promise, which a
 * policy cannot wait for. For names that nobody may predict without a salt. What is published or compared in secret
 * needs a library.
 */

/** The fractions of the cube roots of the first 64 primes. Source: FIPS 180-4, section 4.2.2. */
const roundConstants: readonly number[] = [
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
  0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
  0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
  0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
  0xc67178f2,
];
/** Those of the square roots of the first 8. Section 5.3.3. */
const initialHash: readonly number[] = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/** The 32 bytes of the digest of `message`, which has less than 2³² bits. Source: FIPS 180-4, section 6.2. */
export function sha256(message: Uint8Array): DataView {
  const digest = new DataView(new ArrayBuffer(32));
  for (const [i, word] of initialHash.entries()) digest.setUint32(4 * i, word);
  const padded = paddedCopy(message);
  const schedule = new Uint32Array(64);
  for (let offset = 0; offset < padded.byteLength; offset += 64) {
    fillSchedule(schedule, padded, offset);
    compress(digest, schedule);
  }
  return digest;
}

/** The message, a one, zeros, and its length in bits: whole blocks of 64 bytes. */
function paddedCopy(message: Uint8Array): DataView {
  const bytes = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64);
  bytes.set(message);
  bytes[message.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 4, 8 * message.length);
  return view;
}

const turn = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

function fillSchedule(schedule: Uint32Array, blocks: DataView, offset: number): void {
  const word = (i: number): number => schedule[i] ?? 0;
  for (let i = 0; i < 16; i++) schedule[i] = blocks.getUint32(offset + 4 * i);
  for (let i = 16; i < 64; i++) {
    const [early, late] = [word(i - 15), word(i - 2)];
    const sigma0 = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const sigma1 = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    schedule[i] = word(i - 16) + sigma0 + word(i - 7) + sigma1;
  }
}

/** Adds one block to the hash. */
function compress(hash: DataView, schedule: Uint32Array): void {
  const before = Int32Array.from({ length: 8 }, (_, i) => hash.getInt32(4 * i));
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = before;
  for (let i = 0; i < 64; i++) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const sum1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const sum0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const first = (h + sum1 + choice + (roundConstants[i] ?? 0) + (schedule[i] ?? 0)) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + sum0 + majority) | 0];
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) hash.setInt32(4 * i, (before[i] ?? 0) + word);
}
