#!/usr/bin/env bash
# The main job: brings the lake up to date. Without a provider in the environment it starts the sandbox for it.
set -euo pipefail
cd "$(dirname "$0")/.."

pitlake() { node scripts/launch.cjs "$@"; }
title() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] || title() { printf '\n== %s\n' "$1"; }

data=$(node -r ./scripts/fixed-node.cjs scripts/data-folder.ts)
synthetic=
if [ -z "${PITLAKE_METRICS_URL:-}${PITLAKE_REGISTRY_URL:-}" ]; then
  synthetic=1
  echo "No provider in the environment: the sandbox answers, with synthetic data."
  line=$(mktemp)
  # A lake that a sandbox filled goes on with the same world.
  seed=
  [ ! -d "$data/journal" ] || seed=$(pitlake status --data "$data" --json 2>/dev/null | sed -n 's/.*"provider": *"sandbox:\([0-9]*\)".*/\1/p' | head -n 1)
  node scripts/launch.cjs sandbox --seed "${seed:-1}" >"$line" &
  sandbox=$!
  trap 'kill "$sandbox" 2>/dev/null || true; wait "$sandbox" 2>/dev/null || true; rm -f "$line"' EXIT
  for _ in $(seq 100); do [ -s "$line" ] && break; sleep 0.1; done
  read_key() { node -p "JSON.parse(require('node:fs').readFileSync('$line', 'utf8')).$1"; }
  PITLAKE_METRICS_URL=$(read_key metrics_url) PITLAKE_METRICS_KEY=$(read_key metrics_key)
  PITLAKE_REGISTRY_URL=$(read_key registry_url) PITLAKE_REGISTRY_KEY=$(read_key registry_key)
  export PITLAKE_METRICS_URL PITLAKE_METRICS_KEY PITLAKE_REGISTRY_URL PITLAKE_REGISTRY_KEY
fi

# What a real provider does otherwise than assumed is better known before anything is stored.
if [ -z "$synthetic" ] && [ "${PREFLIGHT:-1}" != 0 ]; then
  title "Provider: does it speak as docs/how-to/another-provider.md says?"
  pitlake doctor --provider || {
    status=$?
    echo "Nothing was asked beyond that, nothing is stored. To go on anyway: make lake PREFLIGHT=0" >&2
    exit "$status"
  }
fi

# Without a configuration the provider itself is asked what there is: names, what the plan includes, a selection with its cost.
credits=
if [ -z "$synthetic" ] && [ -n "${PITLAKE_METRICS_URL:-}" ] && [ ! -f pitlake.yaml ]; then
  credits=${MAX_CREDITS:-300}
  title "Configuration: what this provider has, for at most $credits credits (make lake MAX_CREDITS=N)"
  pitlake init --max-credits "$credits"
fi

# Exit 6 means that some windows failed: the rest is there, and the status page says which.
bring() { pitlake fetch "$@" || { status=$?; [ "$status" = 6 ] || exit "$status"; }; }

if [ -n "${PITLAKE_METRICS_URL:-}" ]; then
  if [ -n "$synthetic" ] && [ ! -f pitlake.yaml ]; then
    since=$(date -u -d '14 days ago' +%F 2>/dev/null || date -u -v-14d +%F)
    title "Plan: all endpoints daily since 2019, three assets"
    pitlake plan --assets BTC,ETH,SOL --paths '*' --currencies native,usd --since 2019-01-01
    title "Fetch"
    bring --assets BTC,ETH,SOL --paths '*' --currencies native,usd --since 2019-01-01
    title "Fetch: some of them hourly, and every ten minutes for two weeks"
    bring --assets BTC,ETH --paths 'supply/current_pit,market/*,addresses/active_count_pit,indicators/*' --intervals 1h --currencies native,usd --since 2023-01-01
    bring --assets BTC --paths 'supply/current_pit,addresses/active_count_pit' --intervals 10m --currencies native,usd --since "$since"
  else
    title "Plan"
    pitlake plan
    title "Fetch"
    bring ${credits:+--max-credits "$credits"}
  fi
fi

if [ -n "${PITLAKE_REGISTRY_URL:-}" ]; then
  title "Registry: today's snapshot, then the change feed"
  pitlake registry snapshot
  pitlake registry sync
fi

title "Status"
pitlake status --html "$data/status.html"

cat <<END

Look at it: npx pitlake serve --data $data --listen 127.0.0.1:8460
            then http://127.0.0.1:8460/ in a browser: what was knowable when, the universe, SQL, coverage

Try next:
  make shell                            a shell in which pitlake is a command; in it:
  pitlake sql                           a session in the lake; .help inside
  pitlake panel --calendar 2024-01-01,2024-02-01,1d --assets BTC,ETH --metrics price_usd,addresses/active_count_pit
                                        what was knowable at each midnight
  pitlake lookahead notebooks/leak.sql  a query that looks ahead, found out
  make notebooks                        eight stories with pictures, as HTML
  $data/status.html
                                        can the lake be trusted today? open it in a browser
END
