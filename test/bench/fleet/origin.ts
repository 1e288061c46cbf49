/**
 * The API of a fleet, as a process of its own: the simulator with a plan that is kept to, in real time.
 *
 * Started by `commands/run.ts` with the description of the fleet as its argument; reports its port, and on request how
 * many requests it answered.
 */

import { realClock } from '../../../src/app/real-clock.ts';
import { DAY_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { serveSimulator } from '../../../src/sim/server.ts';
import { createSimulator } from '../../../src/sim/simulator.ts';
import { createSeededWorld } from '../../support/seeded-world.ts';
import type { FleetPlan } from './run.ts';

const { devices, reportMinutes, requestsPerMinute }: FleetPlan = JSON.parse(process.argv[2] ?? '{}');

const simulator = createSimulator({
  world: createSeededWorld({
    seed: 'fleet',
    originMs: realClock.nowMs(),
    historyMs: 2 * DAY_MS,
    fleet: { devices, intervalsMs: [reportMinutes * MINUTE_MS], sensors: [3, 3], silentShare: 0.02 },
  }),
  clock: realClock,
  settings: {
    plan: {
      planId: 'fleet',
      name: 'Fleet',
      requestsPerMinute,
      requestsPerDay: requestsPerMinute * 1440,
      historyMaxDays: 31,
    },
  },
});
const { url } = await serveSimulator(simulator);
process.on('disconnect', () => process.exit(0));
process.send?.({ url, key: simulator.settings.key.secret });
