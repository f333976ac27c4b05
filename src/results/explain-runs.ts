import type { Micros } from '../time.ts'
import { type Engine, quote, quoteName } from '../store/engine.ts'
import { instantSql } from '../views/template.ts'
import { closing, openQuery, setVariables } from '../query/lake.ts'
import { bringKept, keptRows, type PinnedQuery, runStamped, sameRows } from './stamped.ts'
import type { RunDeps } from '../query/run.ts'
import { columnsOf } from '../store/parquet.ts'

/** A query that is run again and again over one text of the views. */
export interface Asked extends Pick<PinnedQuery, 'root' | 'script' | 'query' | 'variables'> {
  /** Makes tables that the text reads, before it is read. */
  readonly before?: (engine: Engine) => Promise<void>
}

/** The rows that one run gave; they are there until it is disposed of. */
export interface Outcome extends Disposable {
  readonly session: Engine
  readonly rows: number
  /** Digest of the rows in their order. */
  readonly result: string
}

/** One text of the views, opened; the lake as it stood at any instant is asked through it. */
export interface Standpoint extends Disposable {
  readonly engine: Engine
  /** Runs the query on what the lake held at the instant; what the query itself sets reaches no further. */
  readonly at: (instant: Micros) => Promise<Outcome>
}

/** Opens a text of the views on one thread, so that sums repeat. */
export async function openStandpoint(
  { root, script, query, variables, before }: Asked,
  run: Omit<RunDeps, 'folder'>,
): Promise<Standpoint> {
  const engine = await openQuery(root, { script, threads: 1, anyVariable: true, query, ...(before && { before }) })
  const at = async (instant: Micros): Promise<Outcome> => {
    const session = await engine.session()
    return closing(session, async () => {
      await setVariables(session, { set: variables })
      await holdTo(session, instant)
      const after = async (own: Engine): Promise<void> => await holdTo(own, instant)
      const made = await runStamped(session, query, { ...run, folder: root, after })
      return { session, ...made, [Symbol.dispose]: () => session.close() }
    })
  }
  return { engine, at, [Symbol.dispose]: () => engine.close() }
}

/** No session sees more than the lake held at the instant, whatever it has asked for. */
async function holdTo(session: Engine, instant: Micros): Promise<void> {
  await session.run(
    `SET VARIABLE observed_as_of = least(${instantSql('observed_as_of')}, make_timestamptz(${instant}::BIGINT))`,
  )
}

/** Whether two runs gave the same rows; those that an ORDER BY leaves equal may stand in another order. */
export async function isSame(a: Outcome, b: Outcome): Promise<boolean> {
  if (a.result === b.result) return true
  if (a.rows !== b.rows) return false
  await bringKept(a.session, b.session)
  return await sameRows(b.session)
}

/** A row as texts that tell every bit of its values. */
type Line = readonly (string | null)[]

/** The first row in which two results differ. */
export interface FirstRow {
  /** Counted from 1. */
  readonly row: number
  /** The column that differs first; null where one side has no such row. */
  readonly column: string | null
  /** The value of that column before and after, or the whole row. */
  readonly from: string | null
  readonly to: string | null
  readonly lines: { readonly before: Line | null; readonly after: Line | null }
}

/** The first row that one of two runs gave more often than the other; undefined where there is none. */
export async function firstRow(before: Outcome, after: Outcome): Promise<FirstRow | undefined> {
  await bringKept(before.session, after.session)
  const names = (await columnsOf(after.session, keptRows.own)).map(({ name }) => name)
  const [found] = await after.session.rows<{ place: bigint; was: Line | null; now: Line | null }>(
    `WITH own AS (${linesOf(keptRows.own, names)}), other AS (${linesOf(keptRows.brought, names)}),
     more AS (SELECT line FROM (SELECT line, 1 AS n FROM own UNION ALL SELECT line, -1 FROM other) GROUP BY line HAVING sum(n) <> 0)
     SELECT place, was.line AS was, now.line AS now
     FROM (SELECT own.place, own.line FROM own SEMI JOIN more USING (line)) AS now
     FULL JOIN (SELECT other.place, other.line FROM other SEMI JOIN more USING (line)) AS was USING (place)
     ORDER BY place LIMIT 1`,
  )
  if (found === undefined) return undefined
  const { was, now } = found
  const at = was && now ? names.findIndex((_, n) => was[n] !== now[n]) : -1
  const differingText = (line: Line | null): string | null =>
    line === null
      ? null
      : at === -1
        ? names.map((name, n) => `${name}=${line[n] ?? 'NULL'}`).join(' ')
        : (line[at] ?? null)
  return {
    row: Number(found.place),
    column: names[at] ?? null,
    from: differingText(was),
    to: differingText(now),
    lines: { before: was, after: now },
  }
}

function linesOf(table: string, names: readonly string[]): string {
  return `SELECT row_number() OVER () AS place, ${lineSql(names)} AS line FROM ${table}`
}

function lineSql(names: readonly string[]): string {
  return `[${names.map((name) => `CAST(${quoteName(name)} AS VARCHAR)`).join(', ')}]`
}

/** How often a run gave the rows of a difference, as one text. */
export async function countOf({ session }: Outcome, { lines }: FirstRow): Promise<string> {
  const names = (await columnsOf(session, keptRows.own)).map(({ name }) => name)
  const counts = [lines.before, lines.after].map((line) =>
    line === null ? '0' : `count(*) FILTER (line = ${literalOf(line)})`,
  )
  const [row] = await session.rows<{ told: string }>(
    `SELECT concat_ws(' ', ${counts.join(', ')}) AS told FROM (SELECT ${lineSql(names)} AS line FROM ${keptRows.own})`,
  )
  return row?.told ?? ''
}

function literalOf(line: Line): string {
  return `CAST([${line.map((value) => (value === null ? 'NULL' : quote(value))).join(', ')}] AS VARCHAR[])`
}
