/** `--backfill --help`. At most 80 columns wide. */
export const BACKFILL_TOPIC = `tidemark --backfill --from T [--to T] [--device ID]... [--max-share S |
                    --finish-by T] [--dry-run] [--config FILE] [--json]
                    [--log-level LEVEL]

Fills a stretch of history: what is held already is not asked for again. The
last day of all devices comes first, then the week, then the rest. It ends when
the stretch is held and every database has it, and says what it brought, what
was empty and what could not be had. It may be stopped at any time, or killed,
and run again: it goes on where it was.

Where a daemon runs on the same data_dir, that one does the work, with its own
configuration, and takes nothing from its live work for it. This command follows
it; Ctrl-C takes the work back. If this command alone dies, the work goes on,
also after a restart of the daemon. Alone it takes the whole share.

  --from T          a date, an RFC 3339 time, an age (90d), or all: as far back
                    as there is anything, of each device until 400 days in a row
                    have no reading
  --to T            the same; else the moment it began, less sync.settle
  --device ID       this device alone; may be repeated
  --max-share S     takes at most this part of api.share, such as 0.25
  --finish-by T     goes no faster than it takes to be done by then: a date, an
                    RFC 3339 time, or a length of time from now on (12h)
  --dry-run         tells what it would cost, and fetches nothing

A larger sync.history is a backfill of its own: the daemon does it when it is
started with it.

Exit codes: 0 held and delivered; 3 not all of it yet, run it again; 1 what is
missing can not be had (or the state can not be used); 2 the command line is
wrong; 77 the API refuses the key; 78 the configuration is wrong.

Examples:
  tidemark --backfill --from 90d --dry-run
  tidemark --backfill --from 2026-01-01 --to 2026-02-01 --device hub-1
  tidemark --backfill --from all --max-share 0.25
`;
