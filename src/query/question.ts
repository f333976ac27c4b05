import { cleanUpAfterError } from '../base/cleanup.ts'
import { usage } from '../base/errors.ts'
import { type Engine, quoteName } from '../lake/store/engine.ts'
import type { Parameters } from '../lake/store/sql.ts'
import {
  type AskedNotes,
  type QueryNotes,
  asOfIn,
  doubtsOfFilter,
  doubtsOfPanel,
  type Extent,
  membersIn,
  notesOf,
  noticingSql,
} from './answer-notes.ts'
import { Filled } from './filled-columns.ts'
import { type Ready, refuseManyParts } from './gate.ts'
import { joinCallSql } from './join-queries.ts'
import { distinctNotes, type Note } from './note-texts.ts'
import type { knowledgeOptions, ReadOptions } from './options.ts'
import { inBlocks } from './panel-blocks.ts'
import { bringDecisions, type DecisionsSql, type PanelSpec, panelSql, registryColumns } from './panel.ts'
import { type PointsFilter, pointsSql, standardsOf } from './points.ts'
import { lagOfViews } from './views/current.ts'
import { type Lag, lagOfMirror } from '../lake/ledger/derived.ts'
import { mirrorOf } from '../lake/store/marker.ts'
import { runCancellable, runScript, type RunDeps } from './run.ts'
import { parsedSql } from './parse-tree.ts'
import { openingWords } from './statements.ts'
import { judgeCondition } from './universe-condition.ts'

/** State of knowledge in which a question is answered. */
export type Knowledge = ReadOptions<typeof knowledgeOptions>

/** Question as a plain value, identical at every interface. */
export type AskedQuestion = SqlQuestion | PanelQuestion | JoinQuestion | PointsQuestion

/** A question in SQL. */
export interface SqlQuestion {
  /** One statement, or a script whose last statement is answered. */
  readonly sql: string
  /** Values of the placeholders in the SQL. */
  readonly parameters?: Parameters | undefined
  /** Whether the program wrote the SQL. */
  readonly generated?: boolean
  /** Condition on the view `universe` that a caller wrote and that is part of the SQL. */
  readonly condition?: string | undefined
}

/** A question for a panel: decisions × metrics. */
export interface PanelQuestion {
  readonly panel: PanelSpec
}

/** A question for one metric at each decision. */
export interface JoinQuestion {
  /** A panel with one metric. */
  readonly join: PanelSpec
  /** Number of newest points for each decision; undefined: the newest point with its instants. */
  readonly n: number | string | undefined
}

/** A question for stored points. */
export interface PointsQuestion {
  readonly points: PointsFilter
}

/** Question with its state of knowledge. */
export type Question = AskedQuestion & { readonly knowledge: Knowledge }

/** A question that passed the checks and may run; its answer consists of the rows of its statement and of its notes. */
export interface JudgedQuestion {
  /** SQL that runs: in any session on the lake it returns the same. */
  readonly sql: string
  readonly ready: Ready
  readonly parameters: Parameters | undefined
  /** The column with the asset of each row. */
  readonly by: string | undefined
  /** Notes to show before the answer. */
  readonly notes: readonly Note[]
  /** Computes the notes to show after the answer, once its size is known. */
  readonly doubts: (extent: Extent) => Promise<readonly Note[]>
  /** Takes back what it made in the session, where others ask after it. */
  readonly drop: () => Promise<void>
}

/** Judges a question in a session with its state of knowledge; `run` limits how far its words may reach. */
export async function judgeQuestion(
  question: AskedQuestion | Question,
  engine: Engine,
  run: RunDeps,
): Promise<JudgedQuestion> {
  // The session knows its `as_of`: a server with a limit sets it although the question names none.
  const notices = { engine, run, cut: run.mark !== undefined && (await asOfIn(engine)) !== null }
  if ('panel' in question) return await judgeDecided(question, (table) => panelSql(question.panel, table), notices)
  if ('join' in question)
    return await judgeDecided(question, (table) => joinCallSql(question.join, question.n, table), notices, 't')
  if ('points' in question) {
    const standards = await standardsOf(engine)
    const sql = pointsSql(question.points, standards)
    const ready = await runScript(engine, sql, { ...run, generated: true })
    if (run.withoutNotes) return withoutNotes({ sql, ready, parameters: undefined, by: undefined })
    const doubts = async ({ rows }: Extent) => (rows === 0 ? doubtsOfFilter(question.points, standards) : {})
    return await noticing({ sql, ready, parameters: undefined, by: undefined }, notices, { notes: {}, doubts })
  }
  const { sql, parameters, generated = false, condition } = question
  if (run.mark !== undefined) refuseManyParts(sql)
  if (condition !== undefined) await judgeCondition(engine, condition, run, 'condition')
  const tree = run.mark === undefined ? undefined : await parsedSql(engine, sql)
  // A client that may name only views sends one SELECT.
  if (tree && 'error' in tree && tree.error !== 'parser')
    throw usage('SQL', { expected: 'one SELECT', got: openingWords(sql, 1)[0] ?? 'nothing' })
  const ready = await runScript(engine, sql, { ...run, generated }, parameters)
  const what = { sql: ready.text, ready, parameters, by: undefined }
  if (run.withoutNotes) return withoutNotes(what)
  return await noticing(
    what,
    notices,
    await noticingSql(engine, sql, ready.kind === 'SELECT' ? ready.columns.length : 0, run, parameters),
  )
}

/** Context for notes: where `as_of` is mandatory (`cut`), they show nothing that came later. */
interface Notices {
  readonly engine: Engine
  readonly run: RunDeps
  readonly cut: boolean
}

/** Computes the notes of a query that is answered elsewhere: its rows stand in a table of the session. */
export async function notesOfSql(engine: Engine, sql: string, run: RunDeps, table?: string): Promise<readonly Note[]> {
  const { columns, chunks } = table === undefined ? { columns: [], chunks: [] } : await engine.vectors(`FROM ${table}`)
  const filled = new Filled(columns.map(({ name }) => name))
  for await (const chunk of chunks) filled.addChunk(chunk)
  const { notes, doubts } = await noticingSql(engine, sql, columns.length, run)
  const late = table === undefined ? {} : await doubts({ rows: filled.rows, empty: filled.empty() })
  return distinctNotes([...(await notesOf(engine, notes, false)), ...(await notesOf(engine, late, false))])
}

/**
 * Judges a question about decisions: a table of them is made under an unused name, and the query reads it. `found` is
 * the column that shows whether a metric was found, if metrics have no such column each.
 */
async function judgeDecided(
  question: PanelQuestion | JoinQuestion,
  sqlOver: (table: string) => DecisionsSql,
  notices: Notices,
  foundColumn?: string,
): Promise<JudgedQuestion> {
  const { engine, run } = notices
  const spec = 'panel' in question ? question.panel : question.join
  const table = await freeName(engine, 'decisions')
  const { decisions, query } = sqlOver(table)
  const createdTables = [table]
  const drop = async (): Promise<void> => {
    for (const name of createdTables) await engine.run(`DROP TABLE IF EXISTS temp.${quoteName(name)}`)
  }
  try {
    await bringDecisions(engine, spec, table, run)
    const scriptAnswer = await runScript(engine, query, { ...run, generated: true })
    const ready =
      ('panel' in question && (await inBlocks({ engine, spec, table, made: createdTables }, run))) || scriptAnswer
    const what = { sql: `${decisions};\n${query}`, ready, parameters: undefined, by: 'asset' }
    if (run.withoutNotes) return { ...withoutNotes(what), drop }
    const noticed = await noticingSql(engine, query, 0, run)
    const columns = registryColumns(spec)
    const reading = [
      ...(spec.universe === undefined ? [] : ['pit_universe']),
      ...(columns.length > 0 ? ['pit_registry'] : []),
    ]
    const tables = (await asOfIn(engine)) === null ? [] : reading
    const [unknown] = await engine.rows<{ n: bigint }>(`SELECT count(*) AS n FROM ${quoteName(table)} WHERE ts IS NULL`)
    const last = `SELECT CAST(max(ts) AS VARCHAR) AS at FROM ${quoteName(table)}`
    const doubts = async ({ rows, empty }: Extent): Promise<AskedNotes> =>
      rows > 0 && empty.length > 0
        ? doubtsOfPanel(spec, empty, (await engine.rows<{ at: string | null }>(last))[0]?.at ?? null, foundColumn)
        : {}
    const judged = await noticing(what, notices, {
      notes: { ...noticed.notes, tables, without_instant: Number(unknown?.n ?? 0) },
      doubts,
    })
    const noMembers = async (universe: string): Promise<readonly Note[]> => [
      { code: 'no-member', subject: universe },
      ...(await notesOf(engine, await membersIn(engine, universe), notices.cut)),
    ]
    const late = async (extent: Extent): Promise<readonly Note[]> => {
      if (extent.rows > 0 || spec.universe === undefined) {
        const empty = columns.filter((name) =>
          extent.empty.some(({ column, everywhere }) => everywhere && column === name),
        )
        return [...(await judged.doubts(extent)), ...(await columnNotes(engine, spec, table, empty))]
      }
      return distinctNotes([...judged.notes, ...(await noMembers(spec.universe))]).slice(judged.notes.length)
    }
    return { ...judged, doubts: late, drop }
  } catch (error) {
    await cleanUpAfterError(drop)
    throw error
  }
}

/**
 * Notes on registry columns that are NULL in all rows of an answer: how much is known of them, or which assets are
 * linked.
 */
async function columnNotes(
  engine: Engine,
  { universe }: PanelSpec,
  table: string,
  empty: readonly string[],
): Promise<readonly Note[]> {
  if (empty.length === 0) return []
  const valuesOfView = async (value: string, view: string): Promise<readonly string[]> => {
    const sql =
      `SELECT DISTINCT CAST(${value} AS VARCHAR) AS value FROM ${view} WHERE ${value} IS NOT NULL ORDER BY ALL ` +
      'LIMIT 6'
    return (await engine.rows<{ value: string }>(sql)).map((row) => row.value)
  }
  const noted = (code: 'no-link' | 'no-registry-column', subject: string, names: readonly string[]): Note => ({
    code,
    subject,
    ...(names.length > 0 && { there: names }),
  })
  const askedSql = `SELECT asset AS asset, ts FROM ${quoteName(table)}`
  const found =
    `WITH _pit_listed AS (${askedSql}) SELECT 1 AS linked FROM pit_registry('_pit_listed') WHERE product_id IS ` +
    'NOT NULL LIMIT 1'
  const isLinked = universe !== undefined || (await engine.rows(found)).length > 0
  if (!isLinked)
    return [
      noted(
        'no-link',
        empty.join(', '),
        await valuesOfView('metric_asset', '(FROM links WHERE product_id IS NOT NULL)'),
      ),
    ]
  return await Promise.all(
    empty.map(async (name) => noted('no-registry-column', name, await valuesOfView(name, 'universe'))),
  )
}

/** Question that may run, without its notes. */
type ReadyQuestion = Pick<JudgedQuestion, 'sql' | 'ready' | 'parameters' | 'by'>

/** Wraps a question whose notes are not read. */
function withoutNotes(what: ReadyQuestion): JudgedQuestion {
  return { ...what, notes: [], doubts: async () => [], drop: async () => undefined }
}

/** Adds notes to a question. */
async function noticing(
  what: ReadyQuestion,
  { engine, run, cut }: Notices,
  { notes: early, doubts }: QueryNotes,
): Promise<JudgedQuestion> {
  const ask = async (notesAsked: AskedNotes): Promise<readonly Note[]> =>
    distinctNotes(await notesOf(engine, notesAsked, cut))
  // With a mandatory instant later versions are not reported.
  const behind = cut ? [] : await behindNotes(run.folder)
  const notes = [...behind, ...(await runCancellable(engine, what.sql, run, async () => ask(early)))]
  const late = async (extent: Extent): Promise<readonly Note[]> =>
    distinctNotes([...notes, ...(await ask(await doubts(extent)))]).slice(notes.length)
  const drop = async (): Promise<void> => undefined
  return {
    ...what,
    notes,
    doubts: async (extent) => await runCancellable(engine, what.sql, run, async () => late(extent)),
    drop,
  }
}

/**
 * Notes that the views in place are older than the lake, or a mirror than its source. A session that keeps an earlier
 * version on purpose gets none.
 */
async function behindNotes(folder: string): Promise<readonly Note[]> {
  const figuresOf = ({ thing, lake }: Lag) => ({ made: thing.version ?? 'no known number', newest: lake.newest })
  const views = await lagOfViews(folder)
  const mirror = await lagOfMirror(folder)
  const source = (await mirrorOf(folder)) ?? ''
  return [
    ...(views === null
      ? []
      : [{ code: 'views-behind', subject: views.thing.name, figures: figuresOf(views) } as const]),
    ...(mirror === null ? [] : [{ code: 'mirror-behind', subject: source, figures: figuresOf(mirror) } as const]),
  ]
}

/** Finds a name that no table or view of the session has. */
async function freeName(engine: Engine, stem: string): Promise<string> {
  const rows = await engine.rows<{ name: string }>(
    'SELECT table_name AS name FROM system.main.duckdb_tables() UNION ALL SELECT view_name FROM ' +
      'system.main.duckdb_views()',
  )
  const takenNames = new Set(rows.map(({ name }) => name.toLowerCase()))
  for (let n = 0; ; n++) {
    const name = n === 0 ? stem : `${stem}${n}`
    if (!takenNames.has(name)) return name
  }
}
