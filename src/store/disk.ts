/**
 * The disk below a directory: how much of it is free.
 */
import { statfsSync } from 'node:fs';
import type { Disk } from '../core/ports.ts';

/** @param directory may not exist yet. */
export function createDisk(directory: string): Disk {
  return {
    directory,
    freeBytes: () => {
      try {
        const { bavail, bsize, blocks } = statfsSync(directory);
        // File systems without an end, some of them behind a network, say 0 of 0.
        return blocks === 0 ? null : bavail * bsize;
      } catch {
        return null;
      }
    },
  };
}
