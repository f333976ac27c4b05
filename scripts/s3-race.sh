#!/usr/bin/env bash
# Thirty publishers of one lake race for one bucket of versitygw, a server of buckets in a folder (Go, through its proxy).
set -euo pipefail
cd "$(dirname "$0")/.."

version=v1.8.0
tools=$PWD/.cache/go
if [ ! -x "$tools/versitygw-$version" ]; then
  command -v go >/dev/null || { echo "s3-race: no Go on this machine, which versitygw is built with" >&2; exit 2; }
  echo "Building versitygw $version" >&2
  GOBIN="$tools" go install "github.com/versity/versitygw/cmd/versitygw@$version"
  mv "$tools/versitygw" "$tools/versitygw-$version"
fi
folder=$(mktemp -d)
mkdir -p "$folder/data/race" "$folder/about"
export ROOT_ACCESS_KEY=racing-publishers ROOT_SECRET_KEY=racing-publishers-secret
port=${PORT:-7099}
"$tools/versitygw-$version" --port "127.0.0.1:$port" --quiet posix --sidecar "$folder/about" "$folder/data" >"$folder/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 100); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  kill -0 $server 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
  sleep 0.1
done
export PITLAKE_RACE_S3="http://127.0.0.1:$port" PITLAKE_RACE_ID=$ROOT_ACCESS_KEY PITLAKE_RACE_SECRET=$ROOT_SECRET_KEY
vitest run test/laws/L6-race.test.ts
