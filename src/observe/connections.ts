/**
 * The connections of the HTTP server: the limits of a single connection, and which connection is dropped if there are
 * too many.
 *
 * A connection passes its bytes to the parser one request at a time. While it answers a request, it reads the next
 * bytes once and does not pass them on; the rest of a burst of pipelined requests waits in the kernel of the sender. A
 * client that closes its side before its response is ready counts as gone. The parser does not depend on where the
 * bytes are split, so it does not matter if this file misjudges the end of a head.
 *
 * If there are too many connections, the ones that wait for a slow client are dropped first, then the idle ones. An
 * address with few connections keeps them while others have more. If too many large responses wait for their clients,
 * the slowest clients are dropped.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/**
 * The state of a connection: it waits for a request, for the client to read, for the next request, or for our response.
 */
type Phase = 'request' | 'reading' | 'idle' | 'answer';

/** The part of a connection that decides which one is dropped. */
export interface ClientConnection {
  readonly address: string;
  readonly phase: Phase;
  /** When it entered this phase, as a number that only grows. */
  readonly since: number;
}

/** The part of a connection that decides about the memory of its response. */
interface Reader {
  /** The response that its client has not read yet; `null`: none. Several clients may share one. */
  readonly unread: Buffer | null;
  readonly since: number;
}

/** An address keeps this many connections while another address has more. */
const MAX_PER_CLIENT = 8;

const PHASE_ORDER: Readonly<Record<Phase, number>> = { request: 0, reading: 0, idle: 1, answer: 2 };

/** Returns the connections to drop so that at most `limit` are left, in the order of dropping. */
export function connectionsToDrop<T extends ClientConnection>(all: readonly T[], limit: number): readonly T[] {
  const counts = new Map<string, number>();
  for (const { address } of all) counts.set(address, (counts.get(address) ?? 0) + 1);
  const left = all.toSorted((a, b) => PHASE_ORDER[a.phase] - PHASE_ORDER[b.phase] || a.since - b.since);
  const dropped: T[] = [];
  while (left.length > limit) {
    const index = Math.max(
      0,
      left.findIndex(({ address }) => (counts.get(address) ?? 0) > MAX_PER_CLIENT),
    );
    const [first] = left.splice(index, 1);
    if (first === undefined) break;
    counts.set(first.address, (counts.get(first.address) ?? 0) - 1);
    dropped.push(first);
  }
  return dropped;
}

/**
 * Returns the connections to drop so that unread responses take no more memory: those whose clients have read for the
 * longest time.
 *
 * @param most how many bytes the unread responses may take together, not counting the largest one
 */
export function readersToDrop<T extends Reader>(all: readonly T[], most: number): readonly T[] {
  const limit = most + Math.max(0, ...all.map(({ unread }) => unread?.length ?? 0));
  const kept = new Set<Buffer>();
  let bytes = 0;
  return all
    .toSorted((a, b) => b.since - a.since)
    .filter(({ unread }) => {
      if (unread === null || kept.has(unread)) return false;
      if (bytes + unread.length > limit) return true;
      bytes += unread.length;
      kept.add(unread);
      return false;
    });
}

const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** Returns a higher number at each call, which orders the events of a server's connections. */
export type NextStep = () => number;

/** Starts to count the steps of a server. */
export function createSteps(): NextStep {
  let steps = 0;
  return () => {
    steps += 1;
    return steps;
  };
}

/** A socket whose requests are passed on one at a time. The HTTP server gets it instead of the socket. */
export class Connection extends Duplex implements ClientConnection, Reader {
  readonly address: string;
  phase: Phase = 'request';
  since: number;
  unread: Buffer | null = null;
  readonly #socket: Socket;
  readonly #nextStep: NextStep;
  /** Data that was read and not passed on yet: less than one read of a socket returns. */
  #pending: Buffer | null = null;
  #hasEnded = false;
  /** Set from the arrival of a request until the next one may be passed on. */
  #isAtWork = false;
  /** How many characters at the end of the last bytes match the end of a head. */
  #matched = 0;

  constructor(socket: Socket, nextStep: NextStep) {
    super();
    this.#socket = socket;
    this.#nextStep = nextStep;
    this.since = nextStep();
    this.address = socket.remoteAddress ?? '';
    socket.on('data', (bytes: Buffer) => {
      this.#pending = this.#pending === null ? bytes : Buffer.concat([this.#pending, bytes]);
      this.#passOn();
    });
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#passOn();
    });
    socket.on('timeout', () => this.emit('timeout'));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  /** Records that a request has arrived: until `acceptNext` nothing more is passed on. */
  begin(): void {
    this.#isAtWork = true;
    this.#enter('answer');
  }

  /** Records that the response is ready: from now on the connection waits for the client. */
  noteAnswered(body: Buffer): void {
    this.#enter('reading');
    this.unread = body;
  }

  /** Records that the response is over: it was sent, or the client has disconnected. */
  noteSent(): void {
    this.#enter('idle');
    this.unread = null;
  }

  /** Passes on the client's next request, which may have been received already. */
  acceptNext(): void {
    this.#isAtWork = false;
    this.#passOn();
  }

  #enter(phase: Phase): void {
    this.phase = phase;
    this.since = this.#nextStep();
  }

  #passOn(): void {
    if (this.destroyed) return;
    while (this.#pending !== null && !this.#isAtWork && this.readableLength === 0) {
      if (this.phase === 'idle') this.#enter('request');
      const { length } = this.#pending;
      const end = this.#endOfHead(this.#pending);
      const piece = this.#pending.subarray(0, end);
      this.#pending = end < length ? this.#pending.subarray(end) : null;
      // The parser consumes it at once and calls `begin` if a request has come.
      this.push(piece);
    }
    // Reads on while a request is in progress and no more data has come, so that a disconnected client is noticed.
    if (this.#pending !== null) this.#socket.pause();
    else if (!this.#hasEnded) this.#socket.resume();
    else if (this.phase === 'answer') this.destroy();
    else if (!this.#isAtWork) this.push(null);
  }

  /** Returns where the first head in the bytes ends; without an end, their length. */
  #endOfHead(bytes: Buffer): number {
    for (let index = 0; index < bytes.length; index += 1) {
      const byte = bytes[index];
      if (byte === END_OF_HEAD[this.#matched]) this.#matched += 1;
      else this.#matched = byte === END_OF_HEAD[0] ? 1 : 0;
      if (this.#matched < END_OF_HEAD.length) continue;
      this.#matched = 0;
      return index + 1;
    }
    return bytes.length;
  }

  /** The same method as a socket's, without a timer of our own. */
  ['setTimeout'](ms: number, onTimeout?: () => void): this {
    this.#socket['setTimeout'](ms);
    if (onTimeout !== undefined) this.once('timeout', onTimeout);
    return this;
  }

  /** The same method as a socket's: ends, and closes once everything is written. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  override _read(): void {
    if (this.#pending !== null) this.#passOn();
  }

  override _write(bytes: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, encoding, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
