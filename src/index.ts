import { setTimeout } from 'node:timers/promises'
import { resolve } from 'node:path'
import type { Table } from 'apache-arrow'
import { type Engine, quoteName } from './store/engine.ts'
import type { Parameters } from './store/parameters.ts'
import { arrowTable, look } from './query/arrow.ts'
import { type Explained, explainChange as explain, type ExplainInput } from './query/explain-change.ts'
import { doubtsOfFilter, doubtsOfPanel, doubtsOfQuery, isDoubtful } from './query/doubts.ts'
import { type Empty, Filled } from './query/filled.ts'
import { type Moment, openQuery, type QueryOptions, setMoment } from './query/lake.ts'
import { notesOn } from './query/notes.ts'
import { checkDecisions, type Panel, panelSql, specOf } from './query/panel.ts'
import { pointsSql, type PointsFilter, standardsOf } from './query/points.ts'
import { guarded, runScript, type RunDeps } from './query/run.ts'
import { ownNames, refuseStrange, unasked } from './query/variables.ts'

export { LakeError } from './errors.ts'
export type { Parameters } from './store/parameters.ts'
export type { Explained } from './query/explain-change.ts'
export type { Moment, QueryOptions, Setting } from './query/lake.ts'
export type { Decision, Instant, Panel, PanelField } from './query/panel.ts'
export type { PointsFilter } from './query/points.ts'

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
  /** Products with issuer, asset, deployments and status, as known at `at`, else at the `as_of` of the lake. */
  universe(at?: Moment, options?: CallOptions): Promise<Table>
  /** What should be known of the last answer although it was not asked: why it may hold nothing, and what may have been meant. */
  readonly notes: readonly string[]
  /** Lets go of the lake; calls that are under way come to their end first. */
  close(): Promise<void>
}

/**
 * Opens the lake in a folder, in the state of knowledge that the options name. It keeps the snapshot that it opened:
 * fetches and compactions that happen meanwhile do not change its answers.
 */
export async function openLake(folder: string, options: QueryOptions = {}): Promise<Lake> {
  const path = resolve(folder)
  const engine = await openQuery(path, options)
  const seat: Seat = { engine, notes: [], waiting: ownNames(Object.keys(options.set ?? {})) }
  const inTurn = turns()
  const call = async <T>(work: (run: RunDeps) => Promise<T>, { signal }: CallOptions = {}): Promise<T> =>
    inTurn(async () => {
      seat.notes = []
      return await work({ folder: path, signal, sleep: setTimeout })
    })
  return {
    sql: async (query, parameters, own) => call(async (run) => askSql(seat, query, parameters, run), own),
    points: async (filter, own) => call(async (run) => askPoints(seat, filter, run), own),
    panel: async (panel, own) => call(async (run) => askPanel(seat, panel, run), own),
    universe: async (at, own) => call(async (run) => askUniverse(seat, at, run), own),
    get notes() {
      return seat.notes
    },
    close: async () => inTurn(async () => engine.close()),
  }
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

/** What the calls on one lake share. */
interface Seat {
  readonly engine: Engine
  notes: readonly string[]
  /** Variables that were set and for which no query has asked yet. */
  waiting: readonly string[]
}

async function ask(seat: Seat, sql: string, parameters: Parameters | undefined, run: RunDeps): Promise<Table> {
  const { engine } = seat
  seat.waiting = await unasked(engine, seat.waiting, sql)
  refuseStrange(seat.waiting)
  const ready = await runScript(engine, sql, run, parameters)
  return guarded(engine, ready.text, run, async () => arrowTable(engine, ready.text, parameters))
}

/** Which columns of an answer hold nothing. */
function emptyIn(table: Table, by?: string): readonly Empty[] {
  const filled = new Filled(
    table.schema.fields.map(({ name }) => name),
    by,
  )
  for (const batch of table.batches) look(filled, batch)
  return filled.empty()
}

async function askSql(seat: Seat, sql: string, parameters: Parameters | undefined, run: RunDeps): Promise<Table> {
  const table = await ask(seat, sql, parameters, run)
  const { engine } = seat
  seat.notes = await guarded(engine, sql, run, async () => [
    ...(await notesOn(engine, sql)),
    ...(table.numCols > 0 && isDoubtful(table.numRows, emptyIn(table)) ? await doubtsOfQuery(engine, sql) : []),
  ])
  return table
}

async function askPoints(seat: Seat, filter: PointsFilter, run: RunDeps): Promise<Table> {
  const { engine } = seat
  const sql = pointsSql(filter, await standardsOf(engine))
  const table = await ask(seat, sql, undefined, { ...run, generated: true })
  if (table.numRows === 0) seat.notes = await guarded(engine, sql, run, async () => doubtsOfFilter(engine, filter))
  return table
}

/** The table of the decisions has a name of its own and does not outlive the call. */
async function askPanel(seat: Seat, panel: Panel, run: RunDeps): Promise<Table> {
  const { engine } = seat
  const table = await freeName(engine, '_pit_panel')
  const spec = specOf(panel)
  const { decisions, query } = panelSql(spec, table)
  await checkDecisions(engine, spec, run)
  try {
    const answer = await ask(seat, `${decisions};\n${query}`, undefined, { ...run, generated: true })
    seat.notes = await guarded(engine, query, run, async () =>
      doubtsOfPanel(engine, spec, { rows: answer.numRows, empty: emptyIn(answer, 'asset') }),
    )
    return answer
  } finally {
    await engine.run(`DROP TABLE IF EXISTS temp.${quoteName(table)}`)
  }
}

/** A name that no table and no view of the session bears. */
async function freeName(engine: Engine, stem: string): Promise<string> {
  const rows = await engine.rows<{ name: string }>(
    'SELECT table_name AS name FROM system.main.duckdb_tables() UNION ALL SELECT view_name FROM system.main.duckdb_views()',
  )
  const taken = new Set(rows.map(({ name }) => name.toLowerCase()))
  for (let n = 0; ; n++) if (!taken.has(`${stem}${n}`)) return `${stem}${n}`
}

async function askUniverse(seat: Seat, at: Moment | undefined, run: RunDeps): Promise<Table> {
  const { engine } = seat
  const sql = 'SELECT * FROM universe ORDER BY product_id'
  if (at === undefined) return askSql(seat, sql, undefined, run)
  await engine.run(`SET VARIABLE as_of_before = getvariable('as_of')`)
  try {
    await setMoment(engine, 'as_of', at)
    return await askSql(seat, sql, undefined, run)
  } finally {
    await engine.run(`SET VARIABLE as_of = getvariable('as_of_before')`)
  }
}

/** Does one piece of work after the other: they share a connection. */
function turns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return async (work) => {
    const mine = last.then(work)
    last = mine.catch(() => undefined)
    return mine
  }
}
