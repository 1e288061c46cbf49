/**
 * Encodes and decodes the blocks of the archive: lines joined by newlines, compressed. A block has one or more frames
 * of zstd, with a newline between their contents.
 *
 * Promises: decoding returns, byte for byte, what was encoded; a damaged block is an error and never other lines. No
 * buffer outside the heap is left to the garbage collector, which frees it late: otherwise a run of pages would
 * sometimes occupy a hundred megabytes.
 */

import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { NEWLINE } from '../../core/state/log.ts';

/**
 * Level 1: half the size of deflate in half the time, for repetitive lines like ours. With a checksum: SQLite has none,
 * and two of three flipped bits in a block would yield other lines without an error.
 */
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 } };

/** The buffer in which lines are converted to bytes, reused because memory outside the heap is collected late. */
const scratch = Buffer.allocUnsafeSlow(256 * 1024);

/** Packs lines into a block; `bytes` is their length before. */
export const pack = (lines: readonly string[]): { data: Buffer; bytes: number } => {
  const joined = lines.join('\n');
  // A UTF-16 code unit takes at most three bytes of UTF-8.
  const fits = joined.length * 3 <= scratch.length;
  return compress(fits ? scratch.subarray(0, scratch.write(joined, 'utf8')) : Buffer.from(joined, 'utf8'));
};

/**
 * A block with at least this many uncompressed bytes is not packed again: merging it with others would save nothing (75
 * KB and 256 KB were packed to the same 4.2 %).
 */
export const KEPT_FRAME_BYTES = 32 * 1024;

/**
 * Makes one block of the lines of several, in their order, byte for byte and without checking any line. Large blocks,
 * and small ones alone between them, keep their frames unchanged.
 *
 * @throws an error if a block that is packed again has another length than declared.
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

/** The frames in a new buffer. */
function joined(frames: readonly Buffer[]): Buffer {
  const data = Buffer.allocUnsafeSlow(frames.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const frame of frames) at += frame.copy(data, at);
  return data;
}

function lengthOf(blocks: readonly PackedBlock[]): number {
  return blocks.reduce((sum, { bytes }) => sum + Number(bytes) + 1, -1);
}

/** Packs the lines of several blocks into one frame. */
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

/** A part of a larger buffer, so it is never released. */
const NEWLINE_TEXT = Buffer.from('\n');

function compress(text: Buffer): { data: Buffer; bytes: number } {
  const bytes = text.length;
  return { data: zstdCompressSync(text, { ...COMPRESSION, pledgedSrcSize: bytes }), bytes };
}

/** A size that fits most blocks, for blocks whose size is not known. */
const PIECE_BYTES = 128 * 1024;

/** A block as stored in its row: `bytes` is the uncompressed size of its lines. */
export interface PackedBlock {
  readonly data: Buffer;
  readonly bytes: bigint;
}

/**
 * Decompresses a block.
 *
 * @param bytes the expected length.
 */
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
 * Decompresses one frame into one buffer of the right size. A larger one would stay outside the heap until the
 * collector runs.
 *
 * @returns the plain bytes of the first frame, and where the next one begins.
 */
function decompressFrame(data: Buffer, bytes: number): { readonly plain: Buffer; readonly next: number } {
  const pieceBytes = bytes + 64;
  const answer: unknown = zstdDecompressSync(data, { chunkSize: pieceBytes, info: true });
  // Node documents this result of `info`, but its types do not contain it.
  const { buffer, engine } = answer as { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };
  // If a frame exactly fills its buffer, Node continues with the next frame. A buffer that is never full ends with its
  // frame.
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
 * @throws an error with a `ZSTD_` code if the block is damaged.
 */
export const unpack = (data: Buffer, bytes = PIECE_BYTES): string[] => {
  const plain = decompress(data, bytes);
  const text = plain.toString('utf8');
  release(plain);
  return text.split('\n');
};

/** The lines of a block as one text in UTF-8, without a newline at its end. Releases the packed bytes. */
export const unpackText = ({ data, bytes }: PackedBlock): Buffer => {
  const plain = decompress(data, Number(bytes));
  release(data);
  return plain;
};

/**
 * Releases the memory of a buffer at once; the buffer is empty afterwards. A buffer that shares its memory with others
 * (Node's pool of small ones) is left to the collector.
 */
export function release(buffer: Buffer): void {
  const memory = buffer.buffer;
  const ownsBuffer = buffer.byteOffset === 0 && memory.byteLength > Buffer.poolSize;
  if (ownsBuffer && memory instanceof ArrayBuffer) memory.transfer(0);
}
