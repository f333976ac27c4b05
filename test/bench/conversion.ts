import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Rule } from '../../src/catalog/availability.ts'
import { convert } from '../../src/sources/points/convert.ts'
import type { Body, ConvertJob } from '../../src/sources/points/conversion-types.ts'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import { batchBytes } from '../../src/sources/metrics/ask-all.ts'
import { byTurns, figure, type Measured, median, sameRows, scaled } from './measured.ts'
import { mostMemory } from './memory.ts'
import type { Took } from './programs.ts'

/** What is used of parquetjs-lite, which comes without types. */
interface RowWise {
  readonly ParquetSchema: new (fields: Readonly<Record<string, object>>) => object
  readonly ParquetWriter: {
    openFile(
      schema: object,
      path: string,
      options: object,
    ): Promise<{
      appendRow(row: Readonly<Record<string, unknown>>): Promise<void>
      close(): Promise<void>
    }>
  }
}
const parquet = createRequire(import.meta.url)('parquetjs-lite') as RowWise

const hour = 3600
const start = 1_500_000_000 - (1_500_000_000 % hour)
const rule: Rule = {
  kind: 'lag',
  seconds: 600,
  basis: 'assumed',
  quote: null,
  reason: null,
  until: null,
  trust: 'provider',
}

/** A kind of body. */
interface Kind {
  readonly name: string
  /** Declared types for a bare `read_json`. */
  readonly columns: string
  /** JSON of the point number `i`. */
  readonly point: (i: number, random: () => number) => string
  /** Least rate as a multiple of bare DuckDB's, in processor time. */
  readonly leastOfBare: number
}

const seconds = (column: string): string => `make_timestamptz(${column} * 1000000)`
const kinds: readonly Kind[] = [
  {
    name: 'numbers',
    columns: `{t: 'BIGINT', v: 'DOUBLE'}`,
    leastOfBare: 0.85,
    point: (i, random) => `{"t":${start + i * hour},"v":${random() * 1e6}}`,
  },
  {
    name: 'numbers with computed_at',
    columns: `{t: 'BIGINT', v: 'DOUBLE', computed_at: 'BIGINT'}`,
    leastOfBare: 0.85,
    point: (i, random) =>
      `{"t":${start + i * hour},"v":${random() * 1e6},"computed_at":${start + (i + 1) * hour + 400 + Math.floor(random() * 300)}}`,
  },
  {
    name: 'objects',
    columns: `{t: 'BIGINT', o: 'JSON'}`,
    leastOfBare: 0.75,
    point: (i, random) => `{"t":${start + i * hour},"o":{"aave":${random() * 1e6},"BNB":${random()},"x":null}}`,
  },
]

/**
 * The conversion with all its checks against a bare statement and against a writer row by row, on the same spool files,
 * in turn, equal results asserted in each round; and its peak memory when there is ten times as much.
 */
export async function benchConversion(): Promise<Measured[]> {
  const folder = await mkdtemp(join(tmpdir(), 'pitlake-bench-'))
  const engine = await Engine.open(':memory:', { tempDirectory: join(folder, 'spill') })
  try {
    const measured: Measured[] = []
    const repeats = scaled(5)
    for (const kind of kinds) {
      const large = { folder, bodies: Math.max(4, scaled(60)), points: Math.max(500, scaled(25_000)), repeats }
      const small = { folder, bodies: Math.max(2, scaled(4)), points: Math.max(500, scaled(25_000)), repeats }
      const bare = { name: 'bare read_json -> COPY', write: bareOf(engine, kind, folder), least: kind.leastOfBare }
      const rows = { name: 'JSON.parse and parquetjs-lite', write: rowsOf(kind, folder), least: 25 }
      measured.push(await benchKind(engine, kind, large, bare), await benchKind(engine, kind, small, rows))
    }
    return [...measured, ...(await memory(folder))]
  } finally {
    engine.close()
    await rm(folder, { recursive: true })
  }
}

interface Size {
  readonly folder: string
  readonly bodies: number
  readonly points: number
  readonly repeats: number
}

type Writer = (spool: readonly string[]) => Promise<void>

/** Another way to convert the same bodies. */
interface Baseline {
  readonly name: string
  readonly write: Writer
  /** Least rate of ours as a multiple of its rate, in processor time. */
  readonly least: number
}

/** Seconds of a piece of work by the clock and of the processor. */
type Spent = Pick<Took, 'wall' | 'cpu'>

async function benchKind(engine: Engine, kind: Kind, size: Size, baseline: Baseline): Promise<Measured> {
  const { spool, bytes } = await spoolFiles(kind, size)
  const out = join(size.folder, 'ours.parquet')
  const job = jobOf(spool, out)
  const rounds: { readonly ours: Spent; readonly theirs: Spent }[] = []
  // The first round warms up.
  for (let round = 0; round <= size.repeats; round++) {
    await rm(out, { force: true })
    const [ours, theirs] = await byTurns(round, [
      async () => await spentOn(() => convert(engine, job)),
      async () => await spentOn(() => baseline.write(spool)),
    ])
    await assertEqual(engine, size, kind)
    if (round > 0 && ours && theirs) rounds.push({ ours, theirs })
  }
  await rm(join(size.folder, 'spool'), { recursive: true })
  const ratio = (key: keyof Spent): number => median(rounds.map(({ ours, theirs }) => theirs[key] / ours[key]))
  for (const [words, key] of [
    ['by the clock', 'wall'],
    ['processor', 'cpu'],
  ] as const)
    figure(`conversion of ${kind.name}, ${size.bodies} bodies (${words})`, {
      pitlake: rounds.map(({ ours }) => ours[key]),
      [baseline.name]: rounds.map(({ theirs }) => theirs[key]),
    })
  const seconds = median(rounds.map(({ ours }) => ours.wall))
  const rate = `${((size.bodies * size.points) / seconds / 1e6).toFixed(2)} M points/s, ${(bytes / seconds / 1e6).toFixed(0)} MB/s`
  const within = ratio('cpu') >= baseline.least
  const verdict = `${ratio('cpu').toFixed(2)} x the rate of ${baseline.name} in processor time (${within ? 'at least' : 'BELOW'} ${baseline.least}), ${ratio('wall').toFixed(2)} x by the clock`
  return { line: `conversion of ${kind.name}: ${rate}, ${verdict}`, within }
}

const theirFile = 'theirs.parquet'

/**
 * DuckDB alone: declared types, sorted by the number of the body as ours is, the columns of the lake dated by the rule;
 * no check of anything.
 */
function bareOf(engine: Engine, kind: Kind, folder: string): Writer {
  return async (spool) => {
    const source = `read_json(${quoteList(spool)}, format = 'array', compression = 'uncompressed', columns = ${kind.columns}, filename = true)`
    const out = quote(join(folder, theirFile))
    await engine.run(
      `COPY (SELECT ${wide(kind)} FROM ${source} ORDER BY file_index, t) TO ${out} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)`,
    )
  }
}

/** The same columns, row by row. */
function rowsOf(kind: Kind, folder: string): Writer {
  const text = { type: 'UTF8', optional: true }
  const instant = { type: 'TIMESTAMP_MICROS', optional: true }
  const schema = new parquet.ParquetSchema({
    filename: text,
    currency: text,
    exchange: text,
    network: text,
    t: instant,
    available_at: instant,
    observed_at: instant,
    v: { type: 'DOUBLE', optional: true },
    o: text,
    basis: text,
    extra: text,
    computed_at: instant,
    available_rule_at: instant,
    params: text,
  })
  const basis = kind.columns.includes('computed_at') ? 'provider' : 'assumed'
  return async (spool) => {
    const out = join(folder, theirFile)
    await rm(out, { force: true })
    const writer = await parquet.ParquetWriter.openFile(schema, out, { pageIndex: false })
    for (const filename of spool)
      for (const { t, v, o, computed_at } of JSON.parse(await readFile(filename, 'utf8')) as Point[]) {
        const available = (computed_at ?? t + hour + 600) * 1_000_000
        await writer.appendRow({
          filename,
          t: t * 1_000_000,
          available_at: available,
          observed_at: observedAt,
          basis,
          ...(v === undefined ? {} : { v }),
          ...(o === undefined ? {} : { o: JSON.stringify(o) }),
        })
      }
    await writer.close()
  }
}

interface Point {
  readonly t: number
  readonly v?: number
  readonly o?: object
  readonly computed_at?: number
}

const observedAt = 2_000_000_000_000_000

/**
 * Peak memory of a process that converts, the middle of three: ten batches against one, each as large as a fetch
 * commits, and one body as long as a fetch asks for against a tenth of it.
 */
async function memory(folder: string): Promise<Measured[]> {
  const measured: Measured[] = []
  const many = 'batches as large as a fetch commits'
  for (const kind of kinds) {
    const peakOf = async (size: Omit<Size, 'folder' | 'repeats'>, batches: number): Promise<number> => {
      await spoolFiles(kind, { folder, repeats: 1, ...size })
      const peak = median(Array.from({ length: scaled(3) }, () => peakAlone(join(folder, 'spool'), batches)))
      await rm(join(folder, 'spool'), { recursive: true })
      return peak
    }
    const batch = { bodies: 40, points: scaled(25_000) }
    measured.push(flat(`${kind.name}, ten ${many} to one`, await peakOf(batch, 1), await peakOf(batch, 10)))
    const body = (points: number): Promise<number> => peakOf({ bodies: 1, points: scaled(points) }, 0)
    // One body is read whole, and a plan cuts none longer than this: it may take more, by the bytes of its values as
    // they are staged.
    const low = await body(8000)
    const high = await body(80_000)
    measured.push(flat(`${kind.name}, a body of 80,000 points to one of 8,000`, low, high, 1.5))
  }
  return measured
}

function flat(what: string, low: number, high: number, bound = 1.2): Measured {
  const within = high <= bound * low && high < 700
  const verdict = `${(high / low).toFixed(2)} x (${within ? 'at most' : 'ABOVE'} ${bound} x and 700 MB)`
  return { line: `conversion of ${what}: ${high} MB of memory to ${low} MB: ${verdict}`, within }
}

/** The peak in MB of a child process that converts so many batches, 0 for every body once. */
function peakAlone(spool: string, batches: number): number {
  const done = spawnSync(process.execPath, [import.meta.filename, spool, String(batches)], { encoding: 'utf8' })
  if (done.status !== 0) throw new Error(done.stderr)
  return Number(done.stdout)
}

/**
 * Converts the bodies of the spool folder, again and again for so many batches, and prints the peak of this process.
 */
async function convertAlone(folder: string, batches: number): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json')).toSorted()
  const all = names.map((name) => ({ path: join(folder, name), bytes: statSync(join(folder, name)).size }))
  const engine = await Engine.open(':memory:', { tempDirectory: join(folder, 'spill') })
  let next = 0
  for (let n = 0; n < Math.max(1, batches); n++) {
    const batch: string[] = []
    for (let bytes = 0; batches === 0 ? next < all.length : bytes < scaled(batchBytes); next++) {
      const one = all[next % all.length]
      if (!one) throw new Error(`nothing is spooled in ${folder}`)
      batch.push(one.path)
      bytes += one.bytes
    }
    // A path of its own: DuckDB remembers files that it read.
    const { bodies } = await convert(engine, jobOf(batch, join(folder, `alone-${n}.parquet`)))
    if (bodies.length !== batch.length || bodies.some(({ added }) => added === 0))
      throw new Error('not all is converted')
  }
  engine.close()
  process.stdout.write(String(mostMemory()))
}

async function spoolFiles(kind: Kind, { folder, bodies, points }: Size): Promise<{ spool: string[]; bytes: number }> {
  await mkdir(join(folder, 'spool'))
  const spool: string[] = []
  let bytes = 0
  let state = 42
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 0x7fffffff
  }
  for (let body = 0; body < bodies; body++) {
    const path = join(folder, 'spool', `${String(body).padStart(4, '0')}.json`)
    const file = await open(path, 'w')
    for (let from = 0; from < points; from += 25_000) {
      const size = Math.min(25_000, points - from)
      const text = Array.from({ length: size }, (_, i) => kind.point(from + i, random)).join(',')
      await file.write(`${from === 0 ? '[' : ','}${text}`)
      bytes += text.length
    }
    await file.write(']')
    await file.close()
    spool.push(path)
  }
  return { spool, bytes }
}

function jobOf(spool: readonly string[], out: string): ConvertJob {
  const bodies = spool.map((file, i): Body => {
    const asset = `ASSET${String(i).padStart(4, '0')}`
    const frame = { metric: 'm', interval: '1h' as const, currency: null, exchange: null, network: null, params: {} }
    const series = { ...frame, id: asset, asset }
    return { file, request: asset, series, since: null, until: null, askedAt: 2e9, horizon: 2e9, prior: [] }
  })
  const part = {
    metric: 'm',
    interval: '1h' as const,
    rules: [rule],
    overlap: 'exact' as const,
    bodies,
    existing: [],
    out,
  }
  return {
    parts: [part],
    // However few there are, they get a file of their own.
    portion: 1,
    recent: { existing: [], out: `${out}.recent` },
    timestamp: 'interval_start',
    observedAt: BigInt(observedAt),
    metadata: {},
  }
}

/**
 * What a bare statement needs to write the very columns of the lake, dated by the rule alone; what equals is left out.
 */
function wide(kind: Kind): string {
  const told = kind.columns.includes('computed_at')
  const available = told ? seconds('computed_at') : seconds(`(t + ${hour + 600})`)
  const nothing = ['currency', 'exchange', 'network'].map((name) => `CAST(NULL AS VARCHAR) AS ${name}`).join(', ')
  return `filename, ${nothing}, ${seconds('t')} AS t, ${available} AS available_at,
    make_timestamptz(${observedAt}) AS observed_at, ${kind.columns.includes(' v:') ? 'v' : 'CAST(NULL AS DOUBLE) AS v'},
    ${kind.columns.includes(' o:') ? 'CAST(o AS VARCHAR) AS o' : 'CAST(NULL AS VARCHAR) AS o'},
    '${told ? 'provider' : 'assumed'}' AS basis, CAST(NULL AS VARCHAR) AS extra,
    CAST(NULL AS TIMESTAMPTZ) AS computed_at, CAST(NULL AS TIMESTAMPTZ) AS available_rule_at,
    CAST(NULL AS VARCHAR) AS params`
}

async function assertEqual(engine: Engine, { folder, bodies, points }: Size, kind: Kind): Promise<void> {
  const path = (name: string): string => `read_parquet(${quote(join(folder, name))})`
  const theirs = `SELECT 'ASSET' || regexp_extract(filename, '(\\d+)\\.json$', 1) AS asset, * EXCLUDE (filename) FROM ${path(theirFile)}`
  const rows = await sameRows(engine, kind.name, path('ours.parquet'), `(${theirs})`)
  if (rows !== bodies * points) throw new Error(`${kind.name}: ${rows} rows of ${bodies * points}`)
}

async function spentOn(work: () => Promise<unknown>): Promise<Spent> {
  const before = process.cpuUsage()
  const begun = performance.now()
  await work()
  const { user, system } = process.cpuUsage(before)
  return { wall: (performance.now() - begun) / 1000, cpu: (user + system) / 1e6 }
}

if (process.argv[1] === import.meta.filename) await convertAlone(process.argv[2] ?? '', Number(process.argv[3]))
