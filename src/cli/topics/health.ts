/** `--health --help`. At most 80 columns wide. */
export const HEALTH_TOPIC = `tidemark --health [--config FILE] [--json]

Asks the daemon of this machine whether its loops move, as /healthz tells it:
for the health check of a container, without curl. Of the configuration it reads
\`listen\` (TIDEMARK_LISTEN) and nothing else; 0.0.0.0 means 127.0.0.1. It needs
no key, does not touch the state, and answers within three seconds.

Waiting for allowance is healthy. So is a database or an API that is down: no
restart mends that, and /readyz tells of it.

Exit codes:
  0   healthy
  1   not healthy, with what stands still; or nobody answers there
  2   the command line is wrong
  78  the configuration cannot be read, or listen in it is wrong

Examples:
  tidemark --health
  HEALTHCHECK CMD ["tidemark", "--health"]
`;
