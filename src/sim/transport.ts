/**
 * The way to the simulator without sockets, and what both ways have in common: how long an answer takes.
 */
import { TransportError } from '../core/faults.ts';
import type { Transport } from '../core/ports.ts';
import { mix, whole } from './random.ts';
import type { SimExchange, SimRequest, Simulator } from './simulator.ts';

/** Lets time pass; rejects where nobody waits for the answer any more. */
export type Pause = (ms: number) => Promise<void>;

/**
 * Brings a request to the simulator and its answer to where it leaves: half of the latency before, half after. A slow
 * answer says what was true on arrival and carries the date of its departure.
 */
export async function exchange(simulator: Simulator, request: SimRequest, pause: Pause): Promise<SimExchange> {
  const { settings, world, log } = simulator;
  const { min, max } = settings.time.latencyMs;
  const latencyMs = max > 0 ? whole(mix(world.seed, log.total), min, max) : 0;
  if (latencyMs > 0) await pause(latencyMs / 2);
  const { answer, wire } = simulator.handle(request);
  const slow = wire?.kind === 'slow' && wire.part !== 'body';
  if (slow) await pause(wire.delayMs);
  const leaving = slow ? simulator.date(answer) : answer;
  if (latencyMs > 0) await pause(latencyMs / 2);
  return { answer: leaving, wire };
}

/** @param timeoutMs how long it waits for a whole answer before it gives up, as a transport of sockets does. */
export function createTransport(simulator: Simulator, timeoutMs: number): Transport {
  return async ({ method, url, headers }, signal) => {
    signal.throwIfAborted();
    const { pathname, search } = new URL(url);
    const request: SimRequest = { method, target: `${pathname}${search}`, headers: lowerNames(headers) };
    const pause = createPatience(simulator, timeoutMs, signal);
    const { answer, wire } = await exchange(simulator, request, pause);
    if (wire?.kind === 'reset') throw new TransportError('reset', `the connection was reset ${wire.when}`);
    if (wire?.kind === 'hang') await pause(Infinity);
    if (wire?.kind === 'slow' && wire.part === 'body') await pause(wire.delayMs);
    return { status: answer.status, headers: lowerNames(answer.headers), body: answer.body };
  };
}

/** Pauses that together never last longer than the timeout: whoever reaches it gets the error instead. */
function createPatience({ clock }: Simulator, timeoutMs: number, signal: AbortSignal): Pause {
  let leftMs = timeoutMs;
  return async (ms) => {
    await clock.sleep(Math.min(ms, leftMs), signal);
    leftMs -= ms;
    if (leftMs < 0) throw new TransportError('timeout', `no answer within ${timeoutMs} ms`);
  };
}

function lowerNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
