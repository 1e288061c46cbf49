/** `--backup --help`. At most 80 columns wide. */
export const BACKUP_TOPIC = `tidemark --backup FILE [--config FILE] [--json] [--log-level LEVEL]

Copies the state (archive, coverage, names, what is spent) into one file, as
one moment shows it. A daemon on the same data_dir goes on meanwhile. The copy
has its name once it is whole, checked and on the disk; an existing file is
never overwritten. It holds readings: only its owner may read it.

To restore it, on this host or another one: copy it as tidemark.db into an
empty data_dir, and start. Never let both the original and the copy sync: each
would spend the allowance, and neither would know of it. No API key is needed.

Exit codes: 0 done; 1 it cannot be done (the message says why); 3 it was
stopped, and nothing is left of it; 2 the command line is wrong; 78 the
configuration is wrong.

Examples:
  tidemark --backup /backups/tidemark-monday.db
  tidemark --backup copy.db --json
`;
