/** `--plan --help`. At most 80 columns wide. */
export const PLAN_TOPIC = `tidemark --plan [--from T] [--to T] [--device ID]... [--what-if KEY=VALUE]...
                [--max-share S | --finish-by T] [--config FILE] [--json]
                [--log-level LEVEL]

Tells what the schedules and a stretch of history would cost, before anything is
spent: devices and how often they report, requests a day, the share of the
minute's and the day's allowance, how fresh readings come, the time it takes.

It asks for the account and the device list only: one request, and one for every
200 devices. Where a daemon runs on the same data_dir, it asks nothing and goes
by what that has read. Nothing is fetched, kept or delivered.

  --from T, --to T     the stretch: a date, an RFC 3339 time or an age (90d);
                       else sync.history up to now; --from all for all there is
  --device ID          the stretch of this device alone; may be repeated
  --max-share S        the stretch at a part of the share, such as 0.25
  --finish-by T        the stretch done by a time to come: a date, an RFC 3339
                       time, or a length of time from now on (12h)
  --what-if KEY=VALUE  supposes something else; may be repeated:
    api.share                          the part of the allowance, or share
    sync.telemetry, sync.alerts,       cron expressions, or telemetry,
    sync.devices, sync.account         alerts, account
    devices                            how many devices, mixed as they are
    requests_per_minute, requests_per_day    what another plan allows

Exit codes: 0 told, whether it fits or not; 2 the command line is wrong; 3 the
API did not answer, or the daemon has just begun: run it again; 77 the API
refuses the key; 78 the configuration is wrong; 1 the state cannot be used.

Examples:
  tidemark --plan
  tidemark --plan --from 90d --device hub-1 --json
  tidemark --plan --what-if devices=2000 --what-if requests_per_day=20000
`;
