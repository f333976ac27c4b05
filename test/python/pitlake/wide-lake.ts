import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { seriesId } from '../../../src/catalog/series.ts'
import { commit, type StagedFile } from '../../../src/lake/ledger/commit.ts'
import { Ledger } from '../../../src/lake/ledger/ledger.ts'
import { Engine, quote } from '../../../src/lake/store/engine.ts'
import { inLake, pointsFile } from '../../../src/lake/store/layout.ts'
import { commitDeps } from '../../helpers/lakes/drafts.ts'
import { catalogue } from '../../helpers/sandbox-client.ts'
import { makeViews } from '../../helpers/views.ts'
import { micros } from '../../helpers/instants.ts'

/*
 * `node wide-lake.ts FOLDER DAYS` makes the lake of the figures: every metric that is held daily, ten assets, one point
 * in a hundred up to twenty days late. It prints the metrics and their files as JSON. `… FOLDER DAYS FROM` commits
 * further days to it, from that one on.
 */

const [root = '', count = '3650', start = '0'] = process.argv.slice(2)
const days = Number(count)
const from = Number(start)
const label = `wide${from === 0 ? '' : start}`
const day = 86_400_000_000
const first = Date.UTC(2015, 0, 1) * 1000
const assets = Array.from({ length: 10 }, (_, n) => `A${n}`)
const metrics = [...catalogue.endpoints.values()].filter(({ intervals }) => intervals.includes('24h'))

const files: StagedFile[] = []
const ledger = await Ledger.open(root)
const engine = await Engine.open(':memory:', { threads: 2 })
for (const [m, { path: metric, defaults }] of metrics.entries()) {
  const temporary = `spool/${label}/${m}.parquet`
  await mkdir(dirname(inLake(root, temporary)), { recursive: true })
  const text = (value: string | null): string => (value !== null ? quote(value) : 'NULL::VARCHAR')
  const ended = `${first} + (d + 1) * ${day}`
  const lag = `(300 + 6 * ${m}) * 1000000 + CAST(hash(${m}, a, d) % 1500000000 AS BIGINT)
    + CASE WHEN hash(a, d, ${m}, 7) % 100 < 1 THEN CAST(hash(d, ${m}, a, 9) % 1728000 AS BIGINT) * 1000000 ELSE 0 END`
  await engine.run(`COPY (SELECT 'A' || a AS asset, ${text(defaults.currency)} AS currency, ${text(defaults.exchange)} AS exchange,
      ${text(defaults.network)} AS network, make_timestamptz(${first} + d * ${day}) AS t, make_timestamptz(${ended} + ${lag}) AS available_at,
      make_timestamptz(${ended} + ${30 * day}) AS observed_at, (hash(${m}, a, d, 3) % 1000000) / 1000.0::DOUBLE AS v, NULL::VARCHAR AS o,
      'assumed' AS basis, NULL::VARCHAR AS extra, NULL::TIMESTAMPTZ AS computed_at, make_timestamptz(${ended} + ${lag}) AS available_rule_at, NULL::VARCHAR AS params
    FROM range(10) AS x (a), range(${from}, ${from + days}) AS y (d) ORDER BY asset, t
  ) TO ${quote(inLake(root, temporary))} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)`)
  const about = {
    table: 'points',
    label: '',
    metric,
    interval: '24h' as const,
    digest: null,
    meta: { min_lag: 300_000_000 },
  }
  const t = first / 1_000_000 + from * 86_400
  files.push({
    temporary,
    path: pointsFile(metric, '24h', label),
    ...about,
    rows: days * 10,
    min_t: t,
    max_t: t + (days - 1) * 86_400,
  })
}
const series = metrics.flatMap(({ path: metric, defaults }) =>
  assets.map((asset) => {
    const { currency, exchange, network } = defaults
    const own = { metric, asset, interval: '24h' as const, currency, exchange, network, params: {} }
    return { id: seriesId(own), ...own, settled: own.interval }
  }),
)
// As a fetch records it, in seconds: without answered ranges every decision of a join might be unresolved.
const since = first / 1_000_000 + from * 86_400
const until = since + days * 86_400
const answered = { request: null, reason: null, state: 'covered' } as const
const coverage = series.map(({ id }) => ({ series: id, since, until, asked_at: until + 86_400, ...answered }))
const deps = commitDeps({ nowMicros: () => micros('2026-01-01T00:00:00Z') + from })
const provider = { metrics: 'sandbox:1', synthetic: true }
await commit(
  ledger,
  async () => ({ job: 'fetch', run: label, provider, add: files, coverage, ...(from === 0 && { series }) }),
  deps,
)
engine.close()
ledger.close()
await makeViews(root)
console.log(JSON.stringify(metrics.map(({ path }) => [path, inLake(root, pointsFile(path, '24h', label))])))
