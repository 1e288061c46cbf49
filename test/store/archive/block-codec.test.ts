import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { pack, release, repack, unpack } from '../../../src/store/archive/block-codec.ts';

/** Lines that hardly compress, so that what is packed is large as well. */
const linesOf = (count: number): string[] => Array.from({ length: count }, () => randomBytes(48).toString('base64'));

const packed = (lines: readonly string[]): { data: Buffer; bytes: bigint } => {
  const { data, bytes } = pack(lines);
  return { data, bytes: BigInt(bytes) };
};

describe('a block', () => {
  it.each([1, 3, 200, 20_000])('of %i lines comes back as it was', (count) => {
    const lines = linesOf(count);
    const { data, bytes } = pack(lines);
    expect(bytes).toBe(lines.join('\n').length);
    expect(unpack(data, bytes)).toEqual(lines);
    expect(unpack(data)).toEqual(lines);
  });

  it('of several holds their lines in their order', () => {
    const parts = [linesOf(2), linesOf(900), ['ä='], linesOf(5000)];
    const whole = repack(parts.map(packed));
    expect(unpack(whole.data, whole.bytes)).toEqual(parts.flat());
  });

  it.each([-1, 1])('that says it is %i byte longer than it is does not become another', (wrong) => {
    const { data, bytes } = packed(linesOf(50));
    expect(() => repack([{ data, bytes: bytes + BigInt(wrong) }, packed(linesOf(3))])).toThrow('but its header has');
  });
});

describe('what is packed and unpacked', () => {
  it('leaves nothing outside of the heap for the collector', () => {
    const lines = Array.from(
      { length: 40_000 },
      (_, index) => `telemetry,device_id=d1 value=${index % 100} 17000000000`,
    );
    const block = packed(lines);
    const left = (work: () => void): number => {
      const before = process.memoryUsage().arrayBuffers;
      work();
      return process.memoryUsage().arrayBuffers - before;
    };
    expect(left(() => unpack(block.data, Number(block.bytes)))).toBeLessThan(Number(block.bytes) / 2);
    // Unpacked, put together and packed, that is six times as much.
    expect(left(() => release(repack([block, block, block]).data))).toBeLessThan(Number(block.bytes));
  });
});

describe('a buffer that is released', () => {
  it('is empty', () => {
    const alone = Buffer.allocUnsafeSlow(300_000);
    release(alone);
    expect(alone.length).toBe(0);
  });

  it('is left alone where it shares its memory with others', () => {
    const small = Buffer.from('one of many');
    const neighbour = Buffer.from('another');
    const part = Buffer.alloc(300_000, 7).subarray(100_000);
    for (const each of [small, part]) release(each);
    expect([small.toString(), neighbour.toString(), part[0], part.length]).toEqual([
      'one of many',
      'another',
      7,
      200_000,
    ]);
  });
});
