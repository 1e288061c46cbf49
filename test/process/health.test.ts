/**
 * `--health` as a real process: what the health check of a container runs, against real daemons and against what is
 * none.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Ended, openStage, type Run, type Stage, start, until } from './support.ts';

/** The address of the status page, from the log of a daemon. */
function portOf(run: Run): string | null {
  return /127\.0\.0\.1:(\d+)/.exec(run.stderr())?.[1] ?? null;
}

async function openDaemon(stage: Stage): Promise<{ run: Run; port: string }> {
  const run = stage.start([], { env: { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_LOG_FORMAT: 'json' } });
  await until('the page is served', () => portOf(run) !== null);
  return { run, port: portOf(run) ?? '' };
}

/** Runs with an address only: no key, no API, no state. */
async function health(listen: string, args: readonly string[] = [], env: Record<string, string> = {}): Promise<Ended> {
  return await start(['--health', ...args], { env: { TIDEMARK_LISTEN: listen, ...env } }).ended;
}

describe('--health', () => {
  test('is 0 beside a daemon that moves, whatever else is wrong, and 1 when it has gone', async () => {
    await using stage = await openStage({ settings: { key: { secret: 'another' } } });
    const { run, port } = await openDaemon(stage);
    await until('the key is rejected', () => run.stderr().includes('key-refused'));
    expect(await health(`0.0.0.0:${port}`)).toMatchObject({ code: 0, stdout: 'healthy\n', stderr: '' });
    // A mistake in the configuration since the start is not the daemon's health.
    const broken = { TIDEMARK_API_SHARE: '99', TIDEMARK_INFLUX_TOKEN_FILE: '/nowhere' };
    expect(await health(`127.0.0.1:${port}`, ['--json'], broken)).toMatchObject({
      code: 0,
      stdout: '{"healthy":true,"reasons":[]}\n',
    });
    run.child.kill('SIGTERM');
    await run.ended;
    expect(await health(`0.0.0.0:${port}`)).toMatchObject({
      code: 1,
      stdout: `not healthy: nothing answers at 0.0.0.0:${port} (ECONNREFUSED); check that the daemon is running and uses the same listen address\n`,
    });
  });

  test('is 1 while the process stands still, and 0 again when it continues', async () => {
    await using stage = await openStage();
    const { run, port } = await openDaemon(stage);
    expect((await health(`127.0.0.1:${port}`)).code).toBe(0);
    run.child.kill('SIGSTOP');
    const stopped = await health(`127.0.0.1:${port}`);
    run.child.kill('SIGCONT');
    expect(stopped.code).toBe(1);
    expect(stopped.stdout).toContain('nothing answers');
    await until('it is healthy again', async () => (await health(`127.0.0.1:${port}`)).code === 0);
  });

  test.each([
    [
      'a loop that stands still',
      503,
      '{"healthy":false,"reasons":["the loop \\"main\\" has made no progress for 75 s"],"codes":[]}',
      'the loop "main" has made no progress',
    ],
    ['a page of something else', 200, '<html>', 'is not Tidemark (HTTP 200)'],
    ['JSON of something else', 200, '{"healthy":"yes","reasons":[]}', 'is not Tidemark'],
    ['hostile words', 503, '{"healthy":true,"reasons":["\\u001b[31mred"]}', 'not healthy: [31mred'],
    ['an endless page', 200, 'x'.repeat(100_000), 'nothing answers'],
  ])('is 1 where %s is answered', async (_what, status, body, words) => {
    const server = createServer((_request, response) => response.writeHead(status).end(body));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { code, stdout } = await health(`127.0.0.1:${port}`).finally(() => server.close());
    expect([code, stdout]).toEqual([1, expect.stringContaining(words)]);
  });

  test('reads listen from the file, and reports mistakes there', async () => {
    await using stage = await openStage();
    const { port } = await openDaemon(stage);
    const file = join(stage.directory, 'tidemark.yaml');
    writeFileSync(file, `listen: 127.0.0.1:${port}\napi:\n  nonsense: 1\n`);
    const ask = async (): Promise<Ended> => await start(['--health', '--config', file]).ended;
    expect((await ask()).code).toBe(0);
    writeFileSync(file, 'listen: nowhere\n');
    expect(await ask()).toMatchObject({ code: 78, stderr: expect.stringContaining('listen (') });
    expect(await start(['--health', '--config', '/nowhere.yaml']).ended).toMatchObject({ code: 78 });
    expect((await health('127.0.0.1:0')).stdout).toContain('port 0');
  });
});
