/** The scenarios of the borders, by name. */
import * as answers from '../support/answer-scenarios.ts';
import type { BorderScenario } from '../support/borders.ts';
import * as server from '../support/server-scenarios.ts';
import * as state from '../support/state-scenarios.ts';

export const BORDER_SCENARIOS = {
  ordinaryClients: server.ordinaryClients,
  pipelinedBurst: server.pipelinedBurst,
  clientsThatLeave: server.clientsThatLeave,
  burstsThatLeave: server.burstsThatLeave,
  ninthPage: server.ninthPage,
  healthBeforePages: server.healthBeforePages,
  overviewForMany: server.overviewForMany,
  queriesWithoutMeaning: server.queriesWithoutMeaning,
  unreadPages: server.unreadPages,
  slowClients: server.slowClients,
  greedyAddress: server.greedyAddress,
  slowSockets: server.slowSockets,
  foreignNames: server.foreignNames,
  passwords: server.passwords,
  ...answers,
  ...state,
} as const satisfies Record<string, BorderScenario>;

export type BorderName = keyof typeof BORDER_SCENARIOS;
