/**
 * Setup of the tests that need no world: what would open a port, connect or start a process fails, so that none of them
 * can come to need one unseen.
 */
import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

function forbid<Name extends string>(holder: Record<Name, unknown>, ...names: Name[]): void {
  for (const name of names) {
    holder[name] = () => {
      throw new Error(
        `${name}: a test without servers and processes; what needs them imports them itself (test/support/tiers.ts)`,
      );
    };
  }
}

forbid(net.Server.prototype, 'listen');
forbid(net.Socket.prototype, 'connect');
forbid(childProcess.ChildProcess.prototype as unknown as Record<'spawn', unknown>, 'spawn');
forbid(childProcess, 'spawnSync', 'execSync', 'execFileSync');
syncBuiltinESMExports();
