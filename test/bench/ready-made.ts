/**
 * Sends prepared bodies, one after the other on each of so many connections, to measure the maximum of a database.
 * They are read before the first is sent.
 *
 *   node ready-made.ts WRITE_URL DIRECTORY CONNECTIONS
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';

const [, , url = '', directory = '', connections = '1'] = process.argv;
const bodies = readdirSync(directory)
  .toSorted()
  .map((name) => ({ isPacked: name.endsWith('.gz'), body: readFileSync(join(directory, name)) }));
const agent = new Agent({ keepAlive: true });
const left = bodies.values();

async function send({ isPacked, body }: (typeof bodies)[number]): Promise<void> {
  const headers = { 'content-length': body.length, ...(isPacked ? { 'content-encoding': 'gzip' } : {}) };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request(url, { method: 'POST', agent, headers }, resolve).on('error', reject).end(body);
  const answer = await promise;
  await buffer(answer);
  if (answer.statusCode !== 204) throw new Error(`the database answered ${answer.statusCode}`);
}

await Promise.all(
  Array.from({ length: Number(connections) }, async () => {
    for (const body of left) await send(body);
  }),
);
agent.destroy();
