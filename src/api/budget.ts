/**
 * A gate that lets a certain number of requests through and no more, whoever tries again what for.
 */
import { RequestsSpentError } from '../core/check.ts';
import type { Pacer } from './pacer.ts';

export interface Budget {
  readonly pacer: Pacer;
  /** How many were let through. */
  spent(): number;
}

/** @param most how many requests may pass; then `acquire` rejects with a `RequestsSpentError`, and books nothing. */
export function createBudget(pacer: Pacer, most: number): Budget {
  let spent = 0;
  return {
    spent: () => spent,
    pacer: {
      ...pacer,
      acquire: async (purpose, signal) => {
        if (spent >= most) throw new RequestsSpentError(`all ${most} requests are sent`);
        spent += 1;
        let isBooked = false;
        try {
          const requestId = await pacer.acquire(purpose, signal);
          isBooked = true;
          return requestId;
        } finally {
          if (!isBooked) spent -= 1;
        }
      },
    },
  };
}
