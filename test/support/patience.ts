/**
 * How long is too long on this machine at this moment. The time limits of tests are for an idle machine; on a busy one
 * everything takes longer, which is no error.
 */
import { availableParallelism, loadavg } from 'node:os';

/** A bound between "at once" and "after a wait", scaled by the load of the machine. */
export function patient(quietMs: number): number {
  const [load = 0] = loadavg();
  return quietMs * (2 + (2 * load) / availableParallelism());
}
