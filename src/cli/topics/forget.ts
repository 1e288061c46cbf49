/** `--forget --help`. At most 80 columns wide. */
export const FORGET_TOPIC = `tidemark --forget --device ID [--config FILE] [--json] [--log-level LEVEL]

Removes what is held of a device from the state: its readings in the archive,
its coverage, names, sums, quarantine and alerts. What was removed does not
linger in the file. Your databases are not touched: it says how to remove it
there. Copies of the state that were made before hold it still.

The device has to be gone from the workspace, or left out by sync.exclude (and
the daemon restarted): else it would be synced anew at once, and nothing is
done. Nothing is done either while points of it wait for a database.

Where a daemon runs on the same data_dir, it does the work. No API key is
needed.

Exit codes: 0 done; 1 it is still synced; 2 the command line is wrong, or
nothing is held of such a device; 3 some of it waits for a database, or it was
stopped: run it again; 78 the configuration is wrong.

Examples:
  tidemark --forget --device hub-1
`;
