/** Blocks of lines, packed and unpacked: every byte comes back, damage is an error, and no memory is left behind. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { KEPT_FRAME_BYTES, pack, release, repack, unpack, unpackText } from '../../../src/store/archive/block-codec.ts';

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

  it('keeps the frames of large parts, and of a small one alone', () => {
    // The part of 5 lines that is not in the kept frames has been packed again.
    const [large, one, other] = [linesOf(900), linesOf(1), linesOf(4)];
    const parts = [large, one, large, one, other, large].map(packed);
    expect(Number(parts[0]?.bytes)).toBeGreaterThan(KEPT_FRAME_BYTES);
    const whole = repack(parts);
    for (const index of [0, 1, 2, 5]) expect(whole.data.includes(parts[index]?.data ?? '')).toBe(true);
    expect(whole.data.includes(parts[4]?.data ?? '')).toBe(false);
    const lines = [large, one, large, one, other, large].flat();
    expect(whole.bytes).toBe(lines.join('\n').length);
    expect(unpack(whole.data)).toEqual(lines);
    expect(unpack(whole.data, 100)).toEqual(lines);
    expect(unpackText({ data: whole.data, bytes: BigInt(whole.bytes) }).toString()).toBe(lines.join('\n'));
  });

  it.each([1, 2])('of several frames is unpacked in %i pieces that its first frame fills', (pieces) => {
    const first = ['x'.repeat(pieces * (KEPT_FRAME_BYTES + 64))];
    const parts = [first, linesOf(900), ['one']];
    const { data } = repack(parts.map(packed));
    expect(unpack(data, KEPT_FRAME_BYTES)).toEqual(parts.flat());
  });

  it('that has lost its end, or has something behind it, is an error', () => {
    const { data } = repack([packed(linesOf(900)), packed(linesOf(900))]);
    for (const length of [0, 20, data.length / 2 + 20, data.length - 1]) {
      expect(() => unpack(data.subarray(0, length))).toThrow();
    }
    expect(() => unpack(Buffer.concat([data, Buffer.from('behind')]))).toThrow();
  });

  it('of several frames in which a bit has changed is an error, or the same lines', () => {
    const lines = Array.from(
      { length: 2000 },
      (_, at) => `telemetry,device_id=d1 value=${at % 9} 1700000000${at % 10}`,
    );
    const { data } = repack([packed(lines), packed(['one']), packed(lines)]);
    const whole = [...lines, 'one', ...lines].join('\n');
    let errors = 0;
    for (let bit = 0; bit < data.length * 8; bit += 13) {
      const changed = Buffer.from(data);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      let text: string | null = null;
      try {
        text = unpack(changed).join('\n');
      } catch {
        errors += 1;
      }
      expect(text ?? whole, `bit ${bit}`).toBe(whole);
    }
    expect(errors).toBeGreaterThan(data.length / 2);
  });

  it.each([-1, 1])('whose length is off by %i byte is refused', (wrong) => {
    const { data, bytes } = packed(linesOf(50));
    expect(() => repack([{ data, bytes: bytes + BigInt(wrong) }, packed(linesOf(3))])).toThrow('but its header has');
  });
});

describe('packing and unpacking', () => {
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
