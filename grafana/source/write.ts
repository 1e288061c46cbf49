/** `npm run dashboards`: writes the dashboards and alert rules that Grafana is provisioned with, and their README. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generatedFiles } from './all.ts';

for (const [name, text] of generatedFiles()) {
  const path = fileURLToPath(new URL(`../${name}`, import.meta.url));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
