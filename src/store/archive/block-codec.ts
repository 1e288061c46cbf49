/**
 * Encodes and decodes the blocks of the archive: lines joined by newlines, compressed. A block has one frame of zstd,
 * or several one after the other, with a newline between what they hold.
 *
 * Promises: decoding returns, byte for byte, what was encoded; a damaged block is an error and never other lines. No
 * buffer outside of the heap is left to the garbage collector, which frees them late: a run of pages would at times
 * occupy a hundred megabytes.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/**
 * Level 1: half the size of deflate at half its time, on lines that repeat as ours do. With a checksum: SQLite has
 * none, and two bits in three that flip in a block would give other lines without a word.
 */
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 } };

/** Lines are made into bytes here, over and over: garbage outside of the heap waits long for its collector. */
const scratch = Buffer.allocUnsafeSlow(256 * 1024);

/** Lines as a block keeps them; `bytes` is their length before. */
export const pack = (lines: readonly string[]): { data: Buffer; bytes: number } => {
  const joined = lines.join('\n');
  // A UTF-16 code unit takes at most three bytes of UTF-8.
  const fits = joined.length * 3 <= scratch.length;
  return compress(fits ? scratch.subarray(0, scratch.write(joined, 'utf8')) : Buffer.from(joined, 'utf8'));
};

/**
 * A block of so many bytes, uncompressed, is not packed again: merged with others it would not take less room (75 KB
 * and 256 KB were packed to the same 4.2 %).
 */
export const KEPT_FRAME_BYTES = 32 * 1024;

/**
 * One block of the lines of several, in their order: byte for byte, none of them is checked. Large ones, and small ones
 * alone between them, keep their frames as they are.
 *
 * @throws an error where a block that is packed again has another length than declared.
 */
export const repack = (blocks: readonly PackedBlock[]): { data: Buffer; bytes: number } => {
  const frames: Buffer[] = [];
  let small: PackedBlock[] = [];
  const close = (): void => {
    const [first, ...others] = small;
    if (first !== undefined) frames.push(others.length === 0 ? first.data : packAgain(small));
    small = [];
  };
  for (const block of blocks) {
    const isLarge = block.bytes >= KEPT_FRAME_BYTES;
    if (isLarge) close();
    small.push(block);
    if (isLarge) close();
  }
  close();
  return { data: joined(frames), bytes: lengthOf(blocks) };
};

/** The frames in a buffer of its own. */
function joined(frames: readonly Buffer[]): Buffer {
  const data = Buffer.allocUnsafeSlow(frames.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const frame of frames) at += frame.copy(data, at);
  return data;
}

function lengthOf(blocks: readonly PackedBlock[]): number {
  return blocks.reduce((sum, { bytes }) => sum + Number(bytes) + 1, -1);
}

/** One frame of the lines of several blocks. */
function packAgain(blocks: readonly PackedBlock[]): Buffer {
  const length = lengthOf(blocks);
  const text = length <= scratch.length ? scratch : Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const { data, bytes } of blocks) {
    if (at > 0) at = text.writeUInt8(NEWLINE, at);
    const part = decompress(data, Number(bytes));
    if (part.length !== Number(bytes)) throw new Error(`a block has ${part.length} bytes, but its header has ${bytes}`);
    at += part.copy(text, at);
    release(part);
  }
  const { data } = compress(text.subarray(0, at));
  if (text !== scratch) release(text);
  return data;
}

export const NEWLINE = 0x0a;

/** As part of a larger buffer it is never released. */
const NEWLINE_TEXT = Buffer.from('\n');

function compress(text: Buffer): { data: Buffer; bytes: number } {
  const bytes = text.length;
  return { data: zstdCompressSync(text, { ...COMPRESSION, pledgedSrcSize: bytes }), bytes };
}

/** The size that holds most blocks, where the size of a block is not known. */
const PIECE_BYTES = 128 * 1024;

/** A block as its row has it: `bytes` is what its lines take. */
export interface PackedBlock {
  readonly data: Buffer;
  readonly bytes: bigint;
}

/** @param bytes the expected length. */
function decompress(data: Buffer, bytes: number): Buffer {
  const first = decompressFrame(data, bytes);
  if (first.next === data.length) return first.plain;
  const parts: Buffer[] = [first.plain];
  for (let at = first.next; at < data.length; ) {
    const { plain, next } = decompressFrame(data.subarray(at), bytes);
    parts.push(NEWLINE_TEXT, plain);
    at += next;
  }
  const whole = joined(parts);
  for (const part of parts) release(part);
  return whole;
}

/**
 * In one piece of the right size: what is too large lies about outside of the heap until the collector comes.
 *
 * @returns the plain bytes of the first frame, and where the next one begins.
 */
function decompressFrame(data: Buffer, bytes: number): { readonly plain: Buffer; readonly next: number } {
  const pieceBytes = bytes + 64;
  const answer: unknown = zstdDecompressSync(data, { chunkSize: pieceBytes, info: true });
  // Node documents this answer to `info`; its types leave it out.
  const { buffer, engine } = answer as { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };
  // Where a frame fills its last piece, Node goes on with the next frame: one piece that is never full ends with it.
  if (buffer.length >= pieceBytes) {
    const wholeBytes = buffer.length;
    release(buffer);
    return decompressFrame(data, wholeBytes);
  }
  return { plain: buffer, next: engine.bytesWritten };
}

/**
 * The lines of a block.
 *
 * @param bytes their length.
 * @throws an error with a `ZSTD_` code where it is damaged.
 */
export const unpack = (data: Buffer, bytes = PIECE_BYTES): string[] => {
  const plain = decompress(data, bytes);
  const text = plain.toString('utf8');
  release(plain);
  return text.split('\n');
};

/** The lines of a block as one text in UTF-8, without a newline at its end. The packed bytes are given back. */
export const unpackText = ({ data, bytes }: PackedBlock): Buffer => {
  const plain = decompress(data, Number(bytes));
  release(data);
  return plain;
};

/**
 * Gives the memory of a buffer back at once; it is empty from then on. One that shares its memory with others (Node's
 * pool of small ones) is left to the collector.
 */
export function release(buffer: Buffer): void {
  const memory = buffer.buffer;
  const ownsBuffer = buffer.byteOffset === 0 && memory.byteLength > Buffer.poolSize;
  if (ownsBuffer && memory instanceof ArrayBuffer) memory.transfer(0);
}
