/** A page with a password, scraped by a real Prometheus with the job of docs/metrics.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { openStage, until } from '../process/support.ts';
import { prometheusAvailable, startPrometheus } from '../support/prometheus.ts';

const PASSWORD = 'a-long-password-of-the-page';
const PASSWORD_FILE = 'tidemark_listen_password';

/** The documented job for targets in files, with the line for the password. */
function documentedJobs(): readonly object[] {
  const page = readFileSync('docs/metrics.md', 'utf8');
  const [, job = ''] = /```yaml\n(scrape_configs:\n[^`]*# basic_auth:[^`]*)```/.exec(page) ?? [];
  const jobs: { basic_auth?: { password_file: string } }[] = parse(
    job.replace('# basic_auth:', 'basic_auth:'),
  ).scrape_configs;
  expect(jobs.map(({ basic_auth: auth }) => auth?.password_file)).toEqual([PASSWORD_FILE]);
  return jobs;
}

test.runIf(prometheusAvailable())(
  'the target is up with the documented basic_auth, and down with another password or none',
  async () => {
    await using stage = await openStage();
    const file = join(stage.directory, 'password');
    writeFileSync(file, `${PASSWORD}\n`, { mode: 0o600 });
    const run = stage.start([], {
      env: {
        TIDEMARK_LISTEN: '127.0.0.1:0',
        TIDEMARK_LISTEN_PASSWORD_FILE: file,
        TIDEMARK_LOG_FORMAT: 'json',
      },
    });
    const address = (): string => /"status_page":"http:\/\/([^/"]+)/.exec(run.stderr())?.[1] ?? '';
    await until('the page is served', () => address() !== '');
    const jobs = documentedJobs();
    const targets = { 'tidemark/home.yaml': `- targets: ['${address()}']\n` };
    {
      await using prometheus = await startPrometheus({
        target: jobs,
        rules: {},
        files: { ...targets, [PASSWORD_FILE]: PASSWORD },
      });
      const is = async (health: string): Promise<boolean> =>
        (await prometheus.targets()).some((each) => each.health === health);
      await until('the target is up', async () => await is('up'));
      expect([...(await prometheus.query('up{job="tidemark"}')).values()]).toEqual([1]);
      expect((await prometheus.query('tidemark_healthy')).size).toBe(1);

      prometheus.write(PASSWORD_FILE, `${PASSWORD}-of-another`);
      await until('the target is down', async () => await is('down'));
      expect((await prometheus.targets())[0]?.lastError).toContain('401 Unauthorized');

      prometheus.write(PASSWORD_FILE, PASSWORD);
      await until('the target is up again', async () => await is('up'));
    }
    {
      const [{ basic_auth: _unused, ...open } = {}] = jobs as { basic_auth?: object }[];
      await using prometheus = await startPrometheus({ target: [open], rules: {}, files: targets });
      await until('it was scraped', async () => (await prometheus.targets()).some(({ health }) => health === 'down'));
      expect((await prometheus.targets())[0]?.lastError).toContain('401 Unauthorized');
    }
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(0);
  },
);
