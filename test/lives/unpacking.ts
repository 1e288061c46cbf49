/**
 * The unpacked text of a story's blocks is cached by the packed bytes: a delivery that fails reads its batch from the
 * archive again, and so does every look at what is on its way, dozens of times.
 */
import { syncBuiltinESMExports } from 'node:module';
import zlib from 'node:zlib';

/** The answer of Node for `info`, as in the archive. */
interface Unpacked {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

/** Replaces `zstdDecompressSync` for all importers until disposed: it unpacks the same bytes once. */
export function rememberUnpacked(): Disposable {
  const real = zlib.zstdDecompressSync;
  const unpack = real as unknown as (data: Buffer, options: zlib.ZstdOptions) => Unpacked;
  const known = new Map<string, Unpacked>();
  const unpackOnce = (data: Buffer, options: zlib.ZstdOptions): Unpacked => {
    const key = `${options.chunkSize} ${data.toString('latin1')}`;
    const found = known.get(key) ?? unpack(data, options);
    known.set(key, found);
    // Who gets the bytes gives their memory back.
    return { ...found, buffer: Buffer.from(found.buffer) };
  };
  replace(unpackOnce as unknown as typeof real);
  return { [Symbol.dispose]: () => replace(real) };
}

function replace(unpack: typeof zlib.zstdDecompressSync): void {
  zlib.zstdDecompressSync = unpack;
  syncBuiltinESMExports();
}
