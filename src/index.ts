import { setTimeout } from 'node:timers/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Table } from 'apache-arrow'
import pLimit from 'p-limit'
import { ownMemory } from './interfaces/cli/memory.ts'
import type { LibraryCaller } from './interfaces/commands/library.ts'
import { usage } from './base/errors.ts'
import { kinds } from './base/option-kinds.ts'
import type { Engine } from './lake/store/engine.ts'
import { engineMemory, leastMemory, requireMemory } from './lake/store/memory.ts'
import type { Parameters } from './lake/store/sql.ts'
import { loadCatalogue } from './catalog/load.ts'
import { withOwn } from './sources/points/own-rows.ts'
import { Ledger } from './lake/ledger/ledger.ts'
import { arrowTable } from './query/arrow.ts'
import type { LookaheadProof } from './trust/lookahead/lookahead.ts'
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
import {
  openQuery,
  type QueryOptions,
  type SessionVariables,
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
import { wholeLake } from './trust/lookahead/world.ts'
import { type Note, noteTexts } from './query/note-texts.ts'
import { knowledgeOptions, type Moment, pointsOptions } from './query/options.ts'
import { type Panel, specOf } from './query/panel.ts'
import type { PointsFilter } from './query/points.ts'
import { type AskedQuestion, judgeQuestion } from './query/question.ts'
import { readOptions, refuseStrange, unasked } from './query/read-options.ts'
import { guarded, type RunDeps } from './query/run.ts'
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
export type { Replayed, Stamped } from './trust/results/stamp.ts'
export type { QueryOptions, VariableValue as Setting } from './query/lake.ts'
export type { Note } from './query/note-texts.ts'
export type { Decision, Instant, Moment } from './query/options.ts'
export type { Panel } from './query/panel.ts'
export type { PointsFilter } from './query/points.ts'
export type { Stressed } from './trust/results/stress.ts'

/** What a single call may carry. */
export interface CallOptions {
  /** Cancels the query; the call fails with a LakeError of kind `stopped`. */
  readonly signal?: AbortSignal | undefined
}

/** A lake that is open for reading; calls are answered one after the other, each as a typed Arrow table. */
export interface Lake {
  /** Runs SQL and gives the result of its last statement; `$1` and `$name` take parameters. */
  sql(query: string, parameters?: Parameters, options?: CallOptions): Promise<Table>
  /** Points as known at `as_of`, sorted by metric, asset, dimensions and t. */
  points(filter: PointsFilter, options?: CallOptions): Promise<Table>
  /** A row for each decision in their order, a column for each metric: the latest value knowable at `ts`. */
  panel(panel: Panel, options?: CallOptions): Promise<Table>
  /** Each decision with `t, available_at, v, o, age` of the point of a metric that was knowable at `ts`. */
  pitJoin(join: Join, options?: CallOptions): Promise<Table>
  /** Each decision with the last `n` points that were knowable at `ts`, a row each; `nth` 1 is the newest. */
  window(join: Windowed, options?: CallOptions): Promise<Table>
  /** A metric on a coarser interval; a coarse point is known when the last of its parts is. */
  resample(resample: Resample, options?: CallOptions): Promise<Table>
  /** A grid of decisions, UTC. */
  calendar(calendar: Calendar, options?: CallOptions): Promise<Table>
  /** Every version ever known of the records of a registry resource, such as `products`. */
  history(resource: string, options?: CallOptions): Promise<Table>
  /** The catalogue: every metric with its value sets, defaults and availability rule. */
  metrics(options?: CallOptions): Promise<Table>
  /** One row: which lake and version this is, what it holds, and what is wrong with it. */
  status(options?: CallOptions): Promise<Table>
  /** Runs a query and pins everything that its result, the Parquet file `out`, was made from; as the command does. */
  stamp(query: string, out: string, options?: CallOptions): Promise<Stamped>
  /** Runs a stamped result again, and says whether it is the same bit for bit. */
  replay(file: string, options?: CallOptions): Promise<Replayed>
  /** Proves or disproves that a query looks ahead. */
  lookahead(query: string, options?: CallOptions & LookaheadOptions): Promise<LookaheadProof>
  /** Where the lake is. */
  readonly folder: string
  /** The version at which every answer stands. */
  version(): Promise<number>
  /** Moves on to the newest version, and says which that is. */
  refresh(): Promise<number>
  /** Products with issuer, asset, deployments and status, as known at `at`, else at the `as_of` of the lake. */
  universe(at?: Moment, options?: CallOptions): Promise<Table>
  /** What should be known of the last answer although it was not asked: why it may hold nothing, and what may have been meant. */
  readonly notes: readonly string[]
  /** Lets go of the lake; calls that are under way come to their end first. */
  close(): Promise<void>
}

/** What a look for look-ahead is told. */
export interface LookaheadOptions {
  /** The column with the instant of each row: `ts`. */
  readonly ts?: string
  /** Columns that may look ahead: what a model is to learn. */
  readonly labels?: readonly string[]
  /** How many times the query runs without a part of the future: 50, and 5 where its plan proves it. */
  readonly cutoffs?: number
  /** Files of one's own by the names under which the query reads them. */
  readonly own?: Readonly<Record<string, string>> | undefined
}

/** How a lake is opened. */
export interface LakeOptions extends QueryOptions {
  /** What the process may hold with this lake, such as `1GB`: half for the engine, half for the tables that it gives. */
  readonly memory?: string | undefined
}

/**
 * Opens the lake in a folder, in the state of knowledge that the options name. It keeps the snapshot that it opened:
 * fetches and compactions that happen meanwhile do not change its answers.
 */
export async function openLake(folder: string, given: LakeOptions = {}): Promise<Lake> {
  const path = resolve(folder)
  const { set, threads, memory, ...own } = given
  const bytes = memory === undefined ? ownMemory() : kinds.size.read('memory', memory)
  requireMemory(leastMemory, bytes, 'memory')
  const { memoryLimit = engineMemory(1 / 2, bytes), ...knowledge } = own
  const options = { ...readOptions(knowledgeOptions, knowledge, 'typescript'), set, threads, memoryLimit }
  const engine = await openQuery(path, options)
  return lakeOn({
    path,
    memory: memory === undefined ? undefined : bytes,
    options,
    engine,
    notes: [],
    waiting: Object.keys(set ?? {}),
  })
}

const seats = new WeakMap<Lake, Seat>()

/** What there is to note of the last answer of a lake, as data: what each is about, its figures, what may have been meant. */
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
  const asked = (what: () => AskedQuestion, own?: CallOptions, at?: Moment) =>
    call(async (run) => {
      const question = what()
      return at === undefined
        ? ask(seat, question, run)
        : withAsOf(seat.engine, at, async () => ask(seat, question, run), 'at')
    }, own)
  const sql = (text: string): AskedQuestion => ({ sql: text, generated: true })
  return {
    sql: async (query, parameters, own) => asked(() => ({ sql: query, parameters }), own),
    points: async (points, own) => asked(() => ({ points: readOptions(pointsOptions, points, 'typescript') }), own),
    panel: async (panel, own) => asked(() => ({ panel: specOf(panel) }), own),
    pitJoin: async (join, own) => asked(() => ({ join: joinSpec(join), n: undefined }), own),
    window: async ({ n, ...join }, own) => asked(() => ({ join: joinSpec(join), n }), own),
    resample: async (given, own) => asked(() => sql(resampleSql(given)), own),
    calendar: async (grid, own) => asked(() => sql(calendarSql(grid)), own),
    universe: async (at, own) => asked(() => sql('SELECT * FROM universe ORDER BY product_id'), own, at),
    history: async (resource, own) => asked(() => sql(historySql(resource)), own),
    metrics: async (own) => asked(() => sql(metricsSql), own),
    status: async (own) => asked(() => sql(statusSql), own),
  } satisfies Partial<Lake>
}

/** What commands do, done by the same functions in this process. */
function commands(seat: Seat): Pick<Lake, 'stamp' | 'replay' | 'lookahead'> {
  const { path, memory, options } = seat
  const library = async () => {
    refuseClosed(seat)
    return await import('./interfaces/commands/library.ts')
  }
  const caller = (signal = new AbortController().signal): LibraryCaller => ({
    folder: path,
    memory,
    signal,
    sleep: async (ms, own) =>
      setTimeout(ms, undefined, own === undefined ? {} : { signal: own }).catch(() => undefined),
  })
  const variables = variablesOf(options)
  return {
    stamp: async (query, out, { signal } = {}) => {
      const request = { query, out, variables: { ...variables, ...momentsOf(options) } }
      return await (await library()).stampFor(caller(signal), request)
    },
    replay: async (file, { signal } = {}) => await (await library()).replayFor(caller(signal), file),
    lookahead: async (query, { signal, ts = 'ts', labels = [], cutoffs, own: files = {} } = {}) => {
      const trial = { query, variables, ts, labels, cutoffs, files }
      return await (await library()).lookaheadFor(caller(signal), trial)
    },
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
 * Why a stamped result is not the same as another one, or as the same query on the lake as it stands: the commit that
 * changed it, and the points or records that make the first row that differs.
 */
export async function explainChange(
  folder: string,
  from: string,
  to: string | null = null,
  { signal, ...own }: CallOptions & Pick<ExplainInput, 'tries' | 'onRun'> = {},
): Promise<Explained> {
  return await explain({ ...own, root: resolve(folder), from, to }, { signal, sleep: setTimeout })
}

/** What `stress` is to try. */
export interface StressOptions extends Partial<DelaySpec>, CallOptions {
  /** SQL of one number over the table `result`, which holds the rows of the query. */
  readonly figure: string
  /** Session variables; `as_of` and `observed_as_of` among them. */
  readonly set?: Readonly<Record<string, VariableValue>> | undefined
  /** How many earlier versions to try (3). */
  readonly vintages?: number | undefined
  /** Catalogue files beside the built-in one. */
  readonly catalogs?: readonly string[] | undefined
}

/**
 * How far a figure over the rows of a query moves when points are known later, and which metric moves it. `query` is SQL,
 * or the path of a stamped result as a file URL.
 */
export async function stress(folder: string, query: string | URL, options: StressOptions): Promise<Stressed> {
  const {
    figure,
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
    : sourceOfQuery(ledger, query, set))
  const catalogue = withOwn(loadCatalogue([...(options.catalogs ?? [])]), ledger)
  const seen = async (metrics: readonly string[]): Promise<readonly SeenLags[]> => seenLags(ledger, catalogue, metrics)
  const run = { folder: ledger.root, signal: options.signal, sleep: setTimeout }
  return await stressQuery(
    withVintages(ledger, source, vintages),
    { figure, lags, latencies, within, ts, labels, seen },
    run,
  )
}

/**
 * Proves or disproves that a function looks ahead: it gets a lake, as it is, cut, and with another future, and gives rows with
 * an instant each, an Arrow table or objects.
 */
export async function lookahead(
  work: (lake: Lake) => Promise<GivenRows> | GivenRows,
  folder: string,
  options: FunctionOptions & CallOptions = {},
): Promise<LookaheadProof> {
  const path = resolve(folder)
  return await proveAnswering(path, work.toString(), options, async (session, world) => {
    const notes: string[] = []
    const onNotes = (some: readonly Note[]): void => void notes.push(...noteTexts(some, 'typescript'))
    const asked: string[] = []
    const onAsked = (sql: string): void => void asked.push(sql)
    // What only another world lacks says nothing of the lake.
    const isSilent = world !== wholeLake
    const lake = lakeOn({ path, options: {}, engine: session, notes: [], waiting: [], onNotes, onAsked, isSilent })
    const universe: Lake['universe'] = async (at, own) => lake.universe(clipMoment(at, world), own)
    const ended = <T extends { readonly decisions?: unknown }>(given: T): T =>
      Array.isArray(given.decisions) ? { ...given, decisions: decisionsIn(given.decisions, world) } : given
    const panel: Lake['panel'] = async (given, own) => lake.panel(ended(given), own)
    const pitJoin: Lake['pitJoin'] = async (given, own) => lake.pitJoin(ended(given), own)
    const window: Lake['window'] = async (given, own) => lake.window(ended(given), own)
    const inWorld = { universe, panel, pitJoin, window, refresh: lake.version }
    return { rows: await work(Object.assign(Object.create(lake) as Lake, inWorld)), notes, asked }
  })
}

/** What the calls on one lake share. */
interface Seat {
  readonly path: string
  /** Most bytes that the process may take, if the caller said so. */
  readonly memory?: number | undefined
  readonly options: QueryOptions
  engine: Engine
  notes: readonly Note[]
  /** Hears the notes of every answer. */
  readonly onNotes?: (notes: readonly Note[]) => void
  /** Hears the text of every question, as SQL. */
  readonly onAsked?: (sql: string) => void
  /** Whether nobody reads the notes of its answers. */
  readonly isSilent?: boolean
  closed?: true
  /** Variables that were set and for which no query has asked yet. */
  waiting: readonly string[]
}

/** Judges a question, holds its answer as a table and keeps what there is to note. */
async function ask(seat: Seat, asked: AskedQuestion, run: RunDeps): Promise<Table> {
  const { engine } = seat
  seat.waiting = await unasked(engine, seat.waiting, 'sql' in asked ? asked.sql : '')
  refuseStrange(seat.waiting)
  const judging = { ...run, withoutNotes: seat.isSilent === true }
  const { ready, parameters, by, notes, doubts, drop } = await judgeQuestion(asked, engine, judging)
  seat.onAsked?.(ready.text)
  try {
    const filled = new Filled(
      ready.columns.map(({ name }) => name),
      by,
    )
    const table = await guarded(engine, ready.text, run, async () => arrowTable(engine, ready.text, filled, parameters))
    seat.notes = [...notes, ...(await doubts({ rows: table.numRows, empty: filled.empty() }))]
    seat.onNotes?.(seat.notes)
    return table
  } finally {
    await drop()
  }
}
