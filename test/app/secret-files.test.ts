/** Secrets that are read again: what counts as one, and that each is known before it is used. */
import { expect, test } from 'vitest';
import { createKeySource, createPasswordSource, createSecretReader } from '../../src/app/secret-files.ts';
import { createScrub, Secret } from '../../src/core/secret.ts';

const OF_INFLUX = { key: 'influx.token_file', url: 'http://db.example:8086' };

test('a secret that is read again is masked from then on, and listed once', () => {
  const first = new Secret('the-first-one');
  const secrets = [first];
  const scrub = createScrub(secrets);
  let text = 'the-first-one\n';
  const read = createSecretReader({ readFile: () => text, secrets, onUnusable: () => expect.fail('is usable') });
  expect(read('/token', OF_INFLUX)).toBe(first);
  text = 'the-second-one\n';
  const second = read('/token', OF_INFLUX);
  expect(second?.reveal()).toBe('the-second-one');
  expect(read('/token', OF_INFLUX)).toBe(second);
  expect(scrub('the-first-one and the-second-one')).toBe('[secret] and [secret]');
  expect(secrets).toHaveLength(2);
});

test('a file that is away, empty or no text gives none', () => {
  const gone = (): never => {
    throw Object.assign(new Error('gone'), { code: 'ENOENT' });
  };
  const secrets: Secret[] = [];
  const onUnusable = (): never => expect.fail('may be about to be written');
  for (const readFile of [gone, () => '', () => '\n']) {
    const read = createSecretReader({ readFile, secrets, onUnusable });
    for (let time = 0; time < 3; time += 1) expect(read('/token', OF_INFLUX)).toBeNull();
  }
  expect(secrets).toEqual([]);
});

test('a new token that cannot be used is reported once, with what to do', () => {
  const secrets: Secret[] = [];
  const reports: string[] = [];
  let text: string | null = 'u:p\n';
  const readFile = (): string => {
    if (text === null) throw Object.assign(new Error('refused'), { code: 'EACCES' });
    return text;
  };
  const read = createSecretReader({ readFile, secrets, onUnusable: (message) => void reports.push(message) });
  const look = (times: number): string[] => {
    for (let time = 0; time < times; time += 1) expect(read('/run/token', OF_INFLUX)).toBeNull();
    return reports.splice(0);
  };
  // Half-written for a moment.
  expect(look(1)).toEqual([]);
  expect(look(3)).toEqual([
    'influx.token_file: the file /run/token is shorter than 4 characters; the previous token stays in use. Use a longer token; only a database on this machine may have such a short one.',
  ]);
  text = 'two\nlines\n';
  expect(look(3)).toEqual([
    expect.stringMatching(
      /^influx\.token_file: the file \/run\/token .*line breaks.*; the previous token stays in use\. Write only the secret, on one line\.$/,
    ),
  ]);
  text = 'token→4242\n';
  expect(look(3)).toEqual([
    expect.stringMatching(/; the previous token stays in use\. Write only the new token into this file\.$/),
  ]);
  text = null;
  expect(look(3)).toEqual([
    'influx.token_file: this user may not read the file: /run/token; the previous token stays in use. Let the user of the daemon read this file and enter its directory: change owner, group or mode.',
  ]);
  // As advised: a longer token. A short one is accepted for a database on this machine.
  text = 'user:gk7-Rw2x\n';
  expect(read('/run/token', OF_INFLUX)?.reveal()).toBe('user:gk7-Rw2x');
  text = 'u:p\n';
  expect(read('/run/token', { ...OF_INFLUX, url: 'http://127.0.0.1:8086' })?.reveal()).toBe('u:p');
  expect(look(2)).toHaveLength(1);
});

test('a new key that cannot be used is reported once, and the key before stays', () => {
  const secrets: Secret[] = [];
  const reports: string[] = [];
  let text: string | null = 'the-first-key\n';
  let code = 'ENOENT';
  const readFile = (): string => {
    if (text === null) throw Object.assign(new Error('gone'), { code });
    return text;
  };
  const onUnusable = (message: string): void => void reports.push(message);
  const api = { key: new Secret('the-first-key'), keyFile: '/run/key' };
  const key = createKeySource(api, { readFile, secrets, onUnusable });
  const look = (times: number): string[] => {
    for (let time = 0; time < times; time += 1) key.checkFile?.();
    expect(key.hasChanged()).toBe(false);
    return reports.splice(0);
  };
  expect(look(3)).toEqual([]);
  text = 'abc\n';
  // Half-written for a moment.
  expect(look(1)).toEqual([]);
  expect(look(3)).toEqual([
    'api.key_file: the file /run/key is shorter than 4 characters; the daemon keeps the previous key. Write only the new key into this file.',
  ]);
  text = 'Bearer the-second-key\n';
  expect(look(3)).toEqual([
    'api.key_file: the file /run/key has a space in it; the daemon keeps the previous key. Write only the key, without "Bearer".',
  ]);
  text = null;
  expect(look(3)).toEqual([
    'api.key_file: this file does not exist: /run/key; the daemon keeps the previous key. Write only the new key into this file.',
  ]);
  text = 'the-first-key\n';
  expect(look(1)).toEqual([]);
  code = 'EACCES';
  text = null;
  expect(look(3)).toEqual([
    'api.key_file: this user may not read the file: /run/key; the daemon keeps the previous key. Let the user of the daemon read this file and enter its directory: change owner, group or mode.',
  ]);
  text = '';
  expect(look(2)).toHaveLength(1);
  text = 'the-second-key\n';
  expect(key.hasChanged()).toBe(true);
  key.adopt();
  expect([key.inUse().reveal(), secrets.map((secret) => secret.reveal())]).toEqual([
    'the-second-key',
    ['the-second-key'],
  ]);
});

test('a look of a job at a half-written key file is not the second check of the daemon', () => {
  const reports: string[] = [];
  const api = { key: new Secret('the-first-key'), keyFile: '/run/key' };
  const onUnusable = (message: string): void => void reports.push(message);
  const key = createKeySource(api, { readFile: () => 'abc\n', secrets: [], onUnusable });
  key.checkFile?.();
  for (let time = 0; time < 30; time += 1) expect(key.hasChanged()).toBe(false);
  expect(reports).toEqual([]);
  key.checkFile?.();
  expect(reports).toHaveLength(1);
});

test('a key file of systemd that the daemon may not read any more: the commands that let it', () => {
  const reports: string[] = [];
  const readFile = (): string => {
    throw Object.assign(new Error('refused'), { code: 'EACCES' });
  };
  const keyFile = '/etc/tidemark/home/tidemark_api_key';
  const onUnusable = (message: string): void => void reports.push(message);
  const key = createKeySource({ key: new Secret('the-key'), keyFile }, { readFile, secrets: [], onUnusable });
  for (let time = 0; time < 3; time += 1) key.checkFile?.();
  expect(reports).toEqual([
    expect.stringMatching(
      /\. Let the daemon read it: sudo chgrp tidemark-home \/etc\/tidemark\/home\/tidemark_api_key && sudo chmod 0640 \/etc\/tidemark\/home\/tidemark_api_key$/,
    ),
  ]);
});

test('the password of the status page is read again by a check, and kept where the file has none', () => {
  const secrets: Secret[] = [];
  const reports: string[] = [];
  let text = 'the-first-one\n';
  const password = createPasswordSource(
    { password: new Secret('the-first-one'), passwordFile: '/run/password' },
    { readFile: () => text, secrets, onUnusable: (message) => void reports.push(message) },
  );
  const checked = (): string | undefined => {
    password.checkFile();
    return password.inUse()?.reveal();
  };
  text = 'the-second-one\n';
  expect([password.inUse()?.reveal(), checked()]).toEqual(['the-first-one', 'the-second-one']);
  expect(createScrub(secrets)('the-second-one')).toBe('[secret]');
  text = '';
  expect(checked()).toBe('the-second-one');
  text = 'abc';
  expect([checked(), checked(), checked()]).toEqual(Array.from({ length: 3 }, () => 'the-second-one'));
  expect(reports).toEqual([
    'listen_password_file: the file /run/password is shorter than 4 characters; the previous password stays in use. Write only the new password into this file.',
  ]);
});

test('a password without a file is never read again', () => {
  const password = new Secret('the-first-one');
  const parts = { readFile: () => expect.fail('is not read'), secrets: [], onUnusable: () => {} };
  const source = createPasswordSource({ password, passwordFile: null }, parts);
  source.checkFile();
  expect(source.inUse()).toBe(password);
});
