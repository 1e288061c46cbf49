/**
 * The HTTP server on loopback: its answers and its refusals. The pages
 * themselves: `test/page/`.
 */
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { realClock } from '../../src/app/real-clock.ts';
import { UserError } from '../../src/core/faults.ts';
import type { DeviceStatus, HealthReport, MissingStatus, ReadyReport, StatusReport } from '../../src/core/status.ts';
import {
  endInvalid,
  PAGE_POLICY,
  type StatusServer,
  type StatusServerOptions,
  serveStatus,
} from '../../src/observe/server.ts';
import { patient } from '../support/patience.ts';

const DEVICE: DeviceStatus = {
  device_id: 'dev-1',
  device_name: 'Cellar',
  state: 'live',
  active: true,
  newest_reading_at: '2026-11-21T00:00:00Z',
  lag_seconds: 130,
  covered: [
    ['2026-10-22T00:00:00Z', '2026-11-01T00:00:00Z'],
    ['2026-11-02T00:00:00Z', '2026-11-21T00:00:00.5Z'],
  ],
  gaps: [{ from: '2026-11-01T00:00:00Z', to: '2026-11-02T00:00:00Z', reason: 'malformed pages' }],
};

const LACK: MissingStatus = {
  reason: 'cleared',
  points: 98_765,
  devices: 2,
  from: '2026-09-01T00:00:00Z',
  to: '2026-10-01T00:00:00Z',
};

const REPORT: StatusReport = {
  version: '0.1.0',
  generated_at: '2026-11-21T00:00:01Z',
  workspace_name: null,
  workspace_id: 'ws-1',
  summary: 'Everything is in place.',
  summary_problem: null,
  process: { running: true, last_request_at: null, last_archived_at: null },
  freshness: {
    target_seconds: 60,
    expected_seconds: 60,
    behind_after_seconds: 420,
    behind_devices: 0,
    median_seconds: null,
    p95_seconds: null,
    max_seconds: null,
  },
  gaps: [],
  jobs: [],
  next: {
    attempt_at: null,
    streams: [],
    devices_with_gaps: 0,
    gap_seconds: 0,
    initial_devices: 0,
    eta_seconds: null,
    eta_assumes_full_history: false,
  },
  streams: [
    { name: 'telemetry', state: 'on', reason: null, last_read_at: '2026-11-21T00:00:00Z' },
    { name: 'alerts', state: 'off', reason: 'not read by this version yet', last_read_at: null },
  ],
  totals: {
    devices: 1200,
    devices_complete: 7,
    archived_readings: 1_234_567,
    archived_points: 2_345_678,
    requests: 99,
    rejected_records: 4321,
    covered_share: 0.99999,
  },
  devices: [DEVICE],
  destinations: [
    {
      name: 'influx',
      pending_points: 12,
      quarantined: 3,
      delivered_points: 45_678,
      oldest_pending_at: null,
      oldest_live_pending_at: null,
      lag_seconds: 0,
      missing: [LACK],
      blocked_reason: null,
      blocked_since: null,
      next_attempt_at: null,
    },
  ],
  archive: { points: 0, state_bytes: 4096, max_bytes: null, disk_free_bytes: null, full: null },
  allowance: {
    share: 0.8,
    lanes: [],
    minute: { limit: 60, budget: 48, spent: 5 },
    day: { limit: null, budget: null, spent: 77 },
    waiting_until: null,
    history_waiting_until: null,
  },
};

const HEALTH: HealthReport = {
  healthy: false,
  reasons: ['the loop "delivery influx" has made no progress for 75 s'],
  codes: ['loop_stalled'],
};

const READY: ReadyReport = {
  ready: false,
  reasons: ['3 of 40 devices: the last 24 hours are not synced yet', 'destination influx: 401'],
  codes: ['last_day_missing', 'destination_blocked'],
  names: [null, 'influx'],
};

const open: StatusServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function serve(options: Partial<StatusServerOptions> = {}): Promise<StatusServer> {
  const server = await serveStatus({
    listen: { host: '127.0.0.1', port: 0 },
    names: [],
    password: () => null,
    clock: realClock,
    status: () => REPORT,
    page: async () => await Promise.resolve(null),
    health: () => ({ healthy: true, reasons: [], codes: [] }),
    ready: async () => ({ ready: true, reasons: [], codes: [], names: [] }),
    metrics: {
      text: async () => await Promise.resolve('tidemark_ready 1\n'),
      contentType: 'text/plain; version=0.0.4',
    },
    onError: () => undefined,
    ...options,
  });
  open.push(server);
  return server;
}

interface Got {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

/** One request, its path and method as they stand. */
function ask(server: StatusServer, path: string, method = 'GET', body?: string): Promise<Got> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(server.url);
    const sent = httpRequest({ hostname, port, path, method, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece) => {
        text += piece;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

test('waits for an answer that takes long to make, however silent the connection is meanwhile', async () => {
  const server = await serve({
    page: async () => {
      await new Promise((resolve) => setTimeout(resolve, 11_500));
      return { status: 200, type: 'text/plain', body: 'a page of very many readings' };
    },
  });
  expect(await ask(server, '/device')).toMatchObject({ status: 200, body: 'a page of very many readings' });
});

/**
 * Sends bytes and reads until the other side ends.
 *
 * @param last whether the client closes its side after these bytes.
 */
function speak(server: StatusServer, bytes: string, last = false): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.url).port) });
    let heard = '';
    socket.on('data', (piece) => {
      heard += piece;
    });
    socket.on('close', () => resolve(heard));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? resolve(heard) : reject(error),
    );
    if (last) socket.end(bytes);
    else socket.write(bytes);
  });
}

describe('the served answers', () => {
  test('/status.json is the report, with at least the members that others read', async () => {
    const { status, headers, body } = await ask(await serve(), '/status.json');
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    const report = JSON.parse(body);
    expect(report).toEqual(REPORT);
    expect(Object.keys(report)).toEqual(
      expect.arrayContaining(['version', 'workspace_id', 'streams', 'devices', 'destinations', 'allowance']),
    );
    expect(Object.keys(report.devices[0])).toEqual(
      expect.arrayContaining(['device_id', 'device_name', 'state', 'lag_seconds', 'covered', 'gaps']),
    );
  });

  test('a page gets its path and query; unknown ones are not found', async () => {
    const asked: string[] = [];
    const server = await serve({
      page: async (path, params) => {
        asked.push(`${path} ${params.getAll('x').join(' ')}`);
        return await Promise.resolve(
          path === '/device' ? { status: 200, type: 'text/html; charset=utf-8', body: '<p>ü' } : null,
        );
      },
    });
    expect(await ask(server, '/device?x=1&x=a%20b%3F&y?')).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/html; charset=utf-8', 'content-length': '5' },
      body: '<p>ü',
    });
    expect((await ask(server, '/device/?x=%zz')).status).toBe(404);
    expect(asked).toEqual(['/device 1 a b?', '/device/ %zz']);
  });

  test('an answer with an ETag may be cached, and is sent again only when it has changed', async () => {
    const body = 'p { color: red }';
    const page = async () => await Promise.resolve({ status: 200, type: 'text/css', body, etag: '"v1"' });
    const server = await serve({ page });
    expect((await ask(server, '/assets/x')).headers).toMatchObject({ 'cache-control': 'no-cache', etag: '"v1"' });
    const ifChanged = async (tag: string) =>
      await fetch(`${server.url}assets/x`, { headers: { 'If-None-Match': tag } });
    const same = await ifChanged('"v1"');
    expect([same.status, await same.text(), same.headers.get('content-security-policy')]).toEqual([
      304,
      '',
      PAGE_POLICY,
    ]);
    const changed = await ifChanged('"v0"');
    expect([changed.status, await changed.text()]).toEqual([200, body]);
  });

  test.each([
    ['/healthz', HEALTH],
    ['/readyz', READY],
  ])('%s is 200 while all is well and 503 with reasons and their codes while not', async (path, bad) => {
    expect(await ask(await serve(), path)).toMatchObject({ status: 200 });
    const troubled = await serve({ health: () => HEALTH, ready: async () => READY });
    const { status, body } = await ask(troubled, path);
    expect([status, JSON.parse(body)]).toEqual([503, bad]);
  });

  test('/metrics is text for Prometheus; nothing else is there at all', async () => {
    const server = await serve();
    expect(await ask(server, '/metrics')).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/plain; version=0.0.4' },
      body: 'tidemark_ready 1\n',
    });
    for (const path of [
      '/favicon.ico',
      '/status.json/',
      '//',
      '/../etc/passwd',
      '/%2e%2e/',
      '*',
      '/STATUS.JSON',
      '/status.json%00',
    ]) {
      const { status, body } = await ask(server, path);
      expect([path, status, typeof JSON.parse(body).error]).toEqual([path, 404, 'string']);
    }
  });

  test('HEAD gets the head of GET and no body', async () => {
    const server = await serve();
    for (const path of ['/status.json', '/healthz', '/nothing']) {
      const [got, head] = [await ask(server, path), await ask(server, path, 'HEAD')];
      expect([head.status, head.body]).toEqual([got.status, '']);
      expect(head.headers['content-length']).toBe(String(Buffer.byteLength(got.body)));
    }
  });

  test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'])(
    '%s is refused with what is allowed',
    async (method) => {
      const refused = await ask(await serve(), '/status.json', method);
      expect(refused).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
    },
  );

  test('every answer forbids caching, framing, sniffing, referring and all that could run', async () => {
    const server = await serve();
    for (const [path, method] of [
      ['/', 'GET'],
      ['/status.json', 'GET'],
      ['/none', 'GET'],
      ['/', 'POST'],
    ] as const) {
      expect((await ask(server, path, method)).headers).toMatchObject({
        'cache-control': 'no-store',
        'content-security-policy': PAGE_POLICY,
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
      });
    }
  });
});

describe('problems of the server', () => {
  test('an error in making an answer is logged, and the client gets no details', async () => {
    const heard: string[] = [];
    const server = await serve({
      status: () => {
        throw new Error('SQLITE_CORRUPT at /data/state.db');
      },
      page: () => Promise.reject(new Error('SQLITE_CORRUPT at /data/state.db')),
      onError: (message) => heard.push(message),
    });
    for (const path of ['/', '/status.json']) {
      const { status, body } = await ask(server, path);
      expect([status, body]).toEqual([
        500,
        '{"error":"Internal error while answering this request. The log has the reason."}\n',
      ]);
    }
    expect(heard).toEqual(['SQLITE_CORRUPT at /data/state.db', 'SQLITE_CORRUPT at /data/state.db']);
    expect((await ask(server, '/healthz')).status).toBe(200);
  });

  test('invalid HTTP, and heads that are too large, get a bare refusal and the end', async () => {
    const server = await serve();
    for (const bytes of [
      '\u0016\u0003\u0001hello\r\n\r\n',
      `GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`,
    ]) {
      expect(await speak(server, bytes)).toBe(
        'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
      );
    }
    expect((await ask(server, '/healthz')).status).toBe(200);
  });

  test('a connection whose time is over ends without an answer, which a browser would take for that of a request', async () => {
    const end = async (code: string): Promise<string> => {
      const server = createServer((socket) => endInvalid(Object.assign(new Error(code), { code }), socket));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      try {
        const pieces = await connect(port, '127.0.0.1').setEncoding('utf8').toArray();
        return pieces.join('');
      } finally {
        server.close();
      }
    };
    expect(await end('ERR_HTTP_REQUEST_TIMEOUT')).toBe('');
    expect(await end('HPE_INVALID_METHOD')).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('a request that names two hosts is refused', async () => {
    const heard = await speak(
      await serve(),
      'GET / HTTP/1.1\r\nHost: x\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
    );
    expect(heard).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('a health check that closes its side at once is answered', async () => {
    expect(await speak(await serve(), 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', true)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('a body that is sent along is not waited for', async () => {
    const heard = await speak(await serve(), 'GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
    expect(heard).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*Connection: close\r\n/);
  });

  test('a port in use ends it with what to do', async () => {
    const port = Number(new URL((await serve()).url).port);
    const error = await serve({ listen: { host: '127.0.0.1', port } }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({
      exitCode: 1,
      message: `listen: 127.0.0.1:${port} is in use by another program or another Tidemark. Set listen (TIDEMARK_LISTEN) to another port; with port 0 Tidemark takes a free port. Or stop that program. If it is a Tidemark daemon, do not stop it: if its page shows this workspace, you need no second daemon.`,
    });
  });

  test('an address that is not of this machine ends it with what to do', async () => {
    const error = await serve({ listen: { host: '192.0.2.1', port: 0 } }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('192.0.2.1:0 is not an address of this machine'),
    });
  });

  test('closing ends open connections and frees the port', async () => {
    const server = await serve();
    const hanging = speak(server, 'GET /healthz HTTP/1.1\r\nHost: x\r\n');
    await ask(server, '/healthz');
    await server.close();
    await hanging;
    const again = await serve({ listen: { host: '127.0.0.1', port: Number(new URL(server.url).port) } });
    expect((await ask(again, '/healthz')).status).toBe(200);
  });

  test('listening everywhere, it names an address that can be opened', async () => {
    const server = await serve({ listen: { host: '0.0.0.0', port: 0 } });
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    expect((await ask(server, '/healthz')).status).toBe(200);
  });
});

describe('limits', () => {
  test('a head that is sent drop by drop is cut off, and so is a connection that sends nothing', async () => {
    const server = await serve();
    const beganMs = performance.now();
    const drops = setInterval(() => sockets.forEach((socket) => void (socket.writable && socket.write('X'))), 200);
    const sockets = [0, 1].map(() => connect({ host: '127.0.0.1', port: Number(new URL(server.url).port) }));
    for (const socket of sockets) socket.resume();
    sockets[0]?.write('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    try {
      await Promise.all(
        sockets.map((socket) => new Promise((resolve) => socket.on('error', resolve).on('close', resolve))),
      );
    } finally {
      clearInterval(drops);
    }
    expect(performance.now() - beganMs).toBeLessThan(patient(40_000));
    expect((await ask(server, '/healthz')).status).toBe(200);
  });

  test('connections beyond the limit are closed, and those within it are served', async () => {
    const server = await serve();
    const port = Number(new URL(server.url).port);
    const sockets = Array.from({ length: 130 }, () => connect({ host: '127.0.0.1', port }));
    let closed = 0;
    for (const socket of sockets) socket.on('error', () => {}).on('close', () => (closed += 1));
    await new Promise<void>((resolve) => {
      const look = setInterval(() => {
        if (closed < 30) return;
        clearInterval(look);
        resolve();
      }, 20);
    });
    expect(closed).toBe(30);
    const heard = new Promise<string>((resolve) => {
      const open = sockets.find((socket) => !socket.destroyed);
      open?.once('data', (piece) => resolve(String(piece)));
      open?.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    });
    expect(await heard).toMatch(/^HTTP\/1\.1 200 OK/);
    for (const socket of sockets) socket.destroy();
  });

  test('very many heads in one request are refused or ignored, never kept', async () => {
    const server = await serve();
    const heads = Array.from({ length: 500 }, (_, index) => `h${index}: x\r\n`).join('');
    expect(await speak(server, `GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${heads}\r\n`)).toMatch(
      /^HTTP\/1\.1 (?:200 OK|400 Bad Request)\r\n/,
    );
    expect((await ask(server, '/healthz')).status).toBe(200);
  });
});
