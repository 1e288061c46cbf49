/**
 * Whether podman enforces `--memory` on this machine: `node test/image/limit.ts`, as root. Exits 1 where it does not.
 */
import { whyNotEnforced } from './bounded.ts';

const why = await whyNotEnforced();
process.stdout.write(
  why === null ? 'podman kills a process beyond --memory\n' : `podman does not enforce --memory here: ${why}\n`,
);
process.exitCode = why === null ? 0 : 1;
