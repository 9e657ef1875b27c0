/** The width and height of a picture, from the beginning of its file: PNG, JPEG, GIF and WebP. */
export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** JPEG and GIF cannot be larger, and nobody sends what is. */
const mostPixels = 65_535;
/** No file is shorter, and no head but JPEG's is longer. */
const headBytes = 30;

/** Undefined for what is no picture of these, is cut off before its size, or says what cannot be. O(bytes). */
export function pictureSize(bytes: Buffer): PictureSize | undefined {
  const { width = 0, height = 0 } = (bytes.length < headBytes ? undefined : read(bytes)) ?? {};
  return Math.min(width, height) > 0 && Math.max(width, height) <= mostPixels ? { width, height } : undefined;
}

function read(bytes: Buffer): PictureSize | undefined {
  const magic = bytes.toString('latin1', 0, 4);
  if (magic.startsWith('\xff\xd8')) return ofJpeg(bytes);
  if (magic === '\x89PNG') return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (magic === 'GIF8') return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  return magic === 'RIFF' ? ofWebp(bytes) : undefined;
}

/** Lossy, lossless, extended. Source: RFC 9649. */
function ofWebp(bytes: Buffer): PictureSize | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}

/** From segment to segment, up to the one that begins a frame. Source: ITU T.81, B.1.1. */
function ofJpeg(bytes: Buffer): PictureSize | undefined {
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff; ) {
    const marker = bytes[at + 1]!;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
