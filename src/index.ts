import { setTimeout } from 'node:timers/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Table } from 'apache-arrow'
import pLimit from 'p-limit'
import { ownMemory } from './interfaces/cli/memory.ts'
import type { LibraryCaller } from './interfaces/commands/library.ts'
import { withCleanup } from './base/cleanup.ts'
import { LakeError, usage } from './base/errors.ts'
import { kinds } from './base/option-kinds.ts'
import type { Engine } from './lake/store/engine.ts'
import { engineMemory, leastMemory, requireMemory } from './lake/store/memory.ts'
import type { Parameters } from './lake/store/sql.ts'
import { loadCatalogue } from './catalog/load.ts'
import { withOwn } from './sources/points/own-rows.ts'
import { Ledger } from './lake/ledger/ledger.ts'
import { arrowTable } from './query/arrow.ts'
import type { LookaheadProof } from './trust/lookahead/lookahead.ts'
import type { DatedTable } from './trust/dating/dating.ts'
import type { WhenOptions } from './trust/dating/options.ts'
import type { Replayed, Stamped } from './trust/results/stamp.ts'
import { explainChange as explain, type Explained, type ExplainInput } from './trust/results/explain-change.ts'
import {
  type Calendar,
  calendarSql,
  historySql,
  type Resample,
  resampleSql,
  type Join,
  joinSpec,
  metricsSql,
  statusSql,
  type Windowed,
} from './query/join-queries.ts'
import { Filled } from './query/filled-columns.ts'
import { keepingState } from './query/kept-state.ts'
import {
  openQuery,
  type QueryOptions,
  type SessionOptions,
  type SessionVariables,
  setVariables,
  type VariableValue,
  versionOf,
  withAsOf,
} from './query/lake.ts'
import {
  clipMoment,
  decisionsIn,
  type FunctionOptions,
  type GivenRows,
  proveAnswering,
} from './trust/lookahead/function.ts'
import { wholeLake, withoutAsOf } from './trust/lookahead/world.ts'
import { type Note, noteTexts } from './query/note-texts.ts'
import { knowledgeOptions, type Moment, pointsOptions } from './query/options.ts'
import { type Panel, specOf } from './query/panel.ts'
import type { PointsFilter } from './query/points.ts'
import { type AskedQuestion, judgeQuestion } from './query/question.ts'
import { readOptions, readVariables, refuseStrange, findUnusedNames } from './query/read-options.ts'
import { runCancellable, type RunDeps } from './query/run.ts'
import {
  combinationsOf,
  returnsIn,
  sweepFailure,
  type SweepGrid,
  type SweepParameters,
  sweepRows,
  sweepSql,
  sweepText,
  type SweepTry,
} from './trust/results/sweep.ts'
import { stress as stressQuery, type Stressed } from './trust/results/stress.ts'
import { type DelaySpec, quantiles, type SeenLags } from './trust/results/stress-delays.ts'
import { sourceOfQuery, sourceOfStamp } from './trust/results/stress-source.ts'
import { withVintages } from './trust/results/stress-stamp.ts'
import { seenLags } from './trust/availability-audit.ts'

export { LakeError } from './base/errors.ts'
export { rows } from './query/rows.ts'
export type { FunctionOptions, Given, GivenRows as Rows } from './trust/lookahead/function.ts'
export type { Parameters } from './lake/store/sql.ts'
export type { Explained } from './trust/results/explain-change.ts'
export type { Calendar, Join, Resample, Windowed } from './query/join-queries.ts'
export type { LookaheadProof as Proof } from './trust/lookahead/lookahead.ts'
export type { DatedTable } from './trust/dating/dating.ts'
export type { WhenOptions } from './trust/dating/options.ts'
export type { Replayed, Stamped } from './trust/results/stamp.ts'
export type { QueryOptions, VariableValue as Setting } from './query/lake.ts'
export type { Note } from './query/note-texts.ts'
export type { Decision, Instant, Moment } from './query/options.ts'
export type { Panel } from './query/panel.ts'
export type { PointsFilter } from './query/points.ts'
export type { Stressed } from './trust/results/stress.ts'
export type { SweepGrid, SweepParameters, SweepValue } from './trust/results/sweep.ts'

/** Options of every call. */
export interface CallOptions {
  /** Cancels the call, which then fails with a LakeError of kind `stopped`. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Lake that is open for reading, at one version and in one state of knowledge.
 *
 * A lake runs its calls one after the other. Open it twice to run them side by side. Each answer is an Arrow table.
 */
export interface Lake {
  /**
   * Runs SQL on the views and macros of the lake.
   *
   * You may make temporary tables. Writing, and files outside the lake, are refused.
   *
   * @param query One or several statements.
   * @param parameters Values of `$1` as a list, or of `$name` as an object.
   * @param options `signal` cancels the call.
   * @returns The rows of the last statement.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const found = await lake.sql('SELECT $asset AS asset, CAST($n AS BIGINT) AS n', { asset: 'BTC', n: 9007199254740993n })
   * console.log(String(found.get(0))) // → {"asset": "BTC", "n": 9007199254740993}
   * await lake.close()
   * ```
   */
  sql(query: string, parameters?: Parameters, options?: CallOptions): Promise<Table>
  /**
   * Reads stored points, as known at `as_of`.
   *
   * @param filter Series and range; see `PointsFilter`.
   * @param options `signal` cancels the call.
   * @returns A row for each point, sorted by series and `t`, with the columns of the view `points`.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const table = await lake.points({
   *   metrics: 'supply/current_pit',
   *   assets: ['BTC'],
   *   interval: '24h',
   *   currency: 'native',
   *   since: '2024-01-10',
   *   until: '2024-01-13',
   * })
   * console.log([...(table.getChild('v') ?? [])].join(' ')) // → 19588887.5 19589793.75 19590731.25
   * await lake.close()
   * ```
   */
  points(filter: PointsFilter, options?: CallOptions): Promise<Table>
  /**
   * Looks up metric values as known at each decision time.
   *
   * Each cell is the latest value that was knowable at `ts`. Your own fields come back next to them, in your order.
   *
   * @param panel Decisions and metrics; see `Panel`.
   * @param options `signal` cancels the call.
   * @returns A row for each decision, and a column for each metric.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const calendar = { since: '2024-01-10', until: '2024-01-12', step: '1d' }
   * const panel = await lake.panel({ calendar, assets: ['BTC'], metrics: { active: 'addresses/active_count_pit' } })
   * console.log(rows<{ active: number }>(panel).map(({ active }) => active)) // → [ 852142, 775551 ]
   * await lake.close()
   * ```
   */
  panel(panel: Panel, options?: CallOptions): Promise<Table>
  /**
   * Looks up one metric, with its timestamps, as known at each decision time.
   *
   * @param join Decisions and metric; see `Join`.
   * @param options `signal` cancels the call.
   * @returns A row for each decision, with `t, available_at, v, o, age` of the newest point that was knowable at `ts`.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const decisions = [{ asset: 'BTC', ts: '2024-01-10T00:15:00Z' }]
   * const joined = await lake.pitJoin({ decisions, metric: 'addresses/active_count_pit' })
   * console.log(rows<{ t: Date; v: number }>(joined).map(({ t, v }) => `${t.toISOString()} ${v}`)) // → [ '2024-01-09T00:00:00.000Z 775551' ]
   * await lake.close()
   * ```
   */
  pitJoin(join: Join, options?: CallOptions): Promise<Table>
  /**
   * Looks up the last `n` points of a metric as known at each decision time.
   *
   * @param join Decisions, metric and number of points; see `Windowed`.
   * @param options `signal` cancels the call.
   * @returns A row for each point of each decision, with `t, available_at, v, o, age, nth`. `nth` 1 is the newest.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const decisions = [{ asset: 'BTC', ts: '2024-01-10T00:15:00Z' }]
   * const window = await lake.window({ decisions, metric: 'addresses/active_count_pit', n: 3 })
   * console.log(rows<{ v: number }>(window).map(({ v }) => v)) // → [ 775551, 852142, 862145 ]
   * await lake.close()
   * ```
   */
  window(join: Windowed, options?: CallOptions): Promise<Table>
  /**
   * Computes a metric on a coarser interval. A coarse point is known when the latest of its parts is known.
   *
   * @param resample Metric, intervals and aggregate; see `Resample`.
   * @param options `signal` cancels the call.
   * @returns A row for each coarse point, with the dimensions and `t, available_at, parts, complete, v`.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const weeks = await lake.resample({
   *   metric: 'addresses/active_count_pit',
   *   fromInterval: '24h',
   *   toInterval: '1w',
   *   agg: 'sum',
   *   assets: ['BTC'],
   *   since: '2024-01-01',
   *   until: '2024-01-15',
   * })
   * console.log(rows<{ parts: bigint; v: number }>(weeks).map(({ parts, v }) => `${parts} parts: ${v}`)) // → [ '7 parts: 5755487', '7 parts: 5752631' ]
   * await lake.close()
   * ```
   */
  resample(resample: Resample, options?: CallOptions): Promise<Table>
  /**
   * Makes a grid of decision times, UTC.
   *
   * @param calendar Range, step and assets; see `Calendar`.
   * @param options `signal` cancels the call.
   * @returns The column `ts`, with assets also `asset`.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const days = await lake.calendar({ since: '2024-01-31', until: '2024-04-01', step: '1 month' })
   * console.log(rows<{ ts: Date }>(days).map(({ ts }) => ts.getUTCDate())) // → [ 31, 29, 31 ]
   * await lake.close()
   * ```
   */
  calendar(calendar: Calendar, options?: CallOptions): Promise<Table>
  /**
   * Reads every known version of the records of a registry resource.
   *
   * @param resource Name of the resource, such as `products`.
   * @param options `signal` cancels the call.
   * @returns A row for each version of each record, with `valid_from` and `valid_to`.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const versions = await lake.history('products')
   * console.log(versions.schema.names.slice(0, 3)) // → [ 'id', 'valid_from', 'valid_to' ]
   * await lake.close()
   * ```
   */
  history(resource: string, options?: CallOptions): Promise<Table>
  /**
   * Reads the catalogue.
   *
   * @param options `signal` cancels the call.
   * @returns A row for each metric, with its allowed values, defaults and availability rule.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const metrics = rows<{ metric: string; default_interval: string }>(await lake.metrics())
   * console.log(metrics.find(({ metric }) => metric === 'supply/current_pit')?.default_interval) // → 24h
   * await lake.close()
   * ```
   */
  metrics(options?: CallOptions): Promise<Table>
  /**
   * Reads which lake this is, what it contains and what is wrong with it.
   *
   * @param options `signal` cancels the call.
   * @returns One row, with `lake, version, committed_at, provider, synthetic, folder, series, points,
   * last_available_at, failed_windows, gaps, violations, registry_since`.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const [status] = rows<{ synthetic: boolean }>(await lake.status())
   * console.log(status?.synthetic) // → true
   * await lake.close()
   * ```
   */
  status(options?: CallOptions): Promise<Table>
  /**
   * Runs a query and records everything that its result depends on, as `pitlake stamp` does.
   *
   * @param query SQL.
   * @param out Parquet file for the result.
   * @param options `signal` cancels the call.
   * @returns The document that `pitlake stamp --json` prints.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * console.log((await lake.stamp('SELECT count(*) AS n FROM points', 'count.parquet')).rows) // → 1
   * await lake.close()
   * ```
   */
  stamp(query: string, out: string, options?: CallOptions): Promise<Stamped>
  /**
   * Runs a stamped result again and compares the rows bit for bit, as `pitlake replay` does.
   *
   * @param file Parquet file that `stamp` wrote.
   * @param options `signal` cancels the call.
   * @returns The document that `pitlake replay --json` prints. `same` is true if every row is the same.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * await lake.stamp("SELECT max(v) AS most FROM points WHERE metric = 'supply/current_pit'", 'most.parquet')
   * console.log((await lake.replay('most.parquet')).same) // → true
   * await lake.close()
   * ```
   */
  replay(file: string, options?: CallOptions): Promise<Replayed>
  /**
   * Tests whether a query looks ahead, as `pitlake lookahead` does.
   *
   * @param query SQL.
   * @param options Columns and files; see `LookaheadOptions`.
   * @returns The document that `pitlake lookahead --json` prints, with the `verdict` clean, leak or undecided.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const query = "SELECT asset, available_at AS ts, v FROM points WHERE metric = 'supply/current_pit' AND asset = 'BTC'"
   * console.log((await lake.lookahead(query)).verdict) // → clean
   * await lake.close()
   * ```
   */
  lookahead(query: string, options?: CallOptions & LookaheadOptions): Promise<LookaheadProof>
  /**
   * Tries a query with each combination of parameters, and estimates how much of the best result is chance.
   *
   * pitlake first records every try in the lake, as `pitlake preregister` does. Then it runs all of them on the version
   * that this lake has open. A certificate of one of them shows how many tries there were.
   *
   * @param query Function that takes the parameters and returns SQL.
   * @param grid Values of each parameter, as lists.
   * @param options Column of the returns and periods in a year; see `SweepOptions`.
   * @returns A row for each combination: the parameters, then `observations, sharpe, deflated_sharpe, tries,
   * query_sha256`. `tries` counts all tries that the lake has recorded. `deflated_sharpe` is the probability that the
   * true Sharpe ratio is above the one that the best of so many tries has by chance.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const momentum = ({ days }: SweepParameters) =>
   *   `SELECT t AS ts, v / lag(v, ${days}) OVER (ORDER BY t) - 1 AS ret FROM points
   *    WHERE metric = 'supply/current_pit' AND asset = 'BTC' AND currency = 'native' AND "interval" = '24h'`
   * const table = await lake.sweep(momentum, { days: [1, 2] })
   * console.log(rows<{ days: number }>(table).map(({ days }) => days)) // → [ 1, 2 ]
   * await lake.close()
   * ```
   */
  sweep(query: (parameters: SweepParameters) => string, grid: SweepGrid, options?: SweepOptions): Promise<Table>
  /**
   * Finds the time from whose knowledge a table comes, as `pitlake when` does.
   *
   * The whole lake is searched, whatever the `as_of` of this one.
   *
   * @param file CSV or Parquet file with the table.
   * @param options What the columns are, and a claimed time; see `WhenOptions`.
   * @param call `signal` cancels the call.
   * @returns The document that `pitlake when --json` prints: the ranges of `as_of` and `observed_as_of` in which the lake
   * answers every cell, and the first cells that contradict.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const query = `SELECT metric, asset, "interval", currency, t, v FROM points
   *   WHERE metric = 'supply/current_pit' AND asset = 'BTC' AND "interval" = '24h'`
   * await lake.stamp(query, 'supply.parquet')
   * console.log((await lake.when('supply.parquet')).verdict) // → dated
   * await lake.close()
   * ```
   */
  when(file: string, options?: WhenOptions, call?: CallOptions): Promise<DatedTable>
  /**
   * Absolute path of the lake.
   *
   * @example
   * ```ts
   * const lake = await openLake('data')
   * console.log(lake.folder.endsWith('data')) // → true
   * await lake.close()
   * ```
   */
  readonly folder: string
  /**
   * Reads the version at which every answer stands.
   *
   * @returns The number of the commit.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * console.log((await lake.version()) === (await lake.refresh())) // → true
   * await lake.close()
   * ```
   */
  version(): Promise<number>
  /**
   * Moves the lake to its newest version.
   *
   * @returns The version at which the lake now stands.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * console.log((await lake.refresh()) === (await lake.version())) // → true
   * await lake.close()
   * ```
   */
  refresh(): Promise<number>
  /**
   * Reads the tokenized products as known at one time.
   *
   * @param at Time of the state of knowledge. Default: the `as_of` of the lake.
   * @param options `signal` cancels the call.
   * @returns A row for each product, with issuer, asset, deployments and status.
   * @example
   * ```ts
   * const lake = await openLake('data')
   * const products = await lake.universe()
   * console.log(products.schema.names.slice(0, 3)) // → [ 'product_id', 'name', 'symbol' ]
   * await lake.close()
   * ```
   */
  universe(at?: Moment, options?: CallOptions): Promise<Table>
  /**
   * Notes about the last answer.
   *
   * A note explains why the answer may be empty, what you may have meant, and how many decisions are unresolved.
   *
   * @example
   * ```ts
   * const lake = await openLake('data')
   * await lake.points({ metrics: 'supply/curent_pit' })
   * console.log(lake.notes.length) // → 1
   * await lake.close()
   * ```
   */
  readonly notes: readonly string[]
  /**
   * Closes the lake after the calls that are running. Later calls are refused.
   *
   * @example
   * ```ts
   * const lake = await openLake('data')
   * await lake.close()
   * ```
   */
  close(): Promise<void>
}

/** Options of `lake.lookahead`. */
export interface LookaheadOptions {
  /** Column with the time of each row. Default: `ts`. */
  readonly ts?: string
  /** Columns that may look ahead, such as the target of a model. */
  readonly labels?: readonly string[]
  /** Number of times at which the lake is cut. Default: 50; if the plan proves the query clean, 5. */
  readonly cutoffs?: number
  /**
   * Files of your own by the names under which the query reads them. Rows with `available_at` are known from then on; a
   * date counts from the end of its day.
   */
  readonly own?: Readonly<Record<string, string>> | undefined
}

/** Options of `lake.sweep`. */
export interface SweepOptions extends CallOptions {
  /** Column of the query with the returns of the strategy, one in each period. NULL is left out. Default: `ret`. */
  readonly returns?: string
  /** Number of periods in a year, to annualise the Sharpe ratio. Default: 365, for daily returns. */
  readonly periods?: number
}

/** Options of `openLake`. */
export interface LakeOptions extends QueryOptions {
  /**
   * Memory of the process for this lake, such as `1GB`: half for DuckDB, half for the tables that it returns. At least
   * `384MB`. Default: a quarter of the machine's.
   */
  readonly memory?: string | undefined
}

/**
 * Opens the lake in a folder for reading.
 *
 * The lake keeps one version and one state of knowledge, so answers do not change while jobs write.
 *
 * @param folder Folder of the lake.
 * @param lakeOptions State of knowledge and limits; see `LakeOptions`.
 * @returns The open lake.
 * @example
 * ```ts
 * const lake = await openLake('data', { asOf: '2024-03-01' })
 * const counted = await lake.sql(`SELECT count(*) AS points, max(available_at) AS last FROM points
 *   WHERE metric = 'addresses/active_count_pit' AND asset = 'BTC' AND "interval" = '24h'`)
 * console.log(counted.get(0)?.points) // → 1882n
 * console.log(new Date(counted.get(0)?.last).toISOString()) // → 2024-02-29T00:07:53.000Z
 * await lake.close()
 * ```
 */
export async function openLake(folder: string, lakeOptions: LakeOptions = {}): Promise<Lake> {
  const path = resolve(folder)
  const { set: given = {}, threads, memory, ...knowledge } = lakeOptions
  const set = readVariables(given)
  const bytes = memory === undefined ? ownMemory() : kinds.size.read('memory', memory)
  requireMemory(leastMemory, bytes, 'memory')
  const memoryLimit = engineMemory(1 / 2, bytes)
  const options = { ...readOptions(knowledgeOptions, knowledge, 'typescript'), set, threads, memoryLimit }
  const engine = await openQuery(path, options)
  return lakeOn({
    path,
    memory: memory === undefined ? undefined : bytes,
    options,
    engine,
    notes: [],
    waiting: Object.keys(set),
  })
}

const seats = new WeakMap<Lake, Seat>()

/**
 * Returns the notes about the last answer of a lake as data.
 *
 * @param lake Lake that gave the answer.
 * @returns The notes; empty if there are none.
 * @example
 * ```ts
 * const lake = await openLake('data')
 * await lake.points({ metrics: 'supply/curent_pit' })
 * console.log(noted(lake).map(({ code, near }) => `${code}: ${near?.[0]}`)) // → [ 'unknown-metric: supply/current_pit' ]
 * await lake.close()
 * ```
 */
export function noted(lake: Lake): readonly Note[] {
  return seats.get(lake)?.notes ?? []
}

/** The calls on an open session. */
function lakeOn(seat: Seat): Lake {
  const { path } = seat
  // They share a connection.
  const inTurn = pLimit(1)
  const call: Call = async (work, { signal } = {}) =>
    inTurn(async () => {
      refuseClosed(seat)
      seat.notes = []
      return await work({ folder: path, door: 'typescript', signal, sleep: setTimeout })
    })
  const lake: Lake = {
    folder: path,
    get notes() {
      return noteTexts(seat.notes, 'typescript')
    },
    ...questions(seat, call),
    ...commands(seat),
    sweep: async (query, grid, { signal, ...options } = {}) =>
      call(async (run) => sweep(seat, query, grid, options, run), { signal }),
    version: async () => call(async () => versionOf(seat.engine)),
    refresh: async () => call(async () => refreshed(seat)),
    close: async () =>
      inTurn(async () => {
        seat.closed = true
        seat.engine.close()
      }),
  }
  seats.set(lake, seat)
  return lake
}

function refuseClosed({ closed }: Seat): void {
  if (closed === true) throw usage('lake', { expected: 'an open one', got: 'a closed one', next: 'openLake opens it' })
}

/** Does one piece of work after those before it. */
type Call = <T>(work: (run: RunDeps) => Promise<T>, options?: CallOptions) => Promise<T>

/** What is answered on the session. */
function questions(seat: Seat, call: Call) {
  const askAt = (what: () => AskedQuestion, callOptions?: CallOptions, at?: Moment) =>
    call(async (run) => {
      const question = what()
      return at === undefined
        ? ask(seat, question, run)
        : withAsOf(seat.engine, at, async () => ask(seat, question, run), 'at')
    }, callOptions)
  const sql = (text: string): AskedQuestion => ({ sql: text, generated: true })
  return {
    sql: async (query, parameters, call) => askAt(() => ({ sql: query, parameters }), call),
    points: async (points, call) =>
      askAt(() => ({ points: readOptions(pointsOptions, { ...points }, 'typescript') }), call),
    panel: async (panel, call) => askAt(() => ({ panel: specOf(panel) }), call),
    pitJoin: async (join, call) => askAt(() => ({ join: joinSpec(join), n: undefined }), call),
    window: async ({ n, ...join }, call) => askAt(() => ({ join: joinSpec(join), n }), call),
    resample: async (resampling, call) => askAt(() => sql(resampleSql(resampling)), call),
    calendar: async (grid, call) => askAt(() => sql(calendarSql(grid)), call),
    universe: async (at, call) => askAt(() => sql('SELECT * FROM universe ORDER BY product_id'), call, at),
    history: async (resource, call) => askAt(() => sql(historySql(resource)), call),
    metrics: async (call) => askAt(() => sql(metricsSql), call),
    status: async (call) => askAt(() => sql(statusSql), call),
  } satisfies Partial<Lake>
}

/** Loads the functions behind the commands. */
async function libraryOf(seat: Seat) {
  refuseClosed(seat)
  return await import('./interfaces/commands/library.ts')
}

function callerOf({ path, memory }: Seat, signal = new AbortController().signal): LibraryCaller {
  const sleep: LibraryCaller['sleep'] = async (ms, call) =>
    setTimeout(ms, undefined, call === undefined ? {} : { signal: call }).catch(() => undefined)
  return { folder: path, memory, signal, sleep }
}

/** Records the tries of a sweep, runs them and answers with their statistics. */
async function sweep(
  seat: Seat,
  query: (parameters: SweepParameters) => string,
  grid: SweepGrid,
  { returns = 'ret', periods = 365 }: SweepOptions,
  run: RunDeps,
): Promise<Table> {
  const tries = combinationsOf(grid).map((parameters) => ({ parameters, text: sweepText(query(parameters)) }))
  const texts = tries.map(({ text }) => text)
  const recorded = await (await libraryOf(seat)).preregisterFor(callerOf(seat, run.signal), texts)
  const measured: SweepTry[] = []
  for (const attempt of tries) measured.push({ ...attempt, returns: await returnsOf(seat, attempt, returns, run) })
  seat.notes = []
  return await ask(seat, { sql: sweepSql(sweepRows(measured, recorded, periods)), generated: true }, run)
}

/** Reads the returns of one try, in a session of its own: scripts may make tables of the same name. */
async function returnsOf(seat: Seat, attempt: Omit<SweepTry, 'returns'>, name: string, run: RunDeps) {
  try {
    using engine = await seat.engine.session()
    await setVariables(engine, seat.options)
    return returnsIn(await ask({ ...seat, engine }, { sql: attempt.text }, run), name)
  } catch (error) {
    throw error instanceof LakeError ? sweepFailure(attempt.parameters, error) : error
  }
}

/** What commands do, done by the same functions in this process. */
function commands(seat: Seat): Pick<Lake, 'stamp' | 'replay' | 'lookahead' | 'when'> {
  const { options } = seat
  const library = async () => libraryOf(seat)
  const caller = (signal?: AbortSignal): LibraryCaller => callerOf(seat, signal)
  const variables = variablesOf(options)
  return {
    stamp: async (query, out, { signal } = {}) => {
      const request = { query, out, variables: { ...variables, ...momentsOf(options) } }
      return await (await library()).stampFor(caller(signal), request)
    },
    replay: async (file, { signal } = {}) => await (await library()).replayFor(caller(signal), file),
    lookahead: async (query, { signal, ts = 'ts', labels = [], cutoffs, own: files = {} } = {}) => {
      const trial = { query, variables: { ...variables, ...momentsOf(options) }, ts, labels, cutoffs, files }
      return await (await library()).lookaheadFor(caller(signal), trial)
    },
    when: async (file, options = {}, { signal } = {}) => await (await library()).whenFor(caller(signal), file, options),
  }
}

/** Session variables of a lake, without its moments. */
function variablesOf({ backfill, registryBackfill, set }: QueryOptions): SessionVariables {
  return { ...(backfill && { backfill }), ...(registryBackfill && { registry_backfill: true }), ...set }
}

/** Moments of the state of knowledge of a lake, as session variables. */
function momentsOf({ asOf, observedAsOf }: QueryOptions): SessionVariables {
  const text = (moment: Moment): string => (moment instanceof Date ? moment.toISOString() : moment)
  return {
    ...(asOf !== undefined && { as_of: text(asOf) }),
    ...(observedAsOf !== undefined && { observed_as_of: text(observedAsOf) }),
  }
}

async function refreshed(seat: Seat): Promise<number> {
  const engine = await openQuery(seat.path, seat.options)
  seat.engine.close()
  seat.engine = engine
  return versionOf(engine)
}

/**
 * Explains why a stamped result changed, as `pitlake explain-change` does.
 *
 * @param folder Folder of the lake.
 * @param from Parquet file that `stamp` wrote.
 * @param to Stamped result of the same query to compare with. Default: the query on the lake as it is now.
 * @param options `tries` is the most runs to find the causes of the first changed row, 300 by default; `onRun` is
 * called for each; `signal` cancels the call.
 * @returns The document that `pitlake explain-change --json` prints: the commit and the points that changed the first
 * row.
 * @example
 * ```ts
 * const lake = await openLake('data')
 * await lake.stamp("SELECT min(v) AS least FROM points WHERE metric = 'supply/current_pit'", 'least.parquet')
 * console.log((await explainChange('data', 'least.parquet')).verdict) // → same
 * await lake.close()
 * ```
 */
export async function explainChange(
  folder: string,
  from: string,
  to: string | null = null,
  options: CallOptions & Pick<ExplainInput, 'tries' | 'onRun'> = {},
): Promise<Explained> {
  const { signal, ...question } = options
  return await explain({ ...question, root: resolve(folder), from, to }, { signal, sleep: setTimeout })
}

/** Options of `stress`. */
export interface StressOptions extends Partial<DelaySpec>, CallOptions {
  /** SQL of one number over the table `result`, which contains the rows of the query. */
  readonly statistic: string
  /** Session variables, also `as_of` and `observed_as_of`. */
  readonly set?: Readonly<Record<string, VariableValue>> | undefined
  /** Number of earlier versions of the lake to try. Default: 3. */
  readonly vintages?: number | undefined
  /** Catalogue files in addition to the built-in one. */
  readonly catalogs?: readonly string[] | undefined
}

/**
 * Measures how far a statistic moves if points are known later, as `pitlake stress` does.
 *
 * @param folder Folder of the lake.
 * @param query SQL, or the file URL of a stamped result.
 * @param options Statistic and delays; see `StressOptions`.
 * @returns The document that `pitlake stress --json` prints. `verdict` is holds, falls, leak or undecided.
 * @example
 * ```ts
 * const query = "SELECT asset, available_at AS ts, v FROM points WHERE metric = 'supply/current_pit' AND asset = 'BTC'"
 * const stressed = await stress('data', query, { statistic: 'SELECT avg(v) FROM result', lags: [1800] })
 * console.log(stressed.verdict) // → holds
 * ```
 */
export async function stress(folder: string, query: string | URL, options: StressOptions): Promise<Stressed> {
  const {
    statistic,
    lags = [...quantiles, 1800, 3600],
    latencies = [],
    within = 0.5,
    vintages = 3,
    set = {},
    ts = 'ts',
    labels = [],
  } = options
  using ledger = await Ledger.openToRead(resolve(folder))
  const source = await (query instanceof URL
    ? sourceOfStamp(ledger, fileURLToPath(query))
    : sourceOfQuery(ledger, query, readVariables(set)))
  const catalogue = withOwn(loadCatalogue([...(options.catalogs ?? [])]), ledger)
  const seen = async (metrics: readonly string[]): Promise<readonly SeenLags[]> => seenLags(ledger, catalogue, metrics)
  const run = { folder: ledger.root, signal: options.signal, sleep: setTimeout }
  return await stressQuery(
    withVintages(ledger, source, vintages),
    { statistic, lags, latencies, within, ts, labels, seen },
    run,
  )
}

/**
 * Tests whether a function looks ahead.
 *
 * pitlake runs the function on the lake and on the lake cut at many times. It also runs it on lakes whose later points
 * are missing or have different values. If a row whose `ts` is at or before the cut differs, it used the future. The
 * verdict contains the notes of its answers; in the function `lake.notes` is empty.
 *
 * @param work Function that takes a lake and returns rows with `ts`: an Arrow table or objects.
 * @param folder Folder of the lake.
 * @param options Columns, cuts, variables and your own data; see `FunctionOptions`.
 * @returns The verdict, with the rows that used the future.
 * @example
 * ```ts
 * const calendar = { since: '2024-01-10', until: '2024-01-12', step: '1d' }
 * const honest = (lake: Lake) => lake.panel({ calendar, assets: ['BTC'], metrics: ['supply/current_pit'] })
 * console.log((await lookahead(honest, 'data', { cutoffs: 3 })).verdict) // → clean
 * ```
 */
export async function lookahead(
  work: (lake: Lake) => Promise<GivenRows> | GivenRows,
  folder: string,
  options: FunctionOptions & CallOptions = {},
): Promise<LookaheadProof> {
  const path = resolve(folder)
  const set = withoutAsOf(readVariables(options.set ?? {}))
  return await proveAnswering(path, work.toString(), options, async (session, world) => {
    const notes: string[] = []
    const onNotes = (some: readonly Note[]): void => void notes.push(...noteTexts(some, 'typescript'))
    const queries: string[] = []
    const onAsked = (sql: string): void => void queries.push(sql)
    // What only another world lacks says nothing of the lake.
    const isSilent = world !== wholeLake
    const lake = lakeOn({ path, options: { set }, engine: session, notes: [], waiting: [], onNotes, onAsked, isSilent })
    const universe: Lake['universe'] = async (at, call) => lake.universe(clipMoment(at, world), call)
    const ended = <T extends { readonly decisions?: unknown }>(question: T): T =>
      Array.isArray(question.decisions) ? { ...question, decisions: decisionsIn(question.decisions, world) } : question
    const panel: Lake['panel'] = async (question, call) => lake.panel(ended(question), call)
    const pitJoin: Lake['pitJoin'] = async (question, call) => lake.pitJoin(ended(question), call)
    const window: Lake['window'] = async (question, call) => lake.window(ended(question), call)
    const inWorld = { universe, panel, pitJoin, window, refresh: lake.version }
    return { rows: await work(Object.assign(Object.create(lake) as Lake, inWorld)), notes, asked: queries }
  })
}

/** What the calls on one lake share. */
interface Seat {
  readonly path: string
  /** Most bytes that the process may take, if the caller said so. */
  readonly memory?: number | undefined
  readonly options: SessionOptions
  engine: Engine
  notes: readonly Note[]
  /**
   * Hears the notes of every answer. The lake itself then has none: a function under look-ahead would see others in
   * each world, and its rows must not differ by that.
   */
  readonly onNotes?: (notes: readonly Note[]) => void
  /** Hears the text of every question, as SQL. */
  readonly onAsked?: (sql: string) => void
  /** Whether nobody reads the notes of its answers. */
  readonly isSilent?: boolean
  closed?: true
  /** Variables that were set and for which no query has asked yet. */
  waiting: readonly string[]
}

/** Whether a caller's SQL in a question may change a session variable, or what a query finds there. */
function mayMoveState(question: AskedQuestion): boolean {
  const spec = 'panel' in question ? question.panel : 'join' in question ? question.join : question
  const texts: readonly unknown[] = Object.values(spec)
  return texts.some((text) => typeof text === 'string' && /\b(?:SET|RESET|CREATE|DROP)\b/i.test(text))
}

/** Answers a question in the state of knowledge of the lake. */
async function ask(seat: Seat, question: AskedQuestion, run: RunDeps): Promise<Table> {
  if (!mayMoveState(question)) return await askInState(seat, question, run)
  return await keepingState(seat.engine, async (check) => askInState(seat, question, { ...run, after: check }))
}

/** Judges a question, holds its answer as a table and keeps what there is to note. */
async function askInState(seat: Seat, question: AskedQuestion, run: RunDeps): Promise<Table> {
  const { engine } = seat
  seat.waiting = await findUnusedNames(engine, seat.waiting, 'sql' in question ? question.sql : '')
  refuseStrange(seat.waiting)
  const judging = { ...run, withoutNotes: seat.isSilent === true }
  const { ready, parameters, by, notes, doubts, drop } = await judgeQuestion(question, engine, judging)
  seat.onAsked?.(ready.text)
  const answer = async (): Promise<Table> => {
    const filled = new Filled(
      ready.columns.map(({ name }) => name),
      by,
    )
    const table = await runCancellable(engine, ready.text, run, async () =>
      arrowTable(engine, ready.text, filled, parameters),
    )
    const noted = [...notes, ...(await doubts({ rows: table.numRows, empty: filled.empty() }))]
    if (seat.onNotes === undefined) seat.notes = noted
    else seat.onNotes(noted)
    return table
  }
  return await withCleanup(answer, drop)
}
