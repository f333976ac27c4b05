import { columnsOf } from '../store/parquet.ts'
import { quote, quoteName } from '../store/engine.ts'
import { type Outcome } from './explain-runs.ts'
import { bringKept, keptRows } from './stamped.ts'

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
