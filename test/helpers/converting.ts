import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Rule } from '../../src/catalog/availability.ts'
import type { Series } from '../../src/catalog/series.ts'
import { convert as convertBatch } from '../../src/sources/points/convert.ts'
import type {
  Body,
  BodyResult,
  ConvertResult,
  PartJob,
  WrittenFile,
} from '../../src/sources/points/conversion-types.ts'
import { Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import { computedByFormat, ruledByFormat } from './stored-twin.ts'
import { day, parseInstant } from '../../src/base/time.ts'

const frame = { quote: null, reason: null, until: null, trust: 'provider' as const }

/** Assumed: ten minutes after the end of the interval. */
export const lag600 = { ...frame, kind: 'lag', seconds: 600, basis: 'assumed' } satisfies Rule

/** Stated: at 10:15 of the day after. */
export const nextMorning: Rule = { ...frame, kind: 'clock', minuteOfDay: 615, days: 1, basis: 'stated' }

/** The instant, seconds. */
export function at(text: string): number {
  const instant = parseInstant(text)
  if (instant === undefined) throw new Error(text)
  return instant
}

/** The instant, microseconds. */
export const micros = (text: string): number => at(text) * 1_000_000

/** The day whose point most tests use. */
export const t1 = at('2024-03-01')

/** Points of following days from `t1` on with the values 0, 1, 2, … */
export function daily(count: number): { t: number; v: number }[] {
  return Array.from({ length: count }, (_, i) => ({ t: t1 + i * day, v: i }))
}

/** A daily series of the metric `m`. */
export function series(asset: string, dims: Partial<Series> = {}): Series {
  const held = { metric: 'm', asset, interval: '24h' as const, params: {} }
  const whole = { ...held, currency: null, exchange: null, network: null, ...dims }
  return { ...whole, id: JSON.stringify([asset, whole.currency, whole.exchange, whole.network]) }
}

/** A conversion of one partition; the files that are there by path. */
export type Task = Omit<PartJob, 'existing' | 'recent'> & { readonly existing: readonly string[] }

/** What a conversion of one partition gives. */
export type Converted = Omit<ConvertResult, 'files' | 'recent'> & { readonly file: WrittenFile | null }

/**
 * Converts one partition alone, into a file of its own and into a recent one, beside what is held in either level: both
 * must give the same.
 */
export async function convert(engine: Engine, task: Task): Promise<Converted> {
  const twin = await convertRecent(engine, { ...task, out: `${task.out}.twin` })
  const own = await convertAs(engine, task)
  expect(twin).toEqual(own)
  return own
}

async function convertAs(engine: Engine, { existing, ...task }: Task): Promise<Converted> {
  const there = existing.map((path) => ({ path, min_t: null, max_t: null }))
  const parts = [{ ...task, existing: there }]
  const recent = { existing: [], out: `${task.out}.recent` }
  const { files, recent: _, ...result } = await convertBatch(engine, { ...task, parts, recent, portion: 1 })
  return { ...result, file: files[0] ?? null }
}

/** The same with all that is held, and all that comes, in recent files. */
async function convertRecent(engine: Engine, { existing, ...task }: Task): Promise<Converted> {
  const { metric, interval } = task
  const there: string[] = []
  for (const path of existing) there.push(await asRecent(engine, path, task))
  const recent = { existing: there.map((path) => ({ path, min_t: null, max_t: null })), out: `${task.out}.recent` }
  const parts = [{ ...task, existing: [] }]
  const portion = Number.POSITIVE_INFINITY
  const { files, recent: held, ...result } = await convertBatch(engine, { ...task, parts, recent, portion })
  await rm(recent.out, { force: true })
  if (held === null) return { ...result, file: files[0] ?? null }
  const { shares, ...file } = held
  expect(shares).toEqual([{ metric, interval, rows: file.rows, min_lag: file.min_lag }])
  return { ...result, file }
}

const recents = new Map<string, string>()

/** A recent file with the rows of a partition's file, among others of another metric and another interval. */
async function asRecent(engine: Engine, path: string, { metric, interval }: Pick<Task, 'metric' | 'interval'>) {
  const known = recents.get(path)
  if (known !== undefined) return known
  const out = `${path}.as-recent`
  const rows = (of: string, every: string, value: string): string =>
    `SELECT ${quote(of)} AS metric, ${quote(every)} AS "interval", * REPLACE (${value} AS v) FROM read_parquet(${quote(path)})`
  const other = 'coalesce(v, 0) + 1'
  const all = [
    rows(metric, interval, 'v'),
    rows(`${metric}/other`, interval, other),
    rows(metric, interval === '1h' ? '10m' : '1h', other),
  ]
  await engine.run(
    `COPY (${all.join(' UNION ALL ')}) TO ${quote(out)} (FORMAT parquet, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 0)`,
  )
  recents.set(path, out)
  return out
}

/** Conversions in a folder of their own; close it. */
export class Converting {
  readonly engine: Engine
  readonly folder: string
  #serial = 0

  private constructor(engine: Engine, folder: string) {
    this.engine = engine
    this.folder = folder
  }

  /** Opens an engine, and a folder with an apostrophe in its name. */
  static async open(): Promise<Converting> {
    const folder = await mkdtemp(join(tmpdir(), "pitlake-convert-it's-"))
    return new Converting(
      await Engine.open(':memory:', { threads: 2, memoryLimit: '1GB', tempDirectory: folder }),
      folder,
    )
  }

  async close(): Promise<void> {
    this.engine.close()
    await rm(this.folder, { recursive: true })
  }

  /** A spool file with this content, as the answer to an unbounded question for BTC. */
  async body(content: string | Buffer, over: Partial<Body> = {}): Promise<Body> {
    const serial = this.#serial++
    const file = join(this.folder, `${serial}.json`)
    await writeFile(file, content)
    const asked = { file, request: `r${serial}`, series: series('BTC'), since: null, until: null, prior: [] }
    return { ...asked, askedAt: at('2030-01-01'), horizon: at('2030-01-01'), ...over }
  }

  job(bodies: readonly Body[], over: Partial<Task> = {}): Task {
    return {
      metric: 'm',
      interval: '24h',
      rules: [lag600],
      timestamp: 'interval_start',
      overlap: 'exact',
      bodies,
      existing: [],
      observedAt: BigInt(micros('2030-01-01')) + 7n,
      out: join(this.folder, `${this.#serial++}.parquet`),
      metadata: { 'pitlake.lake': "it's" },
      ...over,
    }
  }

  /** The rows of a points file, in its order, instants in microseconds and in full. */
  async stored(file: string): Promise<Row[]> {
    return this.engine.rows(`SELECT asset, currency, exchange, network, epoch_us(t) AS t,
      epoch_us(available_at) AS available_at, epoch_us(observed_at) AS observed_at, v, o, basis, extra,
      epoch_us(${computedByFormat}) AS computed_at, epoch_us(${ruledByFormat}) AS available_rule_at, params
      FROM read_parquet(${quote(file)})`)
  }

  /** Converts one body alone. */
  async values(content: string, over: Partial<Task> = {}): Promise<{ only: BodyResult; rows: Row[] }> {
    const task = this.job([await this.body(content)], over)
    const result = await convert(this.engine, task)
    const [only] = result.bodies
    if (!only) throw new Error('no result')
    return { only, rows: result.file === null ? [] : await this.stored(task.out) }
  }
}
