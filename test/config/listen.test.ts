/** `host:port` is read strictly: a name or an address, IPv6 in brackets, and a port that exists. */
import { expect, test } from 'vitest';
import { parseListen } from '../../src/config/listen.ts';

test.each([
  ['127.0.0.1:9464', { host: '127.0.0.1', port: 9464 }],
  ['localhost:0', { host: 'localhost', port: 0 }],
  ['page_1.example-2.com:65535', { host: 'page_1.example-2.com', port: 65_535 }],
  ['[::1]:80', { host: '::1', port: 80 }],
  ['[::ffff:10.0.0.1]:80', { host: '::ffff:10.0.0.1', port: 80 }],
  ['host:00080', { host: 'host', port: 80 }],
])('%s is an address', (text, place) => {
  expect(parseListen(text)).toEqual(place);
});

test.each([
  '',
  '9464',
  ':9464',
  'host',
  'host:',
  'host:65536',
  'host:100000',
  'host:-1',
  'host:8x',
  '::1:80',
  '[::1]',
  '[1.2.3.4]:80',
  '[:::]:80',
  'http://host:80',
  'host:80/',
  ' host:80',
  'ho st:80',
])('%j is none', (text) => {
  expect(parseListen(text)).toBeNull();
});
