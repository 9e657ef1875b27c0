/** Pictures of ImageMagick and cwebp, of one colour: what is kept is the beginning of each file, and its length. */
import heads from './pictures.json' with { type: 'json' };

export type Format = keyof typeof heads;
export const formats = Object.keys(heads) as Format[];
export const dimensions = ['64x48', '1024x1536', '8000x6000'] as const;

/** The file, with nothing in it after its beginning. */
export function picture(format: Format, size: (typeof dimensions)[number] = '1024x1536'): Buffer {
  const { head, bytes } = heads[format][size];
  const file = Buffer.alloc(bytes);
  Buffer.from(head, 'base64').copy(file);
  return file;
}

/** As phones write it: a preview of 60 kB stands before the size. */
export function photo(bytes = 3_000_000): Buffer {
  const plain = picture('jpeg');
  const preview = Buffer.concat([Buffer.from([0xff, 0xe1, 0xea, 0x60]), Buffer.alloc(0xea60 - 2, 0x11)]);
  const file = Buffer.concat([plain.subarray(0, 2), preview, plain.subarray(2)]);
  return Buffer.concat([file, Buffer.alloc(Math.max(0, bytes - file.length), 0x5a)]);
}

export function dataUrl(type: string, file: Buffer): string {
  return `data:${type};base64,${file.toString('base64')}`;
}

/** Sound of so many seconds, 16 kHz, 16 bits, one channel. */
export function wav(seconds: number): Buffer {
  const file = Buffer.alloc(44 + seconds * 32_000);
  file.write('RIFF', 0);
  file.write('WAVEfmt ', 8);
  file.writeUInt32LE(16_000, 24);
  file.writeUInt32LE(32_000, 28);
  return file;
}

/** A document of so many pages, whose number stands near its end. */
export function pdf(pages: number, bytes = 100_000): Buffer {
  const end = `2 0 obj << /Type /Pages /Kids [] /Count ${pages} >> endobj\nxref\ntrailer\n%%EOF\n`;
  return Buffer.from(`%PDF-1.4\n${'x'.repeat(bytes - end.length)}${end}`);
}
