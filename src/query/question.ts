import { usage } from '../errors.ts'
import { type Engine, quoteName } from '../store/engine.ts'
import type { Parameters } from '../store/parameters.ts'
import { doubtsOfFilter, doubtsOfPanel, doubtsOfQuery, isDoubtful } from './doubts.ts'
import type { Empty } from './filled.ts'
import type { Ready } from './gate.ts'
import { joinSql } from './joined.ts'
import { distinctNotes, type Note } from './note.ts'
import { notesOn } from './notes.ts'
import type { knowledgeOptions, ReadOptions } from './options.ts'
import { bringDecisions, type PanelSpec, type PanelSql, panelSql } from './panel.ts'
import { type PointsFilter, pointsSql, standardsOf } from './points.ts'
import { guarded, runScript, type RunDeps } from './run.ts'
import { openingWords } from './statements.ts'
import { parsed } from './tree.ts'

/** The state of knowledge in which something is asked. */
export type Knowledge = ReadOptions<typeof knowledgeOptions>

/** What somebody asks, as a plain value: the same at every door. */
export type Asked =
  | {
      readonly sql: string
      readonly parameters?: Parameters | undefined /** Written by the program. */
      readonly generated?: boolean
    }
  | { readonly panel: PanelSpec }
  /** One metric with the instants behind it, or its last `n` points. */
  | { readonly join: PanelSpec; readonly n: number | undefined }
  | { readonly points: PointsFilter }

/** What is asked, and what may be known for the answer. */
export type Question = Asked & { readonly knowledge: Knowledge }

/** How much an answer told. */
export interface Extent {
  readonly rows: number
  readonly empty: readonly Empty[]
}

/** A question that was judged: it may run, and its answer is what its statement gives and what its notes tell. */
export interface Judged {
  /** The SQL that runs: in any session on the lake it gives the same. */
  readonly sql: string
  readonly ready: Ready
  readonly parameters: Parameters | undefined
  /** The column with the asset of each row. */
  readonly by: string | undefined
  /** What is to be said before the answer. */
  readonly notes: readonly Note[]
  /** What is to be said behind it, once it is known how much it tells. */
  readonly doubts: (told: Extent) => Promise<readonly Note[]>
  /** Takes back what it made in the session, where others ask after it. */
  readonly drop: () => Promise<void>
}

/** Judges a question in a session that stands in its state of knowledge; `run` says how far its words may reach. */
export async function judge(
  asked: Asked & { readonly knowledge?: Knowledge },
  engine: Engine,
  run: RunDeps,
): Promise<Judged> {
  const made = await judgeAsked(asked, engine, run)
  // Doubts look past `as_of`: whoever may name nothing but views is told none where it is set.
  const isCut = run.mark !== undefined && asked.knowledge?.asOf !== undefined
  return isCut ? { ...made, doubts: async () => [] } : made
}

async function judgeAsked(asked: Asked, engine: Engine, run: RunDeps): Promise<Judged> {
  if ('panel' in asked) return await judgeDecided(asked.panel, (table) => panelSql(asked.panel, table), engine, run)
  if ('join' in asked) return await judgeJoin(asked, engine, run)
  if ('points' in asked) {
    const sql = pointsSql(asked.points, await standardsOf(engine))
    const ready = await runScript(engine, sql, { ...run, generated: true })
    const doubts = async ({ rows }: Extent) => (rows === 0 ? await doubtsOfFilter(engine, asked.points) : [])
    return { ...judged(engine, sql, ready, run, doubts), by: undefined }
  }
  const { sql, parameters, generated = false } = asked
  if (run.mark !== undefined) await refuseScript(engine, sql)
  const ready = await runScript(engine, sql, { ...run, generated }, parameters)
  const doubts = async ({ rows, empty }: Extent) =>
    ready.kind === 'SELECT' && isDoubtful(rows, empty) ? await doubtsOfQuery(engine, sql) : []
  const notes = await guarded(engine, sql, run, async () => notesOn(engine, sql))
  return { ...judged(engine, ready.text, ready, run, doubts), parameters, notes }
}

/** A join: what is empty is told as that of its metric. */
async function judgeJoin(
  { join, n }: Extract<Asked, { join: PanelSpec }>,
  engine: Engine,
  run: RunDeps,
): Promise<Judged> {
  const made = await judgeDecided(join, (table) => joinSql(join, n, table), engine, run)
  return {
    ...made,
    doubts: async ({ rows, empty }) => {
      const column = join.metrics[0]?.name ?? ''
      return await made.doubts({
        rows,
        empty: empty.flatMap((one) => (one.column === 't' ? [{ ...one, column }] : [])),
      })
    },
  }
}

/** What is asked about decisions: a table of them is made under a name that nobody took, and the query stands over it. */
async function judgeDecided(
  spec: PanelSpec,
  sqlOver: (table: string) => PanelSql,
  engine: Engine,
  run: RunDeps,
): Promise<Judged> {
  const table = await freeName(engine, 'decisions')
  const { decisions, query } = sqlOver(table)
  const drop = async (): Promise<void> => void (await engine.run(`DROP TABLE IF EXISTS temp.${quoteName(table)}`))
  try {
    await bringDecisions(engine, spec, table, run)
    const ready = await runScript(engine, query, { ...run, generated: true })
    const doubts = async (told: Extent) => await doubtsOfPanel(engine, spec, told)
    return { ...judged(engine, `${decisions};\n${query}`, ready, run, doubts), by: 'asset', drop }
  } catch (error) {
    await drop()
    throw error
  }
}

/** What every question that was judged has. */
function judged(engine: Engine, sql: string, ready: Ready, run: RunDeps, doubts: Judged['doubts']): Judged {
  return {
    sql,
    ready,
    parameters: undefined,
    by: undefined,
    notes: [],
    doubts: async (told) => await guarded(engine, sql, run, async () => distinctNotes(await doubts(told))),
    drop: async () => undefined,
  }
}

/** Whoever may name nothing but views asks one SELECT. */
async function refuseScript(engine: Engine, sql: string): Promise<void> {
  const tree = await parsed(engine, sql)
  if ('error' in tree && tree.error !== 'parser')
    throw usage('SQL', { expected: 'one SELECT', got: openingWords(sql, 1)[0] ?? 'nothing' })
}

/** A name that no table and no view of the session bears. */
async function freeName(engine: Engine, stem: string): Promise<string> {
  const rows = await engine.rows<{ name: string }>(
    'SELECT table_name AS name FROM system.main.duckdb_tables() UNION ALL SELECT view_name FROM system.main.duckdb_views()',
  )
  const taken = new Set(rows.map(({ name }) => name.toLowerCase()))
  for (let n = 0; ; n++) {
    const name = n === 0 ? stem : `${stem}${n}`
    if (!taken.has(name)) return name
  }
}
