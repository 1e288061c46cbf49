/**
 * A network in which nothing else listens, so that commands of the pages run as they stand, with the names and the
 * ports that they contain. It takes root; where the kernel refuses it (a container without rights), the network of the
 * machine is used.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';

/**
 * Brings the loopback interface up (its flags are set, IFF_UP and IFF_RUNNING), and passes each connection to a port on
 * to a socket of the file system, which servers outside of the network reach, too: `PORT=SOCKET`. It ends with its
 * standard input, so when the test process dies.
 */
const UP = `
use Socket;
socket(my $s, AF_INET, SOCK_DGRAM, 0) or exit 1;
my $flags = pack("a16 s x14", "lo", 0x41);
ioctl($s, 0x8914, $flags) or exit 1;
my @doors;
for (@ARGV) {
  my ($port, $path) = split /=/, $_, 2;
  socket(my $door, AF_INET, SOCK_STREAM, 0) or exit 1;
  setsockopt($door, SOL_SOCKET, SO_REUSEADDR, 1);
  bind($door, sockaddr_in($port, INADDR_LOOPBACK)) && listen($door, 64) or exit 1;
  push @doors, [$door, $path];
}
sub pass {
  my ($from, $to) = @_;
  while (sysread($from, my $part, 65536)) {
    for (my $at = 0; $at < length $part; ) { $at += syswrite($to, $part, length($part) - $at, $at) || return }
  }
  shutdown($to, 1);
}
$SIG{CHLD} = $SIG{PIPE} = "IGNORE";
$| = 1; print "up\\n";
for (;;) {
  my $bits = "";
  vec($bits, fileno($_), 1) = 1 for STDIN, map { $_->[0] } @doors;
  select($bits, undef, undef, undef) > 0 or next;
  exit if vec($bits, fileno(STDIN), 1);
  for (@doors) {
    next unless vec($bits, fileno($_->[0]), 1);
    accept(my $client, $_->[0]) or next;
    next if fork;
    socket(my $server, AF_UNIX, SOCK_STREAM, 0);
    connect($server, sockaddr_un($_->[1])) or exit;
    if (fork) { pass($server, $client) } else { pass($client, $server) }
    exit;
  }
}`;

/** The server behind a port of the network. */
export interface Door {
  /** The base URL of a server of this machine. */
  readonly to: string;
  /** The server speaks HTTP; the port speaks HTTPS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

export interface NetworkOptions {
  readonly doors?: Readonly<Record<number, Door>>;
  /** Host names that lead to its loopback interface. */
  readonly names?: readonly string[];
  /** Directories of the machine in whose place commands see empty ones. */
  readonly empty?: readonly string[];
}

export interface OwnNetwork extends Disposable {
  readonly isOwn: boolean;
  /** The words in front of a program that is to run in it; none where there is no such network. */
  readonly prefix: readonly string[];
}

export async function openNetwork({ doors = {}, names = [], empty = [] }: NetworkOptions = {}): Promise<OwnNetwork> {
  const place = mkdtempSync(join(tmpdir(), 'tidemark-network-'));
  const hosts = join(place, 'hosts');
  writeFileSync(hosts, `127.0.0.1 ${['localhost', ...names].join(' ')}\n${readFileSync('/etc/hosts', 'utf8')}`);
  const opened = await Promise.all(
    Object.entries(doors).map(async ([port, door]) => await openDoor(join(place, port), door)),
  );
  const mounts = [
    ...(names.length === 0 ? [] : [`mount --bind '${hosts}' /etc/hosts`]),
    ...empty.map((path) => `mkdir -p ${path} && mount -t tmpfs tmpfs ${path}`),
  ];
  const script = [...mounts, 'exec perl -e "$0" "$@"'].join(' && ');
  const ports = Object.keys(doors).map((port) => `${port}=${join(place, port)}`);
  const child = spawn(
    'unshare',
    // The connections that are passed on end with it.
    ['--net', '--mount', '--pid', '--fork', '--kill-child', '/bin/sh', '-c', script, UP, ...ports],
    { stdio: ['pipe', 'pipe', 'ignore'] },
  );
  const isUp = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    once(child, 'exit').then(() => false),
    once(child, 'error').then(() => false),
  ]);
  const onExit = (): void => void child.kill('SIGKILL');
  process.once('exit', onExit);
  const spaces = `/proc/${child.pid}/ns`;
  // Otherwise commands of the pages would not be tried, and nobody would notice.
  if (!isUp && process.env['CI']) throw new Error('CI cannot make a network');
  return {
    isOwn: isUp,
    // Entering mounts would leave the current directory.
    prefix: isUp ? ['nsenter', `--net=${spaces}/net`, `--mount=${spaces}/mnt`, '--wd=.'] : [],
    [Symbol.dispose]: () => {
      process.off('exit', onExit);
      child.kill('SIGKILL');
      for (const door of opened) door.close();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

interface OpenDoor {
  close(): void;
}

/** Serves a socket of the file system, and passes its connections on. */
async function openDoor(path: string, { to, tls }: Door): Promise<OpenDoor> {
  const { hostname, port } = new URL(to);
  const sockets = new Set<Socket>();
  const pass = (client: Socket): void => {
    const server = connect(Number(port), hostname);
    for (const [from, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => other.destroy()).on('close', () => sockets.delete(from));
      from.pipe(other);
    }
  };
  const server = tls === undefined ? createServer({ allowHalfOpen: true }, pass) : createTlsServer(tls, pass);
  server.listen(path);
  await once(server, 'listening');
  return {
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
