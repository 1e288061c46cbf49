/**
 * The bill of materials (CycloneDX) of what is shipped, from package-lock.json: the same for the same lockfile.
 *
 *   node config/image/sbom.mjs FILE
 *
 * `npm sbom --omit dev` leaves out shipped packages that development needs as well: 3 of 25 with npm 11.19.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const MODULES = 'node_modules/';

/** The packages of a lockfile that are shipped, as pairs of path and entry. */
export function shippedOf({ packages }) {
  return Object.entries(packages).filter(
    ([path, { dev, optional, devOptional }]) => path !== '' && ![dev, optional, devOptional].includes(true),
  );
}

const nameOf = (path) => path.slice(path.lastIndexOf(MODULES) + MODULES.length);
const purlOf = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`;
const refOf = (path, { version }) => purlOf(nameOf(path), version);

/** Where a package finds another one: inside itself, or further out. */
function resolve(packages, from, name) {
  const parts = from.split(`/${MODULES}`);
  const folders =
    from === '' ? [] : parts.map((_, index) => `${parts.slice(0, parts.length - index).join(`/${MODULES}`)}/`);
  return [...folders, ''].map((folder) => `${folder}${MODULES}${name}`).find((path) => path in packages);
}

function componentOf([path, { version, license, integrity }]) {
  const [algorithm, hash] = integrity.split('-');
  return {
    type: 'library',
    'bom-ref': purlOf(nameOf(path), version),
    name: nameOf(path),
    version,
    scope: 'required',
    purl: purlOf(nameOf(path), version),
    hashes: [{ alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(hash, 'base64').toString('hex') }],
    licenses: [/^[\w.-]+$/.test(license) ? { license: { id: license } } : { expression: license }],
  };
}

/** The bill of materials of a lockfile. */
export function billOf(lock) {
  const { packages } = lock;
  const shipped = shippedOf(lock);
  const paths = new Set(shipped.map(([path]) => path));
  const own = purlOf(lock.name, lock.version);
  const needsOf = (path, { dependencies = {} }) =>
    Object.keys(dependencies)
      .map((name) => resolve(packages, path, name))
      .filter((found) => paths.has(found))
      .map((found) => refOf(found, packages[found]));
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': own,
        name: lock.name,
        version: lock.version,
        purl: own,
        licenses: [{ license: { name: packages[''].license } }],
      },
    },
    components: shipped.map(componentOf),
    dependencies: [
      { ref: own, dependsOn: needsOf('', packages['']) },
      ...shipped.map(([path, entry]) => ({ ref: refOf(path, entry), dependsOn: needsOf(path, entry) })),
    ],
  };
}

/** Writes the bill of the lockfile in this folder. */
export function writeBill(file) {
  writeFileSync(file, `${JSON.stringify(billOf(JSON.parse(readFileSync('package-lock.json', 'utf8'))), null, 2)}\n`);
}

if (import.meta.main) writeBill(process.argv[2]);
