/**
 * Node's HTTP, by `require`: an import reads every member of the module, and one of them loads a second HTTP client that
 * nobody here uses, which is a tenth of a start.
 */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export const http: typeof import('node:http') = require('node:http');
export const https: typeof import('node:https') = require('node:https');
