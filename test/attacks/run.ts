/**
 * Attacks a daemon by hand: `node test/attacks/run.ts NAME http://127.0.0.1:9464/ [SECONDS]`, NAME being `pipelined`,
 * `slow` or `keep-alive`. Prints how many answers the attacker got, and how soon /healthz answered meanwhile.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTACKS, type AttackName, answerMs } from './attackers.ts';

const [name = '', address = '', seconds = '15'] = process.argv.slice(2);
if (!Object.hasOwn(ATTACKS, name) || !URL.canParse(address)) {
  process.stderr.write(`usage: node test/attacks/run.ts ${Object.keys(ATTACKS).join('|')} ADDRESS [SECONDS]\n`);
  process.exit(2);
}
const { hostname, port, pathname } = new URL(address);
const target = { host: hostname, port: Number(port || 80), path: pathname };
const endMs = performance.now() + Number(seconds) * 1000;
const taken: (number | null)[] = [];
await using attack = ATTACKS[name as AttackName](target);
while (performance.now() < endMs) {
  await sleep(500);
  taken.push(await answerMs(target, '/healthz'));
}
const answered = taken.filter((ms) => ms !== null).toSorted((a, b) => a - b);
const [middle = 0, longest = 0] = [answered[answered.length >> 1], answered.at(-1)];
process.stdout.write(
  `${name}: ${attack.answers()} answers in ${seconds} s; /healthz answered ${answered.length} of ${taken.length} times, half of them within ${middle.toFixed(1)} ms, all within ${longest.toFixed(1)} ms\n`,
);
