/**
 * `npm run soak`: the stress test of the daemon for ten minutes, or for the number in the argument.
 */
import { openBench } from './support.ts';
import { torment } from './torment.ts';

const minutes = Number(process.argv[2] ?? 10);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
await using bench = await openBench();
process.stdout.write(`soaking for ${minutes} minutes, seed ${seed}\n`);
const { kills, requests, writes, verdict, lastReport, caughtUpMs, exitCode } = await torment({
  bench,
  forMs: minutes * 60_000,
  seed,
});
const { missing, invented, expected } = verdict;
const quarantined = lastReport.destinations[0]?.quarantined ?? 0;
process.stdout.write(
  `${kills} kills, ${requests} requests, ${writes} writes; caught up in ${Math.round(caughtUpMs)} ms; ${expected} points expected, ${missing.length} missing, ${invented.length} invented, ${quarantined} in quarantine; exit ${exitCode}\n`,
);
if (missing.length + invented.length + quarantined > 0 || exitCode !== 0) process.exitCode = 1;
