#!/usr/bin/env bash
# Installs what the tests of the deployment files read them with (tools.txt: name, version, Go package, or a folder here that is
# one), each under its name and version, and nothing that is there already. Needs Go (any from 1.21 on brings the one that
# it needs).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# Where it is installed by hand, it is in nobody's path.
command -v go >/dev/null || PATH="$PATH:/usr/local/go/bin"
place="${TIDEMARK_DEPLOY_TOOLS:-$HOME/.cache/tidemark-deploy-tools}"
mkdir -p "$place"
# While this file names a process that lives, the tests wait for what they miss (tools.ts).
echo $$ >"$place/building"
trap 'rm -f "$place/building"' EXIT
# They run for seconds and are compiled for minutes: without optimizing, without C and debug information it takes a quarter less.
export CGO_ENABLED=0
flags=("-gcflags=all=-N -l" "-ldflags=-s -w" -buildvcs=false)
while read -r name version package; do
  [ ! -x "$place/$name-$version" ] || continue
  if ! command -v go >/dev/null; then
    echo "test/deploy/tools.sh: Go is needed to build $name: install it, or leave these tests out (they are, without CI=true)." >&2
    exit 1
  fi
  mkdir -p "$place/new"
  if [ -d "$package" ]; then
    (cd "$package" && go build "${flags[@]}" -o "$place/new/" .) </dev/null
  else
    GOBIN="$place/new" go install "${flags[@]}" "$package@$version" </dev/null
  fi
  # A program is named by the last part of its package that is no version.
  mv "$place/new/"* "$place/$name-$version"
  rmdir "$place/new"
done <tools.txt
