/**
 * Which units of `src` have no test of their own name, and where those are tested instead. A test of a unit is at the
 * same path below `test`: `core/text.test.ts`, `observe/server-host-names.test.ts` or files in `core/text/`. A file
 * that holds only types and tables needs none.
 */

/** Units without a test of their own name, by the test that tries them. */
const TRIED_BY: Readonly<Record<string, readonly string[]>> = {
  'api/client.test.ts': ['api/urls.ts'],
  'app/settings.test.ts': ['config/config.ts'],
  'archive/maintenance.test.ts': ['store/archive/maintenance.ts'],
  'cli/argv.test.ts': ['cli/help.ts'],
  'commands/backfill/alone.test.ts': [
    'commands/backfill/progress.ts',
    'commands/backfill/result.ts',
    'commands/backfill/run.ts',
  ],
  'commands/backfill/recheck.test.ts': ['ingest/recheck.ts'],
  'commands/backfill/rate.test.ts': ['commands/shared/options.ts'],
  'commands/check/api.test.ts': ['commands/check/findings.ts', 'commands/check/job.ts'],
  'commands/check/bundle.test.ts': ['store/views/bundle.ts', 'store/open/new-file.ts'],
  'commands/check/destination.test.ts': ['influx/connection.ts'],
  'commands/check/reach.test.ts': ['api/reach.ts'],
  'commands/check/state.test.ts': ['store/views/inspect.ts', 'store/views/data-dir.ts'],
  'commands/forget/job.test.ts': ['store/device/forget-lines.ts'],
  'commands/init/flags.test.ts': ['commands/init/command.ts', 'commands/init/workspace.ts'],
  'commands/init/terminal.test.ts': ['commands/init/answers.ts'],
  'commands/once/once.test.ts': ['commands/once/run.ts', 'ingest/account.ts'],
  'commands/plan/output.test.ts': ['commands/plan/cost.ts', 'commands/plan/text.ts'],
  'commands/quarantine/job.test.ts': [
    'commands/quarantine/command.ts',
    'commands/quarantine/list.ts',
    'store/delivery/quarantine.ts',
  ],
  'commands/run.test.ts': ['app/terminal.ts'],
  'commands/status/text.test.ts': ['commands/shared/state-report.ts'],
  'commands/verify/influx.test.ts': ['commands/verify/compare-day.ts', 'commands/verify/compare.ts'],
  'commands/verify/result.test.ts': ['commands/verify/text.ts'],
  'config/load.test.ts': ['config/schema.ts', 'config/sources.ts', 'config/values.ts'],
  'delivery/destination.test.ts': ['core/state/state.ts'],
  'delivery/replay.test.ts': ['commands/replay/job.ts', 'store/delivery/replay.ts'],
  'influx/influxdb.test.ts': ['influx/point-source.ts'],
  'ingest/page-scan.test.ts': ['ingest/gap-scan.ts', 'ingest/wanted-range.ts'],
  'ingest/window-limits.test.ts': ['ingest/fetch-page.ts'],
  'observe/answers.test.ts': ['core/ports.ts'],
  'commands/check/page.test.ts': ['commands/shared/get-page.ts'],
  'commands/verify/process.test.ts': ['commands/verify/command.ts', 'commands/verify/request.ts'],
  'page/browser.test.ts': ['page/client/charts.js', 'page/client/zone.js'],
  'page/daemon.test.ts': ['commands/demo/command.ts'],
  'page/overview-devices.test.ts': ['page/device.ts'],
  'page/overview-status.test.ts': ['page/panels.ts'],
  'page/page.test.ts': ['page/devices.ts', 'page/html.ts'],
  'process/check.test.ts': ['commands/check/command.ts'],
  'process/daemon.test.ts': ['app/service.ts', 'commands/daemon/command.ts', 'main.ts'],
  'process/export.test.ts': ['commands/export/command.ts'],
  'process/health.test.ts': ['commands/health/command.ts'],
  'process/jobs.test.ts': ['commands/backfill/command.ts', 'commands/once/job.ts', 'commands/shared/do-or-follow.ts'],
  'process/once.test.ts': ['commands/once/command.ts'],
  'process/replay.test.ts': ['commands/replay/command.ts'],
  'process/status.test.ts': ['commands/status/command.ts', 'store/open/read-only.ts'],
  'process/maintenance.test.ts': ['commands/backup/command.ts', 'commands/forget/command.ts'],
  'scheduler/planner.test.ts': ['scheduler/planner-types.ts'],
  'sim/contract.test.ts': ['sim/answers.ts', 'sim/devices.ts', 'sim/spec.ts'],
  'sim/simulator-faults.test.ts': ['sim/server.ts', 'sim/settings.ts'],
  'sim/world.test.ts': ['sim/instants.ts', 'sim/random.ts'],
  'store/store.test.ts': ['store/facts.ts'],
  'store/device/telemetry.test.ts': ['core/state/telemetry.ts'],
  'store/archive/compaction.test.ts': ['store/archive/clearing.ts'],
  'store/jobs.test.ts': ['store/open/lock.ts'],
  'stories/late-readings.test.ts': ['ingest/reread.ts'],
};

/** A unit that nothing tries, or an entry of the table above that is not true any more. */
export function mirrorViolations(
  units: readonly { readonly path: string; readonly text: string }[],
  tests: readonly string[],
  triedBy: Readonly<Record<string, readonly string[]>> = TRIED_BY,
): string[] {
  const elsewhere = new Set(Object.values(triedBy).flat());
  const stems = new Set(units.map(({ path }) => stemOf(path)));
  const own = (unit: string): boolean => hasOwnTest(stemOf(unit), tests, stems);
  const untested = units.filter(({ path, text }) => hasCode(text) && !own(path) && !elsewhere.has(path));
  return [
    ...untested.map(({ path }) => `${path} has no test of its own name`),
    ...Object.keys(triedBy).flatMap((test) => (tests.includes(test) ? [] : [`there is no ${test}`])),
    ...[...elsewhere].flatMap((unit) => (stems.has(stemOf(unit)) ? [] : [`there is no ${unit}`])),
    ...[...elsewhere].flatMap((unit) => (own(unit) ? [`${unit} has a test of its own name`] : [])),
  ];
}

function stemOf(unit: string): string {
  return unit.replace(/\.[jt]s$/, '');
}

function hasCode(text: string): boolean {
  return /^export (?:async )?(?:function|class)\b/m.test(text);
}

/** @param stems of all units: `commit-rules.test.ts` is the test of another unit than `commit.ts`. */
function hasOwnTest(stem: string, tests: readonly string[], stems: ReadonlySet<string>): boolean {
  return tests.some((test) => {
    const tested = test.replace(/\.test\.ts$/, '');
    if (tested === stem || tested.startsWith(`${stem}/`)) return true;
    return tested.startsWith(`${stem}-`) && !stems.has(tested);
  });
}
