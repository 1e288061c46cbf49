/**
 * Attacks from outside of the program: clients of its HTTP server, answers of the API, times that cannot be, files of
 * the state. Each rule is a scenario that the real program passes and that finds each variant of `border-mutants.ts`.
 */
import { describe, expect, test } from 'vitest';
import { createApiClient } from '../../src/api/client.ts';
import { createHttpTransport } from '../../src/api/transport.ts';
import { createControlLines, sendKept } from '../../src/delivery/send-batch.ts';
import { createInfluxSink } from '../../src/influx/sink.ts';
import { syncAccount } from '../../src/ingest/account.ts';
import { syncAlerts } from '../../src/ingest/alerts.ts';
import { listDevices } from '../../src/ingest/devices.ts';
import { serveStatus } from '../../src/observe/server.ts';
import { openStore } from '../../src/store/store.ts';
import { backUpState } from '../../src/store/views/backup.ts';
import type { Borders } from '../support/borders.ts';
import { BORDER_MUTANTS } from './border-mutants.ts';
import { BORDER_SCENARIOS, type BorderName } from './border-scenarios.ts';
import { breedBorders } from './variants.ts';

const REAL: Borders = {
  serveStatus,
  createHttpTransport,
  createApiClient,
  syncAccount,
  syncAlerts,
  listDevices,
  sendKept,
  createControlLines,
  createInfluxSink,
  openStore,
  backUpState,
};

const STORIES: Record<BorderName, string> = {
  ordinaryClients: 'clients that want little are answered',
  pipelinedBurst: 'a burst of pipelined requests is answered whole, one request at a time',
  clientsThatLeave: 'nothing is made for a client that has gone',
  burstsThatLeave: 'a burst of a client that has gone is not worked through',
  ninthPage: 'a ninth page is refused while eight are made, and health and metrics are answered',
  healthBeforePages: 'health is answered before any further page is begun',
  overviewForMany: 'the overview is made once a second for everybody',
  queriesWithoutMeaning: 'a page that takes no query is made once a second whatever is asked for',
  unreadPages: 'of large pages that clients do not read the oldest are dropped',
  slowClients: 'of too many connections those of slow clients are dropped first',
  greedyAddress: 'an address that opens very many connections takes none from another one',
  slowSockets: 'health is answered however many sockets send nothing whole',
  foreignNames: 'pages are not answered by a foreign name, health and metrics are',
  passwords: 'a password guards all but the health',
  ordinaryAnswers: 'pages as every service has them are read',
  endlessAnswer: 'an answer without an end is cut off, packed or not',
  packedRefusal: 'a packed refusal of a database is unpacked up to a bound',
  countlessValues: 'an answer of very many values is refused before it is parsed',
  fullPage: 'a large page is parsed with turns for others',
  endlessAlertList: 'a list of alerts without an end is given up',
  endlessDeviceList: 'a device list without an end is given up',
  dateOfYear9999: 'a Date that cannot be stored counts as missing',
  timesToCome: 'a record of a time that no clock has reached is set aside',
  factsOfAnUnconfirmedDate: 'no fact is recorded at a time that no clock confirms',
  pointsOfOtherTimes: 'a kept point of such a time goes to quarantine, and the others are sent',
  stateThatIsGone: 'a state whose file is gone is reported as lost, not made again',
  garbageBesideAState: 'garbage in place of a lock or a journal is named as what it is',
  writesWithoutTheLock: 'no write of any kind is made once the lock file is gone',
  linkedState: 'a state has one writer, whatever links lead to it',
  secondBackup: 'a second backup to a file leaves the first one alone',
  killedBackups: 'parts of killed backups are removed, and nothing else',
};

describe('a border', () => {
  test.each(Object.entries(STORIES) as [BorderName, string][])('%s: %s', async (name) => {
    expect(await BORDER_SCENARIOS[name](REAL)).toEqual([]);
  });
});

describe.each(BORDER_MUTANTS)('a program with $name', (mutant) => {
  test('passes where nothing is wrong, and is caught', async () => {
    const borders = await breedBorders(mutant);
    for (const name of ['ordinaryClients', 'ordinaryAnswers'] as const)
      expect(await BORDER_SCENARIOS[name](borders), 'it has to pass where nothing is wrong').toEqual([]);
    for (const scenario of mutant.caughtBy)
      expect(await BORDER_SCENARIOS[scenario](borders), `${scenario} must find it`).not.toEqual([]);
  });
});
