/**
 * A network in which nothing else listens, so that commands of the pages run as they stand, with the ports that they
 * name. It takes root; where the kernel refuses it (a container without rights), the network of the machine is used.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Brings the loopback interface up: its flags are set, IFF_UP and IFF_RUNNING. */
const UP = `exec perl -MSocket -e '
  socket(my $s, AF_INET, SOCK_DGRAM, 0) or exit 1;
  ioctl($s, 0x8914, pack("a16 s x14", "lo", 0x41)) or exit 1;
  $| = 1; print "up\\n"; sleep 3600'`;

export interface OwnNetwork extends Disposable {
  /** The words in front of a program that is to run in it. */
  readonly prefix: readonly string[];
}

export async function openNetwork(): Promise<OwnNetwork> {
  const child = spawn('unshare', ['--net', '/bin/sh', '-c', UP], { stdio: ['ignore', 'pipe', 'ignore'] });
  const isUp = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    once(child, 'exit').then(() => false),
    once(child, 'error').then(() => false),
  ]);
  const onExit = (): void => void child.kill('SIGKILL');
  process.once('exit', onExit);
  return {
    prefix: isUp ? ['nsenter', `--net=/proc/${child.pid}/ns/net`] : [],
    [Symbol.dispose]: () => {
      process.off('exit', onExit);
      child.kill('SIGKILL');
    },
  };
}
