/** `--demo --help`. At most 80 columns wide. */
export const DEMO_TOPIC = `tidemark --demo [--log-level LEVEL]

Everything on this machine: a simulated workspace, the real sync against it over
HTTP, and the status page. Needs no key and no database. Prints the address of
the status page first and runs until it is stopped (Ctrl+C).

It reads no configuration file. Environment variables act as always, but for
TIDEMARK_API_URL, TIDEMARK_API_KEY and TIDEMARK_API_CA_FILE: the simulated
workspace stands in their place. Unless they are set, the state goes to a
temporary directory (TIDEMARK_DATA_DIR) and the page to a free port
(TIDEMARK_LISTEN). With TIDEMARK_INFLUX_URL and its kin set, the simulated
readings are written to that database.

Examples:
  tidemark --demo
  TIDEMARK_LISTEN=127.0.0.1:9464 tidemark --demo
`;
