/**
 * Ports that nobody listens at.
 */
import { createServer } from 'node:net';

/** Ports on loopback, each another one; all are free as this resolves. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(async (server) => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : 0;
    }),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** One of them. */
export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] ?? 0;
}
