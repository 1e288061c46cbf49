/**
 * Makes a browser's PNG smaller without a loss: a page is flat, and flat rows shrink best unfiltered.
 *
 * Reads PNG files of Chromium: 8 bits, RGB or RGBA, not interlaced.
 */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE_BYTES = 8;

interface Image {
  readonly head: Buffer;
  readonly width: number;
  readonly height: number;
  readonly pixelBytes: number;
  readonly packed: Buffer;
}

/** The same picture in fewer bytes. */
export function smallerPng(png: Buffer): Buffer {
  const image = readPng(png);
  const rowBytes = image.width * image.pixelBytes;
  const out = Buffer.alloc(image.height * (rowBytes + 1));
  const filtered = inflateSync(image.packed);
  let above = Buffer.alloc(rowBytes);
  for (let y = 0; y < image.height; y += 1) {
    const start = y * (rowBytes + 1);
    const row = filtered.subarray(start + 1, start + 1 + rowBytes);
    unfilter({ row, above, kind: filtered[start] ?? 0, pixelBytes: image.pixelBytes });
    row.copy(out, start + 1);
    above = row;
  }
  const chunks = [
    ['IHDR', image.head],
    ['IDAT', deflateSync(out, { level: 9, memLevel: 9 })],
    ['IEND', Buffer.alloc(0)],
  ] as const;
  return Buffer.concat([png.subarray(0, SIGNATURE_BYTES), ...chunks.map(([type, data]) => chunk(type, data))]);
}

function readPng(png: Buffer): Image {
  const data: Buffer[] = [];
  let head = Buffer.alloc(0);
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') head = Buffer.from(content);
    if (type === 'IDAT') data.push(content);
    at += 12 + length;
  }
  const [depth, colours] = [head[8], head[9]];
  if (depth !== 8 || (colours !== 2 && colours !== 6)) throw new Error(`no PNG of a browser: ${depth}, ${colours}`);
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
  return { head, width, height, pixelBytes: colours === 2 ? 3 : 4, packed: Buffer.concat(data) };
}

interface Row {
  /** Changed in place. */
  readonly row: Buffer;
  readonly above: Buffer;
  readonly kind: number;
  readonly pixelBytes: number;
}

function unfilter({ row, above, kind, pixelBytes }: Row): void {
  for (let x = 0; x < row.length; x += 1) {
    const left = x < pixelBytes ? 0 : (row[x - pixelBytes] ?? 0);
    const corner = x < pixelBytes ? 0 : (above[x - pixelBytes] ?? 0);
    row[x] = ((row[x] ?? 0) + foretold(kind, { left, up: above[x] ?? 0, corner })) & 255;
  }
}

/** The prediction of a filter for a byte, from its neighbours (PNG, 9.2). */
function foretold(kind: number, { left, up, corner }: { left: number; up: number; corner: number }): number {
  switch (kind) {
    case 1:
      return left;
    case 2:
      return up;
    case 3:
      return (left + up) >> 1;
    case 4:
      return (
        [left, up, corner].toSorted((a, b) => Math.abs(left + up - corner - a) - Math.abs(left + up - corner - b))[0] ??
        0
      );
    default:
      return 0;
  }
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const out = Buffer.alloc(named.length + 8);
  out.writeUInt32BE(data.length, 0);
  named.copy(out, 4);
  out.writeUInt32BE(crc32(named), named.length + 4);
  return out;
}
