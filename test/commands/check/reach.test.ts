/** `--check`, the way to the API: its address, the connection, TLS, and a server that fails or is something else. */
import { existsSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { TEST_CERTIFICATE, TEST_KEY } from '../../api/support/certificate.ts';
import { always, onPath } from '../../support/faults.ts';
import { patient } from '../../support/patience.ts';
import { bad, forward, line, openStage } from './support.ts';

describe('the way there', () => {
  test('a wrong path of api.url is named', async () => {
    await using stage = await openStage();
    const wrong = stage.url.replace('/external/v1', '/wrong/external/v1');
    const report = await stage.report({ TIDEMARK_API_URL: wrong });
    expect(bad(report)[0]).toBe('fail address');
    expect(line(report, 'address')).toMatchObject({ remedy: expect.stringMatching(/Correct api\.url/) });
    expect([report.exit_code, report.requests]).toEqual([1, 1]);
    expect(bad(await stage.report({ TIDEMARK_API_URL: stage.url }))).toEqual([]);
  });

  test.each([
    [
      'connection',
      'http://127.0.0.1:1/external/v1',
      /connection refused/,
      /^Check that api\.url is right \(127\.0\.0\.1, port 1\), that the server is up/,
    ],
    [
      'name',
      'http://no-such-host.invalid/external/v1',
      /the host name no-such-host\.invalid (was not found|could not be resolved)/,
      /^Correct the host in api\.url, or check the name servers/,
    ],
  ])(
    '%s fails: no request is made, the state is not touched, the other checks continue',
    async (name, url, words, remedy) => {
      await using stage = await openStage();
      const report = await stage.report({ TIDEMARK_API_URL: url });
      expect(line(report, name)).toMatchObject({
        status: 'fail',
        message: expect.stringMatching(words),
        remedy: expect.stringMatching(remedy),
      });
      expect([report.exit_code, report.requests]).toEqual([1, 0]);
      expect(bad(report, 'api').slice(1)).toEqual([
        'skip devices:read',
        'skip telemetry:read',
        'skip alerts:read',
        'skip account:read',
      ]);
      expect(line(report, 'none').area, 'destinations are told of').toBe('destination');
      expect(existsSync(stage.dataDir), 'no state is left behind').toBe(false);
      expect(bad(await stage.report({ TIDEMARK_API_URL: stage.url }), 'api')).toEqual([]);
    },
  );

  test('TLS: with an unknown authority, with a known one, and with a server without TLS', async () => {
    await using stage = await openStage();
    const server = createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, (request, response) => {
      void forward(stage.url, request.url ?? '').then(({ status, headers, body }) => {
        response.writeHead(status, headers);
        response.end(body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const env = { TIDEMARK_API_URL: `https://127.0.0.1:${(server.address() as AddressInfo).port}/external/v1` };
      const unknown = await stage.report(env);
      expect(bad(unknown)[0]).toBe('fail TLS');
      expect(line(unknown, 'TLS').remedy).toMatch(/api\.ca_file/);
      expect([unknown.exit_code, unknown.requests]).toEqual([1, 0]);
      const file = join(stage.directory, 'ca.pem');
      writeFileSync(file, TEST_CERTIFICATE);
      const known = await stage.report({ ...env, TIDEMARK_API_CA_FILE: file });
      expect(line(known, 'TLS').message).toMatch(
        /^TLSv1\.\d; the certificate is trusted; it expires in [\d,]+(\.\d)? days/,
      );
      expect([bad(known, 'api'), known.requests]).toEqual([[], 5]);
      // Eight days before it expires.
      vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2126, 9, 20) });
      const ending = await stage.report({ ...env, TIDEMARK_API_CA_FILE: file, TIDEMARK_DATA_DIR: `${stage.dataDir}2` });
      expect(line(ending, 'TLS')).toMatchObject({
        status: 'warn',
        message: expect.stringMatching(/^the certificate of the API expires in 8(\.\d)? days/),
        remedy: 'Ask the operator of the API to renew it.',
      });
    } finally {
      vi.useRealTimers();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    const plain = await stage.report({ TIDEMARK_API_URL: stage.url.replace('http:', 'https:') });
    expect(line(plain, 'TLS')).toMatchObject({
      status: 'fail',
      remedy: expect.stringMatching(/^If that is intended, write api\.url with http:\/\/\.$/),
    });
    expect(bad(await stage.report({ TIDEMARK_API_URL: stage.url }), 'api')).toEqual([]);
  });

  test('TLS: a server that closes the connection instead', async () => {
    await using stage = await openStage();
    const server = createTcpServer((socket) => void socket.once('data', () => socket.destroy()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const report = await stage.report({ TIDEMARK_API_URL: `https://127.0.0.1:${port}/external/v1` });
    expect(line(report, 'TLS')).toMatchObject({ status: 'fail', remedy: expect.stringMatching(/^Set api\.ca_file/) });
    await new Promise((resolve) => server.close(resolve));
  });

  test('a host that accepts connections and never answers: the timeout, once', async () => {
    await using stage = await openStage();
    stage.simulator.faults = always({ kind: 'hang' });
    const beganMs = performance.now();
    const report = await stage.report({ TIDEMARK_API_TIMEOUT: '1s' });
    expect(performance.now() - beganMs).toBeLessThan(patient(3000));
    expect(bad(report)[0]).toBe('fail answer');
    expect(line(report, 'answer').message).toMatch(/no complete response within 1000 ms/);
    expect(line(report, 'answer').remedy).toBe(
      'Check the network, HTTPS_PROXY and api.ca_file, then run --check again.',
    );
    expect([report.exit_code, report.requests]).toEqual([1, 1]);
    stage.simulator.faults = null;
    expect(bad(await stage.report())).toEqual([]);
  });

  test('something else answers: two such answers are enough', async () => {
    await using stage = await openStage();
    stage.simulator.faults = always({ kind: 'html', status: 200 });
    const report = await stage.report();
    expect(report.checks.filter(({ name }) => name === 'answer')).toHaveLength(2);
    expect(report.checks.find(({ name }) => name === 'answer')).toMatchObject({
      message: expect.stringMatching(/an HTML page/),
      remedy: expect.stringMatching(/^Run --check again\. If the problem stays, check that api\.url is right/),
    });
    expect([report.exit_code, report.requests]).toEqual([1, 2]);
  });

  test('one endpoint that fails keeps no other from being tried', async () => {
    await using stage = await openStage();
    stage.simulator.faults = onPath(/alerts/, always({ kind: 'server-error' }));
    const report = await stage.report();
    expect(bad(report)).toEqual(['fail answer']);
    expect(line(report, 'telemetry:read').status).toBe('ok');
    expect(report.exit_code).toBe(1);
    stage.simulator.faults = null;
    expect(bad(await stage.report())).toEqual([]);
  });
});
