/** The small HTTP client of the tests: it reads answers, and posts to servers on loopback. */
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { openPost, readAnswer } from './plain-post.ts';

const { signal } = new AbortController();

describe('an answer', () => {
  test('is read once all of it has come', () => {
    const text = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nX-A:  b \r\n\r\n{}';
    for (let length = 0; length < text.length; length += 1) expect(readAnswer(text.slice(0, length))).toBeNull();
    expect(readAnswer(text)).toEqual({ status: 400, headers: { 'content-length': '2', 'x-a': 'b' }, body: '{}' });
  });

  test('without content has no length', () => {
    expect(readAnswer('HTTP/1.1 204 No Content\r\n\r\n')).toEqual({ status: 204, headers: {}, body: '' });
  });

  test('of another form is refused', () => {
    for (const text of ['SSH-2.0\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\n', 'HTTP/1.1 204 No Content\r\n\r\n{']) {
      expect(() => readAnswer(text)).toThrow(/an answer/);
    }
  });
});

describe('a server', () => {
  /** A server that answers 400 with what it gets, one that hangs up at `/cut`, and one that is silent at `/wait`. */
  async function openEcho() {
    const server = createServer((request, response) => {
      if (request.url === '/cut') response.destroy();
      if (request.url !== '/') return;
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks);
        response.writeHead(400, {
          'content-length': body.length,
          'x-packed': request.headers['content-encoding'] ?? '',
        });
        response.end(body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const sockets = new Set<object>();
    server.on('connection', (socket) => sockets.add(socket));
    return {
      post: openPost(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`),
      sockets,
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }

  test('gets each body as it is, several at a time, over connections that stay open', async () => {
    await using echo = await openEcho();
    const bodies = ['ü€', 'a'.repeat(300_000), ''];
    for (let round = 0; round < 2; round += 1) {
      const answers = await Promise.all(bodies.map((body) => echo.post('/', { body, isPacked: false }, signal)));
      expect(answers.map(({ body }) => body)).toEqual(bodies);
      expect(answers.map(({ status, headers }) => [status, headers['x-packed']])).toEqual(bodies.map(() => [400, '']));
    }
    expect(echo.sockets.size).toBe(bodies.length);
    const packed = await echo.post('/', { body: Buffer.from('b'), isPacked: true }, signal);
    expect([packed.headers['x-packed'], packed.body]).toEqual(['gzip', 'b']);
  });

  test('that hangs up, or is not waited for any more, is an error, and the next request is answered', async () => {
    await using echo = await openEcho();
    await expect(echo.post('/cut', { body: 'a', isPacked: false }, signal)).rejects.toThrow('closed before the answer');
    const stop = new AbortController();
    const waiting = echo.post('/wait', { body: 'a', isPacked: false }, stop.signal);
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    expect((await echo.post('/', { body: 'a', isPacked: false }, signal)).body).toBe('a');
  });
});
