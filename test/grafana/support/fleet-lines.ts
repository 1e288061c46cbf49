/**
 * A large fleet as lines, made by the rules that the daemon makes them by and far more quickly than it: for how the
 * dashboards do with many devices and much data, not for what the daemon writes.
 */
import { coverageLine, deviceLine, workspaceLine } from '../../../src/core/lines/fact-lines.ts';
import type { DeviceRecord } from '../../../src/core/records.ts';
import { HOUR_MS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import type { Influxd } from '../../support/influxd.ts';

const HUBS = 10;
const SENSORS = ['temperature', 'humidity', 'battery_voltage'];
const WORKSPACE = 'ws-large';
/** As many lines as an InfluxDB stores at once in good time. */
const BATCH_LINES = 20_000;

export interface FleetSize {
  readonly devices: number;
  readonly days: number;
  readonly intervalMs: number;
  readonly nowMs: number;
}

function idOf(device: number): string {
  return `d${String(device).padStart(5, '0')}`;
}

function nameOf(device: number): string {
  return device < HUBS ? `Hub ${device}` : `Device ${device}`;
}

function recordOf(device: number, atMs: number): DeviceRecord {
  const isHub = device < HUBS;
  return {
    deviceId: idOf(device),
    name: nameOf(device),
    modelId: isHub ? 'gateway' : `sense-${device % 7}`,
    firmwareVersion: `1.${device % 5}.0`,
    isAddon: !isHub,
    parentDeviceId: isHub ? null : idOf(device % HUBS),
    lifecycleStatus: device % 101 === 100 ? 'paused' : 'active',
    online: device % 50 !== 49,
    presence: device % 50 === 49 ? 'no_signal' : 'reporting',
    lastSeenAt: msToNs(atMs - MINUTE_MS - device),
    latitude: isHub ? 50 + device / 10 : null,
    longitude: isHub ? 8 + device / 10 : null,
    locationUpdatedAt: null,
    tags: [],
  };
}

/**
 * Writes a fleet into a database.
 *
 * @returns how many points.
 */
export async function writeFleet(influxd: Pick<Influxd, 'write'>, database: string, size: FleetSize): Promise<number> {
  let batch: string[] = [];
  let points = 0;
  const send = async (): Promise<void> => {
    if (batch.length === 0) return;
    const status = await influxd.write(database, batch.join('\n'));
    if (status !== 204) throw new Error(`the database answered ${status}`);
    points += batch.length;
    batch = [];
  };
  for (const lines of linesOf(size)) {
    batch.push(...lines);
    if (batch.length >= BATCH_LINES) await send();
  }
  await send();
  return points;
}

/** In the order of time, which is fastest for a database. */
function* linesOf(size: FleetSize): Generator<readonly string[]> {
  const { devices, days, intervalMs, nowMs } = size;
  const fromMs = nowMs - days * 24 * HOUR_MS;
  const all = Array.from({ length: devices }, (_, device) => device);
  for (let hourMs = fromMs; hourMs < nowMs; hourMs += HOUR_MS) {
    for (let atMs = hourMs; atMs < Math.min(hourMs + HOUR_MS, nowMs); atMs += intervalMs) {
      yield all.flatMap((device) => readingLines(device, atMs));
    }
    yield factLines(size, all, hourMs);
  }
}

function readingLines(device: number, atMs: number): string[] {
  const day = (atMs / (24 * HOUR_MS) + device / 100) * 2 * Math.PI;
  const values = [20 + 5 * Math.sin(day) + (device % 10), 50 + 10 * Math.cos(day), 3 - (device % 20) / 100];
  const name = nameOf(device).replaceAll(' ', '\\ ');
  const time = `${atMs + device}000000`;
  return SENSORS.map(
    (sensor, index) =>
      `telemetry,device_id=${idOf(device)},device_name=${name},sensor=${sensor},workspace_id=${WORKSPACE} value=${values[index]?.toFixed(2)} ${time}`,
  );
}

/** The hourly lines, and an alert in each hour that lasts for a few. */
function factLines({ intervalMs }: FleetSize, all: readonly number[], hourMs: number): string[] {
  const perHour = Math.floor(HOUR_MS / intervalMs);
  const hour = Math.floor(hourMs / HOUR_MS);
  const account = {
    workspaceId: WORKSPACE,
    name: 'Large',
    plan: {
      planId: 'large',
      name: 'Large',
      maxApiKeys: 5,
      requestsPerMinute: 100,
      requestsPerDay: 50_000,
      historyMaxDays: 90,
      maxDevicesPerPage: 200,
    },
    devices: all.length,
    openAlerts: 4,
  };
  const use = { spentMinute: 20, leftMinute: 80, spentDay: 30_000, leftDay: 20_000 };
  return [
    workspaceLine(account, use, { workspaceTag: WORKSPACE, atMs: hourMs }),
    ...alertLines(hour, 'open', hour * HOUR_MS),
    ...alertLines(hour - 4, 'resolved', hour * HOUR_MS),
    ...all.flatMap((device) => {
      const deviceName = nameOf(device);
      const facts = {
        deviceId: idOf(device),
        deviceName,
        lagSeconds: device % 900,
        gapSeconds: 0,
        lifecycleStatus: 'active',
        watermarkNs: null,
      };
      const state = device % 50 === 49 ? 'silent' : 'live';
      const tags = `device_id=${idOf(device)},device_name=${deviceName.replaceAll(' ', '\\ ')},workspace_id=${WORKSPACE}`;
      return [
        deviceLine(recordOf(device, hourMs), WORKSPACE, hourMs + device),
        ...[0, 15, 30, 45].map((minute) => {
          const atNs = msToNs(hourMs + minute * MINUTE_MS + device);
          return coverageLine({ ...facts, state, watermarkNs: atNs - msToNs(2 * MINUTE_MS), atNs }, WORKSPACE);
        }),
        `coverage_hour,${tags} readings=${state === 'live' ? perHour : 0} ${hour * HOUR_MS}000000`,
      ];
    }),
  ];
}

function alertLines(id: number, status: 'open' | 'resolved', atMs: number): string[] {
  const device = 10 + (id % 90);
  const tags = `alert_id=${id},device_id=${idOf(device)},device_name=${nameOf(device).replaceAll(' ', '\\ ')},kind=threshold,sensor=temperature,workspace_id=${WORKSPACE}`;
  const state = `alert_state,${tags} status="${status}",open=${status === 'open' ? 1 : 0},fire_count=1,value=30 ${atMs}000000`;
  if (status === 'resolved') return [state];
  return [`alert,${tags} rule_name="Too warm",condition="temperature above 30",threshold=30 ${atMs}000000`, state];
}
