/**
 * The command line, what is understood, and for every mistake the words that matter.
 */
import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../src/cli/argv.ts';
import { FLAGS, MODES, VALUE_FLAGS } from '../../src/cli/command.ts';
import { helpText } from '../../src/cli/help.ts';
import { TOPICS } from '../../src/cli/topics.ts';
import { UserError } from '../../src/core/faults.ts';

/** The modes that take a flag; all of them where it is left out. */
function working(flag?: string): string[] {
  return MODES.filter((mode) => flag === undefined || VALUE_FLAGS[mode.flag].includes(flag)).map(
    (mode) => `--${mode.flag}`,
  );
}

/** Words as a sentence lists them: `a, b and c`. */
function listed(words: readonly string[], last: 'and' | 'or'): string {
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}

/** The message of the mistake, which must be one of the command line. */
function mistakeOf(...argv: string[]): string {
  return errorOf(...argv).message;
}

function errorOf(...argv: string[]): UserError {
  try {
    parseArguments(argv);
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).exitCode).toBe(2);
    return error as UserError;
  }
  throw new Error(`accepted: ${argv.join(' ')}`);
}

test.each([
  [['--once', '--json=true'], '--json takes no value', ':', 'write it without the equals sign.'],
  [['--export'], '--export needs a value', ':', '--export csv|ndjson|lp.'],
  [['--export', 'cvs'], '--export takes csv, ndjson or lp', '.', 'Did you mean csv?'],
  [['--status', '--status'], '--status was given twice', '.', 'Give it once.'],
  [['--onse'], 'Unknown flag --onse', '.', 'Did you mean --once?'],
  [
    ['--api-key', 'x'],
    'Unknown flag --api-key',
    '.',
    'Keys and tokens come from files or the environment, such as TIDEMARK_API_KEY_FILE, never from the command line.',
  ],
  [['forget'], '--forget needs a device', ':', '--forget --device ID.'],
  [['--export', 'xml'], '--export takes csv, ndjson or lp.', '', null],
])(
  '%j: the problem and the remedy are apart in the error, and together in its message',
  (argv, what, joint, remedy) => {
    const error = errorOf(...argv);
    expect([error.what, error.remedy]).toEqual([what, remedy]);
    expect(error.message).toBe(remedy === null ? what : `${what}${joint} ${remedy}`);
  },
);

describe('valid command lines', () => {
  test.each([
    [['--once'], { mode: 'once', configFile: null, json: false, logLevel: null }],
    [
      ['--json', '--once', '--config', 'a b.yaml', '--log-level=debug'],
      { mode: 'once', configFile: 'a b.yaml', json: true, logLevel: 'debug' },
    ],
    [['--once', '--config=--odd-name'], { mode: 'once', configFile: '--odd-name', json: false, logLevel: null }],
    [['--demo'], { mode: 'demo', apiOnly: false, logLevel: null }],
    [['demo', '--api-only'], { mode: 'demo', apiOnly: true, logLevel: null }],
    [['--demo', '--log-level', 'error'], { mode: 'demo', apiOnly: false, logLevel: 'error' }],
    [['--help'], { mode: 'help', topic: null }],
    [['--once', '--help'], { mode: 'help', topic: 'once' }],
    [['--help', '--status'], { mode: 'help', topic: 'status' }],
    [['--version'], { mode: 'version' }],
    [['--health'], { mode: 'health', configFile: null, json: false }],
    [['--health', '--config', 'x.yaml', '--json'], { mode: 'health', configFile: 'x.yaml', json: true }],
    [
      ['--plan'],
      {
        mode: 'plan',
        configFile: null,
        json: false,
        logLevel: null,
        from: null,
        to: null,
        devices: [],
        finishBy: null,
        maxShare: null,
        whatIf: [],
      },
    ],
    [
      '--plan --json --from 90d --to 2026-06-01 --device a --device=b --what-if share=0.5 --what-if'
        .split(' ')
        .concat('telemetry=*/5 * * * *'),
      {
        mode: 'plan',
        configFile: null,
        json: true,
        logLevel: null,
        from: '90d',
        to: '2026-06-01',
        devices: ['a', 'b'],
        finishBy: null,
        maxShare: null,
        whatIf: [
          { key: 'api.share', value: '0.5' },
          { key: 'sync.telemetry', value: '*/5 * * * *' },
        ],
      },
    ],
    [['--plan', '--help'], { mode: 'help', topic: 'plan' }],
    [['--backup', '--help'], { mode: 'help', topic: 'backup' }],
    [['--help', '--export'], { mode: 'help', topic: 'export' }],
    [['--status', '--json'], { mode: 'status', configFile: null, json: true, logLevel: null, device: null }],
    [['--status', '--device', 'a'], { mode: 'status', configFile: null, json: false, logLevel: null, device: 'a' }],
    [
      ['--check', '--bundle', 'b.json'],
      {
        mode: 'check',
        configFile: null,
        json: false,
        logLevel: null,
        writeProbe: false,
        startup: false,
        verbose: false,
        bundle: 'b.json',
      },
    ],
    [
      ['check', '--verbose'],
      {
        mode: 'check',
        configFile: null,
        json: false,
        logLevel: null,
        writeProbe: false,
        startup: false,
        verbose: true,
        bundle: null,
      },
    ],
    [
      ['--check'],
      {
        mode: 'check',
        configFile: null,
        json: false,
        logLevel: null,
        writeProbe: false,
        startup: false,
        verbose: false,
        bundle: null,
      },
    ],
    [
      ['--check', '--write-probe', '--json', '--config', 'x.yaml'],
      {
        mode: 'check',
        configFile: 'x.yaml',
        json: true,
        logLevel: null,
        writeProbe: true,
        startup: false,
        verbose: false,
        bundle: null,
      },
    ],
  ])('%j', (argv, command) => {
    expect(parseArguments(argv)).toEqual(command);
  });
});

describe('a mode without its dashes', () => {
  test.each<[string[], string[]]>([
    [['once'], ['--once']],
    [
      ['status', '--device', 'Cold room 1'],
      ['--status', '--device', 'Cold room 1'],
    ],
    [
      ['--config', 'x.yaml', 'status'],
      ['--config', 'x.yaml', '--status'],
    ],
    [
      ['--config', 'status', 'check'],
      ['--config', 'status', '--check'],
    ],
    [
      ['export', 'csv', '--from', '7d'],
      ['--export', 'csv', '--from', '7d'],
    ],
    [
      ['export', '--from', '7d', 'csv'],
      ['--export', 'csv', '--from', '7d'],
    ],
    [
      ['backup', 'status'],
      ['--backup', 'status'],
    ],
    [['quarantine'], ['--quarantine']],
    [
      ['quarantine', 'drop', '--device', 'a'],
      ['--quarantine', 'drop', '--device', 'a'],
    ],
    [
      ['forget', '--device', 'a'],
      ['--forget', '--device', 'a'],
    ],
    [['help'], ['--help']],
    [['help', 'help'], ['--help']],
    [
      ['help', 'status', '-h'],
      ['--status', '--help'],
    ],
    [
      ['help', 'status'],
      ['--status', '--help'],
    ],
    [
      ['help', 'export'],
      ['--export', '--help'],
    ],
    [
      ['help', '--export'],
      ['--export', '--help'],
    ],
    [
      ['export', '-h'],
      ['--export', '--help'],
    ],
    [
      ['--backup', '-h'],
      ['--backup', '--help'],
    ],
    [['-h'], ['--help']],
    [
      ['status', '-h'],
      ['--status', '--help'],
    ],
    [['-v'], ['--version']],
    [['version'], ['--version']],
  ])('%j is %j', (argv, dashed) => {
    expect(parseArguments(argv)).toEqual(parseArguments(dashed));
  });

  test.each(MODES.map(({ flag, value }) => [flag, value] as const))('%s', (flag, value) => {
    const more = { none: [], optional: [], required: ['csv'] }[value];
    const device = flag === 'forget' ? ['--device', 'x'] : [];
    expect(parseArguments([flag, ...more, ...device])).toEqual(parseArguments([`--${flag}`, ...more, ...device]));
  });
});

describe('modes', () => {
  test('without a mode it is the daemon', () => {
    expect(parseArguments([])).toEqual({ mode: 'daemon', configFile: null, logLevel: null });
    expect(parseArguments(['--config', 'x.yaml', '--log-level', 'debug'])).toEqual({
      mode: 'daemon',
      configFile: 'x.yaml',
      logLevel: 'debug',
    });
  });

  test('every mode is read, none forgotten', () => {
    const more: Partial<Record<string, readonly string[]>> = {
      export: ['csv'],
      backup: ['x'],
      forget: ['--device', 'x'],
    };
    for (const { flag } of MODES) expect(parseArguments([`--${flag}`, ...(more[flag] ?? [])]).mode).toBe(flag);
  });
});

describe('mistakes', () => {
  test.each<[string[], RegExp]>([
    [['--onec'], /Unknown flag --onec\. Did you mean --once\?/],
    [['--once', '--log-levle', 'info'], /Unknown flag --log-levle\. Did you mean --log-level\?/],
    [['--once', '--no-json'], /Unknown flag --no-json\. Did you mean --json\?/],
    [['--frobnicate'], /Unknown flag --frobnicate\. tidemark --help lists/],
    [['-H'], /Unknown flag -H\. Did you mean --help\?/],
    [['-once'], /Unknown flag -o\./],
    [['onec'], /One argument is neither a mode nor a flag\. Did you mean once\?/],
    [['statsu', '--device', 'a'], /One argument is neither a mode nor a flag\. Did you mean status\?/],
    [['config', 'x.yaml'], /two dashes: did you mean --config\?/],
    [['daemon'], /The daemon has no mode: run tidemark without one/],
    [['once', 'demo'], /--once and --demo are modes, and only one can run at a time/],
    [['once', 'once'], /--once was given twice/],
    [['once', '--once'], /--once was given twice/],
    [['export'], /--export needs a value: --export csv\|ndjson\|lp/],
    [['export', '--from', '7d'], /--export needs a value/],
    [['export', 'cvs'], /--export takes csv, ndjson or lp\. Did you mean csv\?/],
    [['backup'], /--backup needs a value: --backup FILE/],
    [['quarantine', 'lst'], /--quarantine takes list, retry or drop\. Did you mean list\?/],
    [['--', '--once'], /two dashes: did you mean --once\?/],
    [['--once', ''], /^One argument .* is neither a mode nor a flag/],
    [['--once', '--demo'], /--once and --demo are modes, and only one can run at a time/],
    [['--once', '--version', '--demo'], /--once, --demo|--once and --demo/],
    [['--once', '--once'], /--once was given twice/],
    [['--once', '--json', '--json'], /--json was given twice/],
    [['--once', '--config', 'a', '--config', 'b'], /--config was given twice/],
    [['--once', '--config'], /--config needs a value: --config FILE/],
    [['--once', '--config='], /--config needs a value/],
    [['--once', '--config', ''], /--config needs a value/],
    [['--config', '--once'], /--config needs a value/],
    [['--once', '--log-level'], /--log-level needs a value: --log-level error\|warn\|info\|debug/],
    [['--once', '--log-level', 'inof'], /--log-level takes error, warn, info or debug\. Did you mean info\?/],
    [['--once', '--log-level', 'verbose'], /--log-level takes error, warn, info or debug\.$/],
    [['--once=yes'], /--once takes no value/],
    [['--once', '--json=true'], /--json takes no value/],
    [['--export', 'xml'], /--export takes csv, ndjson or lp\.$/],
    [['--export', 'cvs'], /--export takes csv, ndjson or lp\. Did you mean csv\?/],
    [['--export'], /--export needs a value: --export csv\|ndjson\|lp/],
    [
      ['--once', '--from', '1d'],
      new RegExp(`--from cannot be used with --once: it is a flag of ${listed(working('from'), 'and')}\\.$`),
    ],
    [['--once', '--device', 'a', '--device', 'b'], /--device cannot be used with --once/],
    [['--from', '1d'], new RegExp(`--from needs a mode as well: ${listed(working('from'), 'or')}\\.$`)],
    [['--plan', '--from', '1d', '--from', '2d'], /--from was given twice/],
    [['--plan', '--what-if'], /--what-if needs a value: --what-if KEY=VALUE/],
    [['--plan', '--what-if', 'share'], /--what-if takes KEY=VALUE, such as share=0\.5\.$/],
    [['--plan', '--what-if', 'shares=1'], /--what-if has no such key\. Did you mean share\? Its keys: api\.share, /],
    [['--once', '--what-if', 'share=1'], /--what-if cannot be used with --once: it is a flag of --plan\.$/],
    [
      ['--demo', '--json'],
      new RegExp(`--json cannot be used with --demo: it is a flag of ${listed(working('json'), 'and')}\\.`),
    ],
    [['--status', '--device', 'a', '--device', 'b'], /--status takes one device at a time\. Give --device once\./],
    [['--status', '--device'], /--device needs a value: --device ID/],
    [['--status', '--from', '1d'], /--from cannot be used with --status/],
    [['--demo', '--config', 'x'], /--demo reads no configuration file/],
    [['--check', '--from', '1d'], /--from cannot be used with --check/],
    [['--once', '--write-probe'], /--write-probe cannot be used with --once: it is a flag of --check\.$/],
    [['--write-probe'], /--write-probe needs a mode as well: --check\.$/],
    [['--check', '--write-probe=yes'], /--write-probe takes no value/],
    [['--check', '--write-probe', '--write-probe'], /--write-probe was given twice/],
    [['--version', '--json'], /--json cannot be used with --version/],
    [['--quarantine', 'list', 'drop'], /neither a mode nor a flag|two dashes/],
  ])('%j', (argv, words) => {
    expect(mistakeOf(...argv)).toMatch(words);
  });

  test.each([
    [['--api-key', 'sk_live_4242']],
    [['--api-key=sk_live_4242', '--once']],
    [['--token', 'sk_live_4242']],
    [['sk_live_4242', '--once']],
    [['--once', '--log-level', 'sk_live_4242']],
    [['--json=sk_live_4242']],
    [['--plan', '--what-if', 'sk_live_4242']],
    [['--plan', '--what-if', 'sk_live_4242=1']],
    [['--once', '--', 'sk_live_4242']],
  ])('an error does not repeat a text that may be a key: %j', (argv) => {
    expect(mistakeOf(...argv)).not.toContain('4242');
  });

  test('a key on the command line is refused with the right place for it', () => {
    expect(mistakeOf('--api-key', 'x')).toContain('TIDEMARK_API_KEY_FILE');
  });

  test('a flag that steers terminals is shown without its steering', () => {
    expect(mistakeOf('--\u001b[31mred\u202e')).toContain('Unknown flag --[31mred.');
  });
});

describe('the help text', () => {
  test.each([null, ...MODES.map(({ flag }) => flag)])('fits 80 columns and ends its last line (%s)', (topic) => {
    const text = helpText(topic);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(text.endsWith('\n')).toBe(true);
    expect(text.endsWith('\n\n')).toBe(false);
  });

  test('the overview names every mode, every flag of today, every exit code, and shows examples', () => {
    const text = helpText();
    for (const { flag } of MODES) expect(text).toContain(`--${flag}`);
    for (const flag of VALUE_FLAGS.once) expect(text).toContain(`--${flag}`);
    for (const code of [0, 1, 2, 3, 77, 78]) expect(text).toMatch(new RegExp(`^ {2}${code} `, 'm'));
    expect(text).toContain('Examples:');
  });

  /** The modes of the examples in a text. */
  const examplesIn = (text: string): string[] =>
    [...text.matchAll(/^ {2}(?:[A-Z_]+=\S+ )?tidemark (--[^>|\n]+)/gm)].map(
      ([, words]) => parseArguments((words ?? '').trim().split(' ')).mode,
    );

  test('every example in it is understood, and those of a topic are of its mode', () => {
    expect(examplesIn(helpText())).toEqual(expect.arrayContaining(['demo', 'daemon', 'plan', 'once']));
    for (const mode of Object.keys(TOPICS) as (keyof typeof TOPICS)[]) {
      expect(new Set(examplesIn(helpText(mode))), mode).toEqual(new Set([mode]));
    }
  });

  test('the table has no flag without a mode that accepts it', () => {
    const taken = new Set(Object.values(VALUE_FLAGS).flat());
    const modes = new Set<string>(MODES.map(({ flag }) => flag));
    expect(FLAGS.map(({ flag }) => flag).filter((flag) => !modes.has(flag) && !taken.has(flag))).toEqual([]);
  });
});
