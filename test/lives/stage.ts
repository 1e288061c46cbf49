/**
 * The setting of a story: the simulated service, the database, the clocks and the state's directory, which outlives
 * each life. Every effect of the program goes through here and is counted.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Sync, SyncOptions } from '../../src/app/open-sync.ts';
import type { AppEvent } from '../../src/core/events.ts';
import type { HttpAnswer, Sink, Transport } from '../../src/core/ports.ts';
import { Secret } from '../../src/core/secret.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { wrapWrites } from '../../src/delivery/destination.ts';
import { createInfluxSink } from '../../src/influx/sink.ts';
import { BASE_PATH } from '../../src/sim/simulator.ts';
import { cron, SCHEDULES, syncSettings } from '../support/defaults.ts';
import { createSimulator, type Simulator } from '../support/faulty-simulator.ts';
import { mortalSink, mortalTransport } from '../support/mortality.ts';
import type { Program } from '../support/rig.ts';
import { transportOf } from '../support/sim-transport.ts';
import { createVirtualClock, type VirtualClock, withWallOffset } from '../support/virtual-clock.ts';
import type { ServedPage } from './believed-lies.ts';
import { openDatabase } from './database.ts';
import { createDice } from './dice.ts';
import { createLineStore, type LineStore } from './line-store.ts';
import { createFate, type Fate } from './misfortunes.ts';
import type { Life, Story } from './story.ts';
import { createTruth, type Truth } from './truth.ts';
import { worldOf } from './world.ts';

const TOKEN = 'lives-token';

/** More requests than any honest story needs. */
const MOST_REQUESTS = 6000;

/** The result of a story, in numbers. */
export interface Counts {
  kills: number;
  requests: number;
  writes: number;
  /** Ranges that were reported as covered and compared with the truth. */
  claims: number;
}

export interface Stage extends Disposable {
  readonly story: Story;
  readonly program: Program;
  readonly clock: VirtualClock;
  readonly simulator: Simulator;
  readonly fate: Fate;
  readonly truth: Truth;
  readonly counts: Counts;
  /** When each request was sent, by the clock that never jumps. */
  readonly sentMs: number[];
  /** When each answer with a `Date` came, by the story's clock. */
  readonly datedMs: number[];
  /** The true pages of devices with readings that came, by the story's clock. */
  readonly truePages: ServedPage[];
  /** When the account was read first, by that clock; `null` where it was not. */
  accountReadMs: number | null;
  /** When the account was read last, by the story's clock. */
  planReadMs: number;
  /** The directory of the state: another one after each kill. */
  dataDir: string;
  /** The database that the program delivers to now. */
  database(): LineStore;
  /** Has it deliver to a database that is new to it. */
  moveHouse(): void;
  /** Whether the database has lost what was not sent again yet. */
  hasLost: boolean;
  /** When the current life has begun. */
  lifeStartedMs: number;
  /** The program that runs now; `null` where none does. */
  living: Pick<Sync, 'context'> | null;
  /** The directory that a kill leaves behind becomes the state. */
  die(): void;
  /** The options of a life. */
  options(life: Life, observe: (event: AppEvent) => void): SyncOptions;
}

/** Sets a story up. */
export function openStage(story: Story, program: Program): Stage {
  const clock = createVirtualClock(story.startMs);
  const simulator = createSimulator({ world: worldOf(story), clock, settings: story.api });
  const fate = createFate(story, clock, {
    settings: simulator.settings,
    knownSign: (deviceId) => stage.living?.context.store.device(deviceId)?.record.lastSeenAt ?? null,
    knownEdges: (deviceId) => {
      const covered = stage.living?.context.store.telemetry(deviceId).covered ?? [];
      return covered.flatMap(({ first, last }) => [first, last].flatMap((edge) => edge?.at ?? []));
    },
  });
  simulator.faults = fate.faults;
  const stores = new Map<string, LineStore>();
  let house = 0;
  const storeOf = (bucket: string): LineStore => {
    const store = stores.get(bucket) ?? createLineStore();
    stores.set(bucket, store);
    return store;
  };
  const connect = openDatabase({
    token: TOKEN,
    fault: fate.database,
    write: (bucket, body) => storeOf(bucket).write(body),
  });
  const database = (): LineStore => storeOf(`house-${house}`);
  const deviceIds = story.devices.map(({ spec }) => spec.deviceId);
  const truth = createTruth({ simulator, deviceIds, graceMs: story.program.gracePeriodMs, database });
  const counts: Counts = { kills: 0, requests: 0, writes: 0, claims: 0 };
  const stage: Stage = {
    story,
    program,
    clock,
    simulator,
    fate,
    truth,
    counts,
    sentMs: [],
    datedMs: [],
    truePages: [],
    accountReadMs: null,
    planReadMs: Number.NEGATIVE_INFINITY,
    dataDir: mkdtempSync(join(tmpdir(), 'tidemark-lives-')),
    hasLost: false,
    lifeStartedMs: story.startMs,
    living: null,
    database,
    moveHouse: () => {
      house += 1;
      truth.forget();
    },
    die: () => {
      const left = stage.dataDir;
      stage.dataDir = mkdtempSync(join(tmpdir(), 'tidemark-lives-'));
      cpSync(left, stage.dataDir, { recursive: true });
      counts.kills += 1;
    },
    options: (life, observe) => optionsOf(stage, connect, { life, observe, bucket: `house-${house}` }),
    [Symbol.dispose]: () => {
      rmSync(stage.dataDir, { recursive: true, force: true });
    },
  };
  return stage;
}

/** Opens a connection to the database. */
type Connect = ReturnType<typeof openDatabase>;

interface Opening {
  readonly life: Life;
  readonly observe: (event: AppEvent) => void;
  readonly bucket: string;
}

function optionsOf(stage: Stage, connect: Connect, { life, observe, bucket }: Opening): SyncOptions {
  const { story, clock, simulator, fate } = stage;
  const { program } = story;
  const dice = createDice(story.seed * 31 + story.lives.indexOf(life));
  const { telemetry, devices, alerts } = program.schedules;
  return {
    transport: mortalTransport(stageTransport(stage)),
    api: {
      url: 'http://simulator.test/external/v1',
      key: () => simulator.settings.key.secret,
      share: program.share,
      concurrency: program.concurrency,
    },
    settings: syncSettings({
      history: { kind: 'age', ageMs: program.historyMs },
      gracePeriodMs: program.gracePeriodMs,
      concurrency: program.concurrency,
      schedules: { ...SCHEDULES, telemetry: cron(telemetry), devices: cron(devices), alerts: cron(alerts) },
    }),
    destinations: [
      {
        sink: mortalSink(sinkOf(stage, connect, bucket)),
        identity: bucket,
        batchLines: program.batchLines,
        timeoutMs: MINUTE_MS,
      },
    ],
    dataDir: stage.dataDir,
    archive: { retentionMs: program.retentionMs, maxBytes: null },
    disk: { directory: stage.dataDir, freeBytes: () => 2 ** 40 },
    clock: withWallOffset(clock, fate.localOffsetMs),
    random: dice.unit,
    observe,
  };
}

function stageTransport({ simulator, fate, counts, sentMs, datedMs, truePages, clock }: Stage): Transport {
  return async (request, signal) => {
    counts.requests += 1;
    if (counts.requests > MOST_REQUESTS) throw new Error(`more than ${MOST_REQUESTS} requests`);
    sentMs.push(clock.monoMs());
    fate.turn();
    const before = fate.reported.length;
    const answer = fate.undate(await transportOf(simulator)(request, signal));
    if (answer.headers.date !== undefined) datedMs.push(clock.nowMs());
    const path = new URL(request.url).pathname.slice(BASE_PATH.length);
    const isTrue = !fate.reported.slice(before).some((lie) => lie.path === path);
    if (isTrue && path.endsWith('/telemetry') && hasReadings(answer)) truePages.push({ path, atMs: clock.nowMs() });
    return answer;
  };
}

/** Whether an answer is a complete page with readings. */
function hasReadings({ status, body }: HttpAnswer): boolean {
  if (status !== 200) return false;
  try {
    return JSON.parse(Buffer.from(body).toString()).data.length > 0;
  } catch {
    return false;
  }
}

/** The shortest duration of a write, in virtual time, so that concurrent events do not depend on the machine. */
const WRITE_MS = 1.7;

/** The real sink, with the database of the story in place of a connection. */
function sinkOf({ clock, counts }: Stage, connect: Connect, bucket: string): Sink {
  const sink = createInfluxSink({
    name: 'influx',
    url: 'http://database.test',
    connect,
    token: new Secret(TOKEN),
    org: '',
    bucket,
    timeoutMs: MINUTE_MS,
  });
  return wrapWrites(sink, async (write) => {
    counts.writes += 1;
    const answer = await clock.busy(write());
    await clock.sleep(WRITE_MS);
    return answer;
  });
}
