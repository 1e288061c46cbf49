/** The simulated API without sockets: a transport that calls it directly. */
import { TransportError } from '../../src/core/faults.ts';
import type { Transport } from '../../src/core/ports.ts';
import { exchange } from '../../src/sim/simulator.ts';
import { type Simulator, wireOf } from './faulty-simulator.ts';

/**
 * Answers by the simulator. Faults of the wire become a `TransportError`.
 *
 * @param timeoutMs how long it waits for a complete answer before it gives up, as a transport of sockets does.
 */
export function transportOf(simulator: Simulator, timeoutMs = 30_000): Transport {
  return async ({ method, url, headers }, signal) => {
    signal.throwIfAborted();
    const { pathname, search } = new URL(url);
    const request = { method, target: `${pathname}${search}`, headers: lowerNames(headers) };
    const pause = createPatience(simulator, timeoutMs, signal);
    const exchanged = await exchange(simulator, request, pause);
    const { answer } = exchanged;
    const wire = wireOf(exchanged);
    if (wire?.kind === 'reset') throw new TransportError('reset', `the connection was reset ${wire.when}`);
    if (wire?.kind === 'hang') await pause(Infinity);
    if (wire?.kind === 'slow') await pause(wire.delayMs);
    return { status: answer.status, headers: lowerNames(answer.headers), body: answer.body };
  };
}

/** Pauses whose sum never exceeds the timeout: at the timeout the caller gets the error instead. */
function createPatience({ clock }: Simulator, timeoutMs: number, signal: AbortSignal) {
  let leftMs = timeoutMs;
  return async (ms: number): Promise<void> => {
    await clock.sleep(Math.min(ms, leftMs), signal);
    leftMs -= ms;
    if (leftMs < 0) throw new TransportError('timeout', `no answer within ${timeoutMs} ms`);
  };
}

export function lowerNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
