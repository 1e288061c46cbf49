/**
 * The commands of the pages as they stand there: every line of a block for a shell, and every span of code in the text
 * that begins with a program. `tried-commands.ts` lists the test of each command.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/** The pages whose commands are tested. */
export const PAGES: readonly string[] = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...globSync('docs/**/*.md', { cwd: ROOT }).sort(),
];

/** The languages of blocks that a reader pastes into a shell. In `console` a reader types the text behind a prompt. */
const SHELLS = ['', 'sh', 'bash', 'shell', 'console'];

/** The programs, words of the shell and scripts that begin a command on the pages. */
const PROGRAMS: ReadonlySet<string> = new Set(
  `tidemark tidemark-workspace init install.sh config/systemd/install.sh .ci/run
  npm npx node docker podman kubectl kustomize helm systemctl systemd-analyze journalctl git apt-get sudo ssh
  influx influxd influxdb3 victoria-metrics vmbackup promtool amtool sqlite3
  curl jq sed cat cp mv rm mkdir rmdir ln ls head tail grep find sort tar chmod chown chgrp chcon install tee kill openssl
  sh bash for while if cd umask export exec echo printf`.split(/\s+/),
);

/** Further programs. A span that begins with one of them is a command too, and has to be added to PROGRAMS. */
export const OTHER_PROGRAMS: ReadonlySet<string> = new Set(
  `adduser apt apk awk bunzip2 buildah busctl bzip2 certbot chroot cmp crane crictl crontab ctr cut dd df diff dig dnf
  dpkg du env fuser gcc getent getfacl gh go gpg groupadd gunzip gzip htpasswd ip iptables k3s kill killall less loginctl
  logger lsof make mc minikube mktemp more mount mysql nano nc netstat nft nerdctl nohup nslookup openrc passwd perl ping
  pip pnpm podman-compose pkill ps psql pwgen python python3 pv rclone readlink realpath restic rpm rsync ruby runc scp
  screen semanage service setfacl setpriv sftp sha256sum skopeo sleep snap ss stat strace su sysctl systemd-run tcpdump
  telegraf telnet terraform timeout touch tmux tr truncate tsx ufw umount uname unshare unzip useradd userdel usermod
  vi vim visudo vitest vmalert vmrestore watch wget xargs xz yarn yum zcat zip zstd`.split(/\s+/),
);

/** Spans that only look like a command. */
const NO_COMMANDS: ReadonlySet<string> = new Set([]);

export interface Documented {
  /** The text that a reader pastes, without remarks and prompts. */
  readonly text: string;
  /** The same in one line: continued lines and loops joined, without the text of a here-document (`<<`). */
  readonly key: string;
  readonly page: string;
  /** Where it begins. */
  readonly line: number;
}

/** Every command of the pages, in their order. */
export function documentedCommands(): readonly Documented[] {
  return PAGES.flatMap((page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    return [...blocksOf(text).flatMap(({ commands }) => commands), ...spansOf(text).filter(({ key }) => isCommand(key))]
      .map((found) => ({ ...found, page }))
      .sort((a, b) => a.line - b.line);
  });
}

/** The keys of all commands, each once, sorted. */
export const documentedKeys = (): readonly string[] => [...new Set(documentedCommands().map(({ key }) => key))].sort();

/** The commands in the blocks of a page, or of a part of one. */
export const commandsOf = (page: string): readonly string[] =>
  blocksOf(page).flatMap(({ commands }) => commands.map(({ key }) => key));

/** The blocks of a page: `commands` is empty where no shell reads the block. */
export function blocksOf(page: string): readonly { readonly commands: readonly Omit<Documented, 'page'>[] }[] {
  return [...page.matchAll(/^( *)```([^\n]*)\n([\s\S]*?)^ *```$/gm)].map(
    ({ index, 1: indent = '', 2: language = '', 3: text = '' }) => {
      if (!SHELLS.includes(language.trim())) return { commands: [] };
      const lines = text.split('\n').map((line) => line.replace(indent, ''));
      const line = page.slice(0, index).split('\n').length + 1;
      return {
        commands: commandsIn(lines, language.trim() === 'console').map((found) => ({
          ...found,
          line: line + found.line,
        })),
      };
    },
  );
}

/** The commands in the lines of a block; `line` counts from its first one. */
function commandsIn(lines: readonly string[], hasPrompt: boolean): Omit<Documented, 'page'>[] {
  const found: Omit<Documented, 'page'>[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = at;
    let text = lines[at] ?? '';
    if (hasPrompt && !text.startsWith('$ ')) continue;
    if (hasPrompt) text = text.slice(2);
    for (const isEnd = endOf(text); !isEnd(text) && at + 1 < lines.length; ) {
      at += 1;
      text += `\n${lines[at]}`;
    }
    for (const each of withoutRemarks(text)) found.push({ text: each, key: keyOf(each), line });
  }
  return found;
}

/** Whether a command that begins like this is complete: its continued lines, loops and embedded files. */
function endOf(beginning: string): (text: string) => boolean {
  const [, mark] = /<<-?\s*['"]?(\w+)/.exec(beginning) ?? [];
  if (mark !== undefined) return (text) => text.endsWith(`\n${mark}`);
  const closing = { for: 'done', while: 'done', until: 'done', if: 'fi', case: 'esac' }[
    /^\w+/.exec(beginning)?.[0] ?? ''
  ];
  if (closing !== undefined) return (text) => new RegExp(`(?:^|[\\n;] *)${closing}\\b`).test(text);
  return (text) => !text.endsWith('\\');
}

/** A command without the remark behind it, and the other command that the remark may name ("# or: …"). */
function withoutRemarks(text: string): readonly string[] {
  if (text.includes('<<')) return [text];
  const remarks = [...text.matchAll(/(?:^|\s)#\s(.*)$/gm)].map(([, remark = '']) => remark);
  const others = remarks.flatMap((remark) => /^or: (.*)$/.exec(remark)?.[1] ?? []);
  return [text.replaceAll(/(?:^|\s+)#\s.*$/gm, ''), ...others].map((each) => each.trim()).filter((each) => each !== '');
}

function keyOf(text: string): string {
  return text.includes('<<') ? (text.split('\n')[0] ?? '') : text.replaceAll(/ *\\\n\s*|\n\s*/g, ' ');
}

/** The spans of code in the text of a page, in one line each. */
export function spansOf(page: string): readonly Omit<Documented, 'page'>[] {
  const text = page.replaceAll(/^ *```[\s\S]*?^ *```$/gm, (block) => block.replaceAll(/[^\n]/g, ''));
  return [...text.matchAll(/(`+)(?!`)([\s\S]*?[^`])\1(?!`)/g)].map(({ index, 2: span = '' }) => {
    const key = span.replaceAll(/\s+/g, ' ').replaceAll('\\|', '|').trim();
    return { text: key, key, line: text.slice(0, index).split('\n').length };
  });
}

/** The word of a span that would be the program: behind a time of cron, variables, `sudo` and a parenthesis. */
function programOf(span: string): string {
  const rest = span
    .replace(/^(?:[\d*/,-]+ ){5}/, '')
    .replace(/^\(/, '')
    .replace(/^(?:[A-Z_]+=\S* )*/, '')
    .replace(/^sudo (?=[a-z./])/, '');
  return rest.split(' ')[0] ?? '';
}

/** Whether a span is a command: a program with operands, or a script of `.ci`. */
export function isCommand(span: string): boolean {
  return (span.includes(' ') || span.startsWith('.ci/')) && PROGRAMS.has(programOf(span));
}

/** Whether a span looks like a command although its program is not in PROGRAMS. */
export function isUnknown(span: string): boolean {
  if (!span.includes(' ') || isCommand(span) || NO_COMMANDS.has(span)) return false;
  const program = programOf(span);
  const looksLike =
    /^[a-z][\w.+-]* (?:\S+ )*-{1,2}[A-Za-z]/.test(span) ||
    /^[\w./-]+(?: .*)? (?:&&|\|\|?) [a-z]/.test(span) ||
    /^(?:\.{0,2}|~)\/[\w./-]+ /.test(span);
  return OTHER_PROGRAMS.has(program) || (/^[a-z./~]/.test(program) && looksLike);
}
