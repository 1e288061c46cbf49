/**
 * An API with one device whose pages are as large as they may be, as a process of its own. Started by `pause.ts` with
 * the time of its newest reading and the number of its sensors; reports its port.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const [newestMs = 0, sensors = 0] = process.argv.slice(2).map(Number);
const READINGS = 1000;
const PLAN = { plan_id: 'fat', external_requests_per_minute: 6000, external_requests_per_day: 10_000_000 };

function bodyOf(path: string, query: URLSearchParams): unknown {
  switch (path) {
    case '/account':
      return { workspace_id: 'fat', name: 'Fat', plan: PLAN, usage: { devices: 1, open_alerts: 0 } };
    case '/devices':
      return { data: [{ device_id: 'd1', name: 'D', last_seen_at: new Date(newestMs).toISOString() }] };
    case '/alerts':
      return { data: [] };
    default:
      return telemetry(query);
  }
}

function telemetry(query: URLSearchParams): unknown {
  const limit = Number(query.get('limit') ?? 50);
  const [fromMs, toMs] = [Date.parse(query.get('after') ?? '1970'), Date.parse(query.get('before') ?? '2200')];
  const times = Array.from({ length: READINGS }, (_, index) => newestMs - index * 60_000);
  const within = times.filter((ms) => ms >= fromMs && ms <= toMs);
  const data = within.slice(0, limit).map((ms) => ({
    recorded_at: new Date(ms).toISOString(),
    values: Object.fromEntries(Array.from({ length: sensors }, (_, n) => [`sensor_${n}`, Math.sin(ms + n)])),
  }));
  return { device_id: 'd1', data, ...(within.length > limit ? { next_cursor: 'more' } : {}) };
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://fat');
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(bodyOf(pathname.replace('/external/v1', ''), searchParams)));
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
