/**
 * The lines of a block of the archive, unpacked without the program.
 */
import { zstdDecompressSync } from 'node:zlib';

/** The content of all frames of zstd that follow one another, with a newline between them. */
export function textOfFrames(data: Buffer): string {
  const texts: string[] = [];
  for (let at = 0; at < data.length; ) {
    const answer: unknown = zstdDecompressSync(data.subarray(at), { info: true });
    const { buffer, engine } = answer as {
      readonly buffer: Buffer;
      readonly engine: { readonly bytesWritten: number };
    };
    texts.push(buffer.toString('utf8'));
    at += engine.bytesWritten;
  }
  return texts.join('\n');
}
