import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { sizeOf } from '../../src/lake/store/files.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { entriesIn } from '../../src/lake/store/disk.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { foldJournal } from '../../src/lake/ledger/checkpoint-writer.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { foldedFiles } from '../helpers/entries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { computedSql, isRecent } from '../../src/sources/points/files.ts'
import { metricSizes } from '../../src/sources/points/sizes.ts'
import { openQuery } from '../../src/query/lake.ts'
import { pitlake } from '../helpers/command.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { metrics } from '../helpers/lakes/top-ups.ts'
import { pointsAt } from '../helpers/points-at.ts'
import { benchConfig, type Provider, since, withDailyProvider } from './provider.ts'
import { byTurns, judged, type Measured, median, scaled, told } from './measured.ts'

/*
 * A lake as it is lived with: every endpoint of the catalogue for so many assets, a history, then a `pitlake fetch` a
 * day, in this process by a clock that is set. `PITLAKE_BENCH_ASSETS=10 PITLAKE_BENCH_DAYS=365` is the whole of it.
 */

const number = (name: string, usual: number): number => Number(process.env[name] ?? usual)
const assets = Array.from({ length: number('PITLAKE_BENCH_ASSETS', 2) }, (_, n) => `A${n}`)
const days = number('PITLAKE_BENCH_DAYS', scaled(60))
const endpoints = loadCatalogue().endpoints.size
const history = scaled(1050)
const day = 86_400
const rounds = scaled(15)
/** A run of a year may leave so many files. */
const most = { partition: 8, recent: 10, rewrites: 8, bytesARequest: 150, slower: 1.3 }
/** The growth of the ledger is told by the last of these runs. */
const counted = Math.min(100, Math.floor(days / 2))

/** A lake in a folder, and who fills it. */
interface Lived {
  readonly folder: string
  readonly provider: Provider
}

/** Files, rewrites, the ledger's growth, five common questions against the same lake compacted, bytes. */
export async function benchDiskSize(): Promise<Measured[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-bench-'))
  try {
    return await withDailyProvider(async (provider) => {
      writeFileSync(join(folder, 'pitlake.yaml'), benchConfig())
      const own = { folder, provider }
      const lived = await liveThrough(own)
      cpSync(join(folder, 'lived'), join(folder, 'fresh'), { recursive: true })
      await command(own, 'fresh', days, ['compact'])
      await fetchAt(own, 'once', days)
      return [...lived, ...(await compareLakes(own)), ...(await sizesOf(own))]
    }, 'objects')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What a command prints that is run in a lake so many days after the history. */
async function command({ folder, provider }: Lived, lake: string, after: number, argv: string[]): Promise<string> {
  const now = since + (history + after) * day + day / 2
  await provider.setClock(now)
  const begun = performance.now()
  const env = { PITLAKE_METRICS_URL: provider.url, PITLAKE_METRICS_KEY: 'key-of-the-bench' }
  const flags = ['--json', '--config', join(folder, 'pitlake.yaml'), '--data', join(folder, lake)]
  const world = { now: () => now * 1000 + performance.now() - begun }
  const done = await pitlake(folder, [...argv, ...flags], env, world)
  if (done.code !== 0) throw new Error(`${argv[0]}: ${done.code} ${done.message}`)
  return done.out
}

/** How many requests and points a fetch of all that there is comes to. */
async function fetchAt(own: Lived, lake: string, after: number): Promise<{ requests: number; points_added: number }> {
  const from = new Date(since * 1000).toISOString()
  const flags = ['fetch', '--paths', '*', '--assets', assets.join(','), '--since', from]
  return JSON.parse(await command(own, lake, after, flags)) as { requests: number; points_added: number }
}

/** A history, then so many days; the files after each, the rewrites and the ledger's growth at the end. */
async function liveThrough(own: Lived): Promise<Measured[]> {
  const root = join(own.folder, 'lived')
  const first = await fetchAt(own, 'lived', 0)
  const seen = { partition: 0, recent: 0, points: 0, requests: 0, seconds: 0 }
  let before = { bytes: 0, archive: 0 }
  for (let n = 1; n <= days; n++) {
    const begun = performance.now()
    const { requests, points_added } = await fetchAt(own, 'lived', n)
    seen.seconds += (performance.now() - begun) / 1000
    seen.points += points_added
    if (n > days - counted) seen.requests += requests
    using ledger = await Ledger.openToRead(root)
    const [recent, settled] = partition(liveFiles(ledger, { table: 'points' }))
    const parts = Map.groupBy(settled, ({ metric, interval }) => `${metric} ${interval}`).values()
    seen.recent = Math.max(seen.recent, recent.length)
    seen.partition = Math.max(seen.partition, ...[...parts].map(({ length }) => length))
    if (n === days - counted) before = await ledgerBytes(root)
  }
  const after = await ledgerBytes(root)
  const rewrites = (await rowsOfMerges(root)) / seen.points
  const each = (after.bytes - before.bytes) / seen.requests
  const lived = `${days} days of ${endpoints} endpoints × ${assets.length} (${first.points_added} points first, then ${seen.points}), ${(seen.seconds / days).toFixed(2)} s a day`
  const archived = ((after.archive - before.archive) / seen.requests).toFixed(0)
  return [
    judged(`${lived}: ${seen.partition} files a partition`, seen.partition, most.partition),
    judged(`recent files: ${seen.recent}`, seen.recent, most.recent),
    judged(`each point brought was written again ${rewrites.toFixed(1)} times`, rewrites, most.rewrites),
    judged(
      `journal and ledger grew by ${each.toFixed(0)} bytes a request over ${counted} runs, old rows in files by ${archived}`,
      each,
      most.bytesARequest,
    ),
  ]
}

type Live = ReturnType<typeof liveFiles>

function partition(files: Live): [recent: Live, settled: Live] {
  return [files.filter(isRecent), files.filter((file) => !isRecent(file))]
}

/** All rows that merges of points ever wrote. */
async function rowsOfMerges(root: string): Promise<number> {
  using ledger = await Ledger.openToRead(root)
  const row = ledger
    .statement(
      `SELECT sum(rows) AS n FROM files JOIN versions ON added_version = version WHERE tbl = 'points' AND job = 'merge'`,
    )
    .get()
  return Number(row?.['n'] ?? 0)
}

/** Bytes of the index and of what of the journal is needed beside its newest checkpoint, and of the archived rows. */
async function ledgerBytes(root: string): Promise<{ bytes: number; archive: number }> {
  using ledger = await Ledger.open(root)
  await foldJournal(ledger, commitDeps(), 1)
  const folded = new Set(await foldedFiles(root))
  const journal = (await entriesIn(inLake(root, places.journal)))
    .filter((entry) => entry.isFile())
    .map(({ name }) => `${places.journal}/${name}`)
    .filter((path) => !folded.has(path))
  ledger.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  let bytes = 0
  for (const path of [...journal, places.ledger]) bytes += await sizeOf(inLake(root, path))
  const old = liveFiles(ledger).filter(({ path }) => path.startsWith(`${places.archive}/`))
  return { bytes, archive: old.reduce((sum, file) => sum + file.bytes, 0) }
}

const [first, second] = metrics.map(quote)
const then = `make_timestamptz(${(since + (history + Math.floor(days / 2)) * day) * 1_000_000}::BIGINT)`
const panelled = `max(v) FILTER (WHERE metric = ${first}) AS a, max(v) FILTER (WHERE metric = ${second}) AS b`

/** The questions that are asked most. */
const questions: Readonly<Record<string, string>> = {
  'one series': `SELECT t, v FROM points WHERE metric = ${first} AND asset = '${assets.at(-1)}' ORDER BY t`,
  'latest known of all': 'SELECT metric, asset, arg_max(v, t) AS v, max(t) AS t FROM points GROUP BY ALL ORDER BY ALL',
  panel: `SELECT t, asset, ${panelled} FROM points GROUP BY ALL ORDER BY ALL`,
  'count by metric': 'SELECT metric, count(*) AS n FROM points GROUP BY ALL ORDER BY ALL',
  'as of': `SELECT metric, asset, arg_max(v, t) AS v FROM points WHERE available_at <= ${then} GROUP BY ALL ORDER BY ALL`,
}

/** Asks the lived lake and the compacted one through the views that the commands have left, once both hold the same. */
async function compareLakes({ folder }: Lived): Promise<Measured[]> {
  await equalContent(folder)
  const engines: Engine[] = []
  const lines = [await opening(folder)]
  for (const lake of ['lived', 'fresh']) engines.push(await openQuery(join(folder, lake)))
  const [ours, theirs] = engines as [Engine, Engine]
  try {
    for (const [name, sql] of Object.entries(questions)) lines.push(await compareOne(ours, theirs, name, sql))
    return lines
  } finally {
    for (const engine of engines) engine.close()
  }
}

/** What opening costs, every file included: the questions are asked of lakes that are open. */
async function opening(folder: string): Promise<Measured> {
  const times: (readonly number[])[] = []
  for (let round = -1; round < rounds; round++) {
    const ways = ['lived', 'fresh'].map((lake) => async () => {
      const begun = performance.now()
      using engine = await openQuery(join(folder, lake))
      await engine.rows('SELECT count(*), max(available_at) FROM points')
      return performance.now() - begun
    })
    const taken = await byTurns(round, ways)
    if (round >= 0) times.push(taken)
  }
  const [lived = 0, fresh = 0] = [0, 1].map((side) => median(times.map((pair) => pair[side] ?? Number.NaN)))
  return told(
    `opened and asked for the first time: ${lived.toFixed(1)} ms, freshly compacted ${fresh.toFixed(1)} ms, ratio ${(lived / fresh).toFixed(2)}`,
  )
}

/** The compacted lake holds the very rows of the lived one, and a lake that was fetched at once the same points. */
async function equalContent(folder: string): Promise<void> {
  using engine = await Engine.open()
  for (const lake of ['lived', 'fresh', 'once'])
    await engine.run(`ATTACH ${quote(join(folder, lake, places.database))} AS ${lake} (READ_ONLY)`)
  const all = (lake: string): string => `SELECT * FROM ${lake}.points`
  const values = (lake: string): string =>
    `SELECT metric, "interval", asset, currency, exchange, network, t, v, o FROM ${lake}.points`
  for (const [a, b] of [
    [all('lived'), all('fresh')],
    [all('fresh'), all('lived')],
    [values('lived'), values('once')],
    [values('once'), values('lived')],
  ]) {
    const [row] = await engine.rows<{ n: bigint }>(`SELECT count(*) AS n FROM (${a} EXCEPT ALL ${b})`)
    if (row?.n !== 0n) throw new Error(`${row?.n} rows of ${a} are not in ${b}`)
  }
}

async function compareOne(lived: Engine, fresh: Engine, name: string, sql: string): Promise<Measured> {
  const times: { ours: number; theirs: number }[] = []
  for (let round = -1; round < rounds; round++) {
    const ways = [lived, fresh].map((engine) => async () => await timed(engine, sql))
    const [[a, said] = none, [b, expected] = none] = await byTurns(round, ways)
    if (said !== expected || said === '[]' || said === '') throw new Error(`${name}: the answers differ`)
    if (round >= 0) times.push({ ours: a, theirs: b })
  }
  const ratio = median(times.map((time) => time.ours / time.theirs))
  const a = median(times.map((time) => time.ours))
  const b = median(times.map((time) => time.theirs))
  const line = `${name}: ${a.toFixed(1)} ms, freshly compacted ${b.toFixed(1)} ms, ratio ${ratio.toFixed(2)}`
  return judged(line, ratio, most.slower)
}

const none: [number, string] = [Number.NaN, '']

async function timed(engine: Engine, sql: string): Promise<[number, string]> {
  const begun = performance.now()
  const rows = await engine.rows(sql)
  const took = performance.now() - begun
  return [took, JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))]
}

/**
 * Bytes on disk against the JSON that the points came as: `t`, `v` or `o`, and the provider's instant where it gives
 * one.
 */
async function sizesOf({ folder }: Lived): Promise<Measured[]> {
  const lived = join(folder, 'lived')
  const fresh = join(folder, 'fresh')
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
      const line = `${size.metric}: ${size.bytes_per_point.toFixed(2)} bytes a point compacted, 1/${(json / size.bytes).toFixed(1)} of the JSON, ${((sizes.get(size.metric) ?? 0) / size.points).toFixed(2)} before; ${keys.join(', ')}`
      return { line, within: true }
    })
  } finally {
    engine.close()
    ledger.close()
  }
}
