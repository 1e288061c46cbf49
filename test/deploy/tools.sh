#!/usr/bin/env bash
# Installs what the tests of the deployment files read them with (tools.txt: name, version, Go package, or a folder here that is
# one), each under its name and version, and nothing that is there already. Needs Go (any from 1.21 on brings the one that
# it needs).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# Where it is installed by hand, it is in nobody's path.
command -v go >/dev/null || PATH="$PATH:/usr/local/go/bin"
place="${TIDEMARK_DEPLOY_TOOLS:-$HOME/.cache/tidemark-deploy-tools}"
while read -r name version package; do
  [ ! -x "$place/$name-$version" ] || continue
  if ! command -v go >/dev/null; then
    echo "test/deploy/tools.sh: Go is needed to build $name: install it, or leave these tests out (they are, without CI=true)." >&2
    exit 1
  fi
  mkdir -p "$place"
  if [ -d "$package" ]; then
    (cd "$package" && go build -o "$place/$name-$version" .) </dev/null
    continue
  fi
  GOBIN="$place/new" go install "$package@$version" </dev/null
  # A program is named by the last part of its package that is no version.
  mv "$place/new/"* "$place/$name-$version"
  rmdir "$place/new"
done <tools.txt
