/**
 * How long is too long on this machine at this moment. What a test says of time is for a machine that has nothing else
 * to do; on one that others use as well everything takes longer, and that is nobody's mistake.
 */
import { availableParallelism, loadavg } from 'node:os';

/** A bound that tells "at once" from "after a wait", by how much the machine has to do. */
export function patient(quietMs: number): number {
  const [load = 0] = loadavg();
  return quietMs * (2 + (2 * load) / availableParallelism());
}
