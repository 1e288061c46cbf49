/**
 * The command `--health`: checks whether the daemon on this machine is healthy, for the health check of a container.
 *
 * It is loaded alone with few modules, because it runs every half minute and has to be fast.
 */
import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import type { HealthCommand } from '../../cli/command.ts';
import { type Listen, parseListen } from '../../config/listen.ts';
import { codeOf } from '../../core/faults.ts';
import { isRecord } from '../../core/json.ts';
import { addressText, plainText } from '../../core/text.ts';
import { getPage } from '../shared/get-page.ts';

/** A daemon that does not answer within this time is stuck. The answer is a few hundred bytes. */
const MOST = { withinMs: 3000, bytes: 64 * 1024 };

/** The answer of `/healthz`, or the reason why there was none. */
interface Finding {
  readonly healthy: boolean;
  readonly reasons: readonly string[];
}

/**
 * Queries the daemon and prints the result.
 *
 * @returns the exit code: 0 healthy, 1 not.
 * @throws UserError (exit 78) if `listen` cannot be read.
 */
export async function runHealthCommand(
  { configFile, json }: HealthCommand,
  ports: Pick<ProcessPorts, 'environment' | 'readFile' | 'print'>,
): Promise<number> {
  const { healthy, reasons } = await fetchHealth(await readListen(configFile, ports));
  const { print } = ports;
  if (json) print(`${JSON.stringify({ healthy, reasons })}\n`);
  else print(healthy ? 'healthy\n' : `not healthy: ${reasons.join('; ')}\n`);
  return healthy ? 0 : 1;
}

/** The environment takes precedence. An image sets it, so the rest of the configuration is not loaded there. */
async function readListen(
  file: string | null,
  { environment, readFile }: Pick<ProcessPorts, 'environment' | 'readFile'>,
): Promise<Listen> {
  const address = parseListen(environment['TIDEMARK_LISTEN']?.trim() ?? '');
  if (address !== null) return address;
  const { loadListen } = await import('../../config/load.ts');
  return loadListen({ file, readFile, environment, nowMs: realClock.nowMs() });
}

async function fetchHealth(listen: Listen): Promise<Finding> {
  const { host, port } = listen;
  if (port === 0)
    return unhealthy('listen has port 0, so the daemon uses another port at each start: set a fixed port');
  const address = addressText(host, port);
  try {
    const { status, body } = await getPage(listen, '/healthz', MOST);
    const finding = readFinding(body);
    if (finding === null) return unhealthy(`the server at ${address} is not Tidemark (HTTP ${status})`);
    return { healthy: status === 200 && finding.healthy, reasons: finding.reasons };
  } catch (error) {
    return unhealthy(
      `nothing answers at ${address} (${codeOf(error, 'no answer')}); check that the daemon is running and uses the same listen address`,
    );
  }
}

function unhealthy(reason: string): Finding {
  return { healthy: false, reasons: [reason] };
}

/** Parses the health report of a daemon; `null` if the server is not Tidemark. */
function readFinding(body: string): Finding | null {
  try {
    const parsed: unknown = JSON.parse(body);
    if (!isRecord(parsed)) return null;
    const { healthy, reasons } = parsed;
    if (typeof healthy !== 'boolean' || !Array.isArray(reasons)) return null;
    return { healthy, reasons: reasons.map((reason) => plainText(String(reason))) };
  } catch {
    return null;
  }
}
