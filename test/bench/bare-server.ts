/**
 * The least that answers HTTP, as a process of its own: what the attacks of the bench do to any server on this machine.
 * Started by `attacked.ts`; reports its port.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const PAGE = 'x'.repeat(40_000);

const server = createServer((request, response) => {
  response.end(request.url === '/healthz' ? 'well' : PAGE);
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
