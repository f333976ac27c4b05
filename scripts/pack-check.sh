#!/usr/bin/env bash
# Packs the project, installs the package in an empty folder and runs it there, with the system's own Node in front.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
began=()
trap 'for pid in "${began[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done; rm -rf "$folder"' EXIT

cd "$root"
npm pack --silent --pack-destination "$folder" >/dev/null
# What a registry would be sent; nothing is.
npm publish --dry-run --silent "$folder"/*.tgz >/dev/null

# The repository's own node_modules must not help: the package has to bring what it needs.
PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -vF "$root/" | paste -sd: -)
export PATH
mkdir "$folder/empty"
cd "$folder/empty"
npm init -y >/dev/null
npm install --ignore-scripts --no-audit --no-fund --loglevel=error "$folder"/*.tgz

expect() {
  local what=$1
  shift
  "$@" >"$folder/out" 2>"$folder/err" || { cat "$folder/err" >&2; echo "pack check: failed: $*" >&2; exit 1; }
  grep -qi -- "$what" "$folder/out" || { echo "pack check: $* does not say '$what'" >&2; exit 1; }
}
expect usage npx --no-install pitlake --help
expect supply/current_pit npx --no-install pitlake catalog list
for page in README.md CHANGELOG.md LICENSE SKILL.md server.json ARCHITECTURE.md docs/explanation/trust.md docs/decisions/0003-keep-earlier-dates-as-files.md; do
  [ -f "node_modules/pitlake/$page" ] || { echo "pack check: the package lacks $page" >&2; exit 1; }
done
expect usage node node_modules/pitlake/dist/launch.cjs --help
expect openLake "$(npm root)/.bin/node" -p "Object.keys(require('pitlake')).join()"

# A small lake from the sandbox, and what is behind its doors.
spoken() {
  local file=$1
  for _ in $(seq 1800); do [ -s "$file" ] && return; sleep 0.1; done
  echo "pack check: $file stays empty" >&2
  exit 1
}
node node_modules/pitlake/dist/launch.cjs sandbox >sandbox.json &
began+=($!)
spoken sandbox.json
said() { node -p "JSON.parse(require('node:fs').readFileSync('sandbox.json', 'utf8')).$1"; }
PITLAKE_METRICS_URL=$(said metrics_url) PITLAKE_METRICS_KEY=$(said metrics_key) \
  expect points npx --no-install pitlake fetch --data lake --assets BTC --paths supply/current_pit --since 2024-01-01 --until 2024-02-01
node node_modules/pitlake/dist/launch.cjs serve --data lake --listen 127.0.0.1:0 2>listening &
began+=($!)
spoken listening
url=$(sed -n 's/^listening at //p' listening)
expect '^{"n":31}$' node -e "fetch('$url/query?sql=SELECT+count(*)+AS+n+FROM+points').then((answer) => answer.text()).then(console.log)"
expect 'page/app.js' node -e "fetch('$url/').then((answer) => answer.text()).then(console.log)"
expect 'arg_max' node -e "fetch('$url/page/questions.js').then((answer) => answer.text()).then(console.log)"
cat >agent.cjs <<'JS'
const { spawn } = require('node:child_process')
const { createInterface } = require('node:readline')
const program = spawn('npx', ['--no-install', 'pitlake', 'mcp', '--data', 'lake'], { stdio: ['pipe', 'pipe', 'inherit'] })
const say = (message) => program.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const capabilities = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'pack check', version: '1' } }
const query = { sql: 'SELECT count(*) AS n FROM points', as_of: '2024-01-11T12:00:00Z' }
say({ id: 1, method: 'initialize', params: capabilities })
createInterface({ input: program.stdout }).on('line', (line) => {
  const { id, result } = JSON.parse(line)
  if (id === 1) {
    say({ method: 'notifications/initialized' })
    say({ id: 2, method: 'tools/call', params: { name: 'query', arguments: query } })
  }
  if (id !== 2) return
  console.log(result.content[0].text)
  program.stdin.end()
})
program.on('close', (code) => (process.exitCode = code))
JS
expect '^{"n":10}' node agent.cjs

# The library on the oldest Node that it runs on, which npm fetches once, and on one that is too old for it.
cat >library.mjs <<'JS'
import { explainChange, LakeError, lookahead, openLake, rows, stress } from 'pitlake'
const lake = await openLake('lake')
const decisions = [{ asset: 'BTC', ts: '2024-01-15' }]
const metric = 'supply/current_pit'
const joined = `SELECT ts, v FROM pit_join('d', '${metric}', '24h')`
const query = `CREATE TEMP TABLE d AS SELECT ts, 'BTC' AS asset FROM calendar('2024-01-05', '2024-01-25', INTERVAL 1 DAY); ${joined}`
const grid = { since: '2024-01-01', until: '2024-01-08', step: '1 day', assets: ['BTC'] }
const tables = [
  lake.sql('SELECT count(*) AS n FROM points WHERE asset = $1', ['BTC']),
  lake.points({ metrics: metric }),
  lake.panel({ decisions, metrics: [metric] }),
  lake.pitJoin({ decisions, metric }),
  lake.window({ decisions, metric, n: 3 }),
  lake.calendar(grid),
  lake.metrics(),
  lake.status(),
  lake.universe(),
]
for (const table of await Promise.all(tables)) rows(table)
const { verdict } = await lake.lookahead(query)
await lake.stamp('SELECT t, v FROM points ORDER BY t', 'r.parquet')
const { same } = await lake.replay('r.parquet')
const { verdict: unchanged } = await explainChange('lake', 'r.parquet')
const { verdict: alone } = await lookahead(async (own) => own.sql(query), 'lake')
const { runs } = await stress('lake', query, { statistic: 'avg(v)', lags: [1800], vintages: 0 })
const refused = await lake.sql('SELECT nope').catch((error) => error instanceof LakeError)
await lake.refresh()
await lake.close()
console.log(JSON.stringify({ n: String(rows(await tables[0])[0].n), verdict, same, unchanged, alone, runs: runs.length, refused }))
JS
told='{"n":"31","verdict":"clean","same":true,"unchanged":"same","alone":"clean","runs":1,"refused":true}'
expect "^$told" "$(npm root)/.bin/node" library.mjs
platform=$(node -p '`${process.platform}-${process.arch}`')
oldest=$root/.cache/node22
if [ -x "$oldest/node_modules/node-$platform/bin/node" ] || timeout 300 npm install --prefix "$oldest" --ignore-scripts --no-audit --no-fund --loglevel=error "node-$platform@22.23.5" >/dev/null; then
  expect "^$told" "$oldest/node_modules/node-$platform/bin/node" library.mjs
  library=22.23.5
else
  library='22.23.5 could not be had'
fi
if [ "$(node -p 'Number(process.versions.node.split(`.`)[0]) < 22')" = true ]; then
  code=0
  node library.mjs >out 2>err || code=$?
  [ "$code" = 2 ] && [ "$(wc -l <err)" = 1 ] && [ ! -s out ] && grep -q "expected Node 22.23.4, 24.22.1, 26.12.1 or later to import it" err ||
    { cat err >&2; echo "pack check: an old Node is not told in one line" >&2; exit 1; }
fi
weight="$(du -h "$folder"/*.tgz | cut -f1) packed, $(du -sh node_modules/pitlake | cut -f1) unpacked, $(du -sh node_modules | cut -f1) with all that it needs"
echo "pack check: $weight; the library on Node $library"
echo "pack check: the package works in an empty folder ($(du -h "$folder"/*.tgz | cut -f1), system node $(node --version))"
