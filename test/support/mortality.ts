/**
 * Death at the nth effect: what a `kill` between two effects leaves behind, without a process for each.
 *
 * Effects are what outlives the process or leaves it: a commit of SQLite, a request and its answer, a write to the
 * database and its answer. Each counts before and after it is done. From the nth on everything fails, so the program
 * can change nothing any more; what SQLite has committed stays, as after a kill.
 */
import Database from 'better-sqlite3';
import type { Sink, Transport } from '../../src/core/ports.ts';
import { wrapWrites } from '../../src/delivery/destination.ts';

export class Killed extends Error {
  override readonly name = 'Killed';
}

/** How many effects are left; `null`: immortal. */
let left: number | null = null;
let counted = 0;
/** Which effects were those of a write to the database. */
let writes: number[] = [];
/** The action at the moment of death, before any other. */
let atDeath: (() => void) | null = null;

/**
 * Lets the program die at the nth effect from now on.
 *
 * @param then is called at that moment, once.
 */
export function dieAtEffect(nth: number, then: (() => void) | null = null): void {
  left = nth;
  atDeath = then;
  counted = 0;
  writes = [];
}

/**
 * Ends it.
 *
 * @returns how many effects were counted.
 */
export function liveOn(): number {
  left = null;
  atDeath = null;
  return counted;
}

/** Which of the effects since then were writes to the database and their answers. */
export function writeEffects(): readonly number[] {
  return writes;
}

/** Counts without dying: to learn how many effects a run has. */
export function countEffects(): void {
  dieAtEffect(Number.POSITIVE_INFINITY);
}

function effect(): void {
  if (left === null) return;
  counted += 1;
  if (counted < left) return;
  const then = atDeath;
  atDeath = null;
  then?.();
  throw new Killed(`killed at effect ${counted}`);
}

function writeEffect(): void {
  if (left !== null) writes.push(counted + 1);
  effect();
}

/** A transport whose requests and answers are effects. */
export function mortalTransport(transport: Transport): Transport {
  return async (request, signal) => {
    effect();
    const answer = await transport(request, signal);
    effect();
    return answer;
  };
}

/** A sink whose writes and answers are effects. */
export function mortalSink(sink: Sink): Sink {
  return wrapWrites(sink, async (write) => {
    writeEffect();
    const answer = await write();
    writeEffect();
    return answer;
  });
}

/** Makes every commit of every database an effect, until disposed. */
export function mortalCommits(): Disposable {
  const probe = new Database(':memory:');
  const statements = Object.getPrototypeOf(probe.prepare('SELECT 1'));
  const databases = Object.getPrototypeOf(probe);
  probe.close();
  const { run } = statements;
  const { transaction } = databases;
  statements.run = function (this: Database.Statement, ...values: unknown[]) {
    if (left === null || this.database.inTransaction) return run.apply(this, values);
    effect();
    const result = run.apply(this, values);
    effect();
    return result;
  };
  databases.transaction = function (this: Database.Database, work: (...values: unknown[]) => unknown) {
    const made = transaction.call(this, work);
    const mortal = (...values: unknown[]): unknown => {
      effect();
      const result = made.immediate(...values);
      effect();
      return result;
    };
    return Object.assign((...values: unknown[]) => mortal(...values), { immediate: mortal });
  };
  return {
    [Symbol.dispose]: () => {
      statements.run = run;
      databases.transaction = transaction;
    },
  };
}

/**
 * Runs the work until its nth effect.
 *
 * @returns whether it was killed there; `false`: it ended before.
 */
export async function diesAtEffect(nth: number, work: () => Promise<unknown>): Promise<boolean> {
  dieAtEffect(nth);
  try {
    await work();
    return false;
  } catch (error) {
    if (error instanceof Killed) return true;
    throw error;
  } finally {
    liveOn();
  }
}
