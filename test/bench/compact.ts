import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { compact, mergeSmallFiles } from '../../src/upkeep/compact.ts'
import { metricSizes } from '../../src/upkeep/metric-sizes.ts'
import { buildViews } from '../../src/views/build.ts'
import { openQuery } from '../../src/query/lake.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { realDisk } from '../../src/store/disk.ts'
import { Engine, quote } from '../../src/store/engine.ts'
import { liveFiles } from '../../src/ledger/held.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { computedSql } from '../../src/points/stored-clocks.ts'
import { metrics, pointsAt, rewriteDeps, start, topUps } from '../helpers/merging.ts'

/** Every endpoint of the catalogue, each over ten assets. */
const catalogue = loadCatalogue()
const paths = [...new Set([...metrics, ...catalogue.endpoints.keys()])]
const assets = 10
const history = 1500
const day = 86_400
const bound = 1.3

/** A year of daily top-ups against the same lake freshly compacted: files, rewrites, five common queries, bytes. */
export async function benchCompact(days = 365, rounds = 15): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-bench-'))
  try {
    const lived = join(folder, 'lived')
    const seen = await liveThrough(lived, days)
    const fresh = join(folder, 'fresh')
    cpSync(lived, fresh, { recursive: true })
    await compact(fresh, rewriteDeps())
    return [seen, ...(await compareQueries(lived, fresh, rounds)), ...(await sizesOf(lived, fresh))]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A history, then so many top-ups, each followed by the merge that a fetch does at its end. */
async function liveThrough(root: string, days: number): Promise<string> {
  const deps = rewriteDeps({ disk: { ...realDisk, sync: nothing, syncFolder: nothing } })
  const ledger = await Ledger.open(root)
  try {
    const all = (since: number, span: number) => paths.map((metric) => ({ metric, since, days: span, assets }))
    await topUps(ledger, deps, all(0, history))
    let [most, sum, written] = [0, 0, 0]
    for (let n = 0; n < days; n++) {
      deps.clock.now += day
      await topUps(ledger, deps, all(history + n, 1))
      written += (await mergeSmallFiles(ledger, deps)).rows
      const partitions = [...Map.groupBy(liveFiles(ledger), ({ metric }) => metric).values()]
      most = Math.max(most, ...partitions.map(({ length }) => length))
      sum += partitions.reduce((files, { length }) => files + length, 0) / partitions.length
    }
    const points = paths.length * assets
    return `${days} top-ups of ${paths.length} endpoints: at most ${most} files a partition (bound ${Math.floor(Math.log2(days) + 2)}), ${(sum / days).toFixed(1)} on average, each point rewritten ${(written / (points * (history + days))).toFixed(1)} times, ${(written / (points * days)).toFixed(1)} per point brought (bound 10)`
  } finally {
    ledger.close()
  }
}

/** A year is simulated: forcing each of its days to the disk would only measure the disk. */
async function nothing(): Promise<void> {
  await Promise.resolve()
}

const [first, second] = metrics.map(quote)
const then = `make_timestamptz(${(start + 900 * day) * 1_000_000}::BIGINT)`
const panelled = `max(v) FILTER (WHERE metric = ${first}) AS a, max(v) FILTER (WHERE metric = ${second}) AS b`

/** The questions that are asked most. */
const questions: Readonly<Record<string, string>> = {
  'one series': `SELECT t, v FROM points WHERE metric = ${first} AND asset = 'A3' ORDER BY t`,
  'latest known of all': 'SELECT metric, asset, arg_max(v, t) AS v, max(t) AS t FROM points GROUP BY ALL ORDER BY ALL',
  panel: `SELECT t, asset, ${panelled} FROM points GROUP BY ALL ORDER BY ALL`,
  'count by metric': 'SELECT metric, count(*) AS n FROM points GROUP BY ALL ORDER BY ALL',
  'as of': `SELECT metric, asset, arg_max(v, t) AS v FROM points WHERE available_at <= ${then} GROUP BY ALL ORDER BY ALL`,
}

/** Asks both lakes through their own views. */
async function compareQueries(lived: string, fresh: string, rounds: number): Promise<string[]> {
  const engines: Engine[] = []
  for (const root of [lived, fresh]) {
    const ledger = await Ledger.openToRead(root)
    await buildViews(ledger, { catalogue, deps: commitDeps() })
    ledger.close()
    engines.push(await openQuery(root))
  }
  const [ours, theirs] = engines as [Engine, Engine]
  try {
    const lines: string[] = []
    for (const [name, sql] of Object.entries(questions)) lines.push(await compareOne(ours, theirs, name, sql, rounds))
    return lines
  } finally {
    for (const engine of engines) engine.close()
  }
}

async function compareOne(lived: Engine, fresh: Engine, name: string, sql: string, rounds: number): Promise<string> {
  const times: { ours: number; theirs: number }[] = []
  for (let round = -1; round < rounds; round++) {
    const [a, said] = await timed(lived, sql)
    const [b, expected] = await timed(fresh, sql)
    if (said !== expected) throw new Error(`${name}: the answers differ`)
    if (round >= 0) times.push({ ours: a, theirs: b })
  }
  const ratio = median(times.map((time) => time.ours / time.theirs))
  const [a, b] = [median(times.map((time) => time.ours)), median(times.map((time) => time.theirs))]
  return `${name}: ${a.toFixed(1)} ms, freshly compacted ${b.toFixed(1)} ms, ratio ${ratio.toFixed(2)} (${ratio <= bound ? 'within' : 'ABOVE'} ${bound})`
}

async function timed(engine: Engine, sql: string): Promise<[number, string]> {
  const begun = performance.now()
  const rows = await engine.rows(sql)
  const took = performance.now() - begun
  return [took, JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))]
}

/** Bytes on disk against the JSON that the points came as: `t`, `v` or `o`, and the provider's instant where it gives one. */
async function sizesOf(lived: string, fresh: string): Promise<string[]> {
  const ledger = await Ledger.openToRead(fresh)
  const engine = await Engine.open()
  try {
    const raw = await engine.rows<{ metric: string; bytes: bigint }>(
      `SELECT metric, sum(length(to_json(struct_pack(t := epoch_us(t) // 1000000, v := v))) + 1
         + CASE WHEN o IS NULL THEN 0 ELSE length(o) + 5 END
         + CASE WHEN ${computedSql()} IS NULL THEN 0 ELSE 25 END)::BIGINT AS bytes
       FROM ${pointsAt(ledger, null)} GROUP BY ALL`,
    )
    const sizes = new Map((await metricSizes(lived)).map((size) => [size.metric, size.bytes]))
    const shown = (await metricSizes(fresh)).filter(({ metric }) => metrics.some((one) => one === metric))
    return shown.map((size) => {
      const json = Number(raw.find((row) => row.metric === size.metric)?.bytes)
      const keys = ['t', 'asset', 'currency', 'observed_at'].map((name) => `${name} ${size.columns[name]?.toFixed(4)}`)
      return `${size.metric}: ${size.bytes_per_point.toFixed(2)} bytes a point compacted, 1/${(json / size.bytes).toFixed(1)} of the JSON, ${((sizes.get(size.metric) ?? 0) / size.points).toFixed(2)} before; ${keys.join(', ')}`
    })
  } finally {
    engine.close()
    ledger.close()
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
