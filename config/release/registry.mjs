/**
 * A registry of images and charts on this machine, in memory, for the rehearsal of a release: as much of the OCI
 * distribution protocol as pushing and pulling need.
 */
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

const digestOf = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** An answer: its status, headers and body. */
const found = (type, bytes) => [200, { 'content-type': type, 'docker-content-digest': digestOf(bytes) }, bytes];
const stored = (path, bytes) => [201, { location: path, 'docker-content-digest': digestOf(bytes) }];
const NOT_FOUND = [404, {}];
const WRONG_DIGEST = [400, {}];

/** Blobs are sent in pieces to an upload, and named by their digest at its end. */
function takeBlob({ blobs, uploads }, { method, path, folder, digest }, bytes) {
  const id = path.split('/').at(-1);
  if (method === 'POST' && digest === null) {
    const upload = randomUUID();
    uploads.set(upload, Buffer.alloc(0));
    return [202, { location: `${folder}/blobs/uploads/${upload}` }];
  }
  const whole = Buffer.concat([uploads.get(id) ?? Buffer.alloc(0), bytes]);
  if (method === 'PATCH') {
    uploads.set(id, whole);
    return [202, { location: path, range: `0-${whole.length - 1}` }];
  }
  if (digest !== digestOf(whole)) return WRONG_DIGEST;
  uploads.delete(id);
  blobs.set(digest, whole);
  return stored(`${folder}/blobs/${digest}`, whole);
}

function answer(contents, { method, path, digest, type }, bytes) {
  if (/^\/v2\/?$/.test(path)) return [200, {}];
  const [, folder, what, ref] = /^(\/v2\/.+)\/(blobs|manifests)\/(.+)$/.exec(path) ?? [];
  if (what === undefined) return NOT_FOUND;
  const isRead = method === 'GET' || method === 'HEAD';
  if (what === 'blobs' && !isRead) return takeBlob(contents, { method, path, folder, digest }, bytes);
  if (what === 'blobs') {
    const blob = contents.blobs.get(ref);
    return blob === undefined ? NOT_FOUND : found('application/octet-stream', blob);
  }
  if (!isRead) {
    for (const name of [ref, digestOf(bytes)]) contents.manifests.set(`${folder}/${name}`, { type, bytes });
    return stored(path, bytes);
  }
  const manifest = contents.manifests.get(`${folder}/${ref}`);
  return manifest === undefined ? NOT_FOUND : found(manifest.type, manifest.bytes);
}

/** Opens one. @returns its host with the port, and `close` */
export async function openRegistry() {
  const contents = { blobs: new Map(), uploads: new Map(), manifests: new Map() };
  const server = createServer(async (request, response) => {
    const { pathname: path, searchParams } = new URL(request.url, 'http://registry');
    const { method, headers } = request;
    const of = { method, path, digest: searchParams.get('digest'), type: headers['content-type'] };
    const [status, fields, body = Buffer.alloc(0)] = answer(contents, of, await bodyOf(request));
    response.writeHead(status, { ...fields, 'content-length': body.length });
    response.end(method === 'HEAD' ? undefined : body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
