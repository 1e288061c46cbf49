/**
 * The cost of the status page of a daemon with very many devices: time to first byte, and size.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DevicesPage } from '../../src/core/page-facts.ts';
import { ask, withFleet } from './filled.ts';
import type { Measured } from './table.ts';
import type { WorkspaceSize } from './workspace.ts';

const LOOKS = 21;
const BETWEEN_MS = 700;
/** Under 200 ms to the first byte, and under 300 KB. */
const WANTED = { firstByteMs: 200, kilobytes: 300 };

/** The measured pages, by name. */
const PAGES = {
  'the overview': '',
  'the overview, searched and sorted': '?search=1&sort=lag&reversed=1&page=7',
  'a device, 30 days': 'device?range=30d&id=',
  'devices.json': 'devices.json',
} as const;

/**
 * Fills a daemon with the devices and looks at its pages.
 *
 * @throws Error where it does not come to hold them all.
 */
export async function measurePage(program: string, size: WorkspaceSize): Promise<Measured[]> {
  return await withFleet(program, size, async (beside) => await beside({}, async (url) => await lookAtAll(url, size)));
}

async function lookAtAll(url: string, { devices }: WorkspaceSize): Promise<Measured[]> {
  const first = JSON.parse((await ask(`${url}devices.json`)).text) as DevicesPage;
  if (first.devices !== devices) throw new Error(`the page knows ${first.devices} of ${devices} devices`);
  const id = encodeURIComponent(first.rows[0]?.device_id ?? '');
  const measured: Measured[] = [];
  for (const [name, path] of Object.entries(PAGES)) {
    const { firstMs, kilobytes } = await recheck(`${url}${path}${path.endsWith('id=') ? id : ''}`);
    measured.push(
      { figure: `${name}: first byte`, unit: 'ms', wanted: WANTED.firstByteMs, better: 'less', values: firstMs },
      { figure: `${name}: size`, unit: 'kB', wanted: WANTED.kilobytes, better: 'less', values: kilobytes },
    );
  }
  return measured;
}

async function recheck(address: string): Promise<{ readonly firstMs: number[]; readonly kilobytes: number[] }> {
  const looks = { firstMs: [] as number[], kilobytes: [] as number[] };
  for (let count = 0; count < LOOKS; count += 1) {
    // Long enough that no request uses the cache of another one.
    await sleep(BETWEEN_MS + (count % 3) * BETWEEN_MS);
    const { text, firstMs } = await ask(address);
    looks.firstMs.push(firstMs);
    looks.kilobytes.push(Buffer.byteLength(text) / 1000);
  }
  return looks;
}
