import { createHash } from 'node:crypto'
import { z } from 'zod'
import { columnsOf } from '../../lake/store/parquet.ts'
import { Engine, quote, quoteName, quotePath } from '../../lake/store/engine.ts'
import { bitsText, carry, columnNames, rowsBeside } from '../../query/row-comparison.ts'
import { runCancellable, type RunDeps, runScript } from '../../query/run.ts'
import type { AssumedRows } from '../lookahead/assumptions.ts'
import type { Note } from '../../query/note-texts.ts'
import type { StressAgain } from './stress-delays.ts'
import { treeOf } from '../../query/parse-tree.ts'
import type { SessionOptions, SessionVariables } from '../../query/lake.ts'

/** The fields of every note. */
const noteShape = z.object({
  lake: z.string(),
  version: z.number(),
  /** The lake's text of views and macros at that version, relative to the lake. */
  script: z.string(),
  query: z.string(),
  variables: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  engine: z.string(),
  program: z.string(),
  catalogue: z.string(),
  rows: z.number(),
  /** SHA-256 over all rows in their order, hex. */
  result: z.string(),
})

/** The note of a stamped result, in the footer of its Parquet file. Derived from the zod shape that reads it. */
export interface StampNote extends Readonly<z.infer<typeof noteShape>> {
  /** The stress whose outcome the rows show; absent if they are the rows of the query. */
  readonly stress?: StressAgain
  /** Assumptions that the rows depend on; absent if there are none. */
  readonly assumes?: readonly AssumedRows[]
  /** Notes about the rows; absent if there are none. */
  readonly noted?: readonly Note[]
}

/** The footer's key. */
const footerKey = 'pitlake_stamp'

/** Tables of a session with the kept rows, and with those that were imported. */
export const keptRows = { own: 'stamped_result', brought: 'stamped_before' } as const

/**
 * Runs a query and keeps its rows in a table of the session; the same rows give the same digest. DuckDB promises no
 * order if the query has none, so then the rows are sorted: by all columns, as text.
 */
export async function runStamped(session: Engine, query: string, run: RunDeps): Promise<ResultDigest> {
  const ready = await runScript(session, query, run)
  return await runCancellable(session, ready.text, run, async () => {
    const keys = ready.columns.map(({ name }) => bitsText(quoteName(name))).join(', ')
    const [select] = await treeOf(session, ready.text)
    const { modifiers = [] } = (select?.['node'] ?? {}) as { modifiers?: readonly { type?: string }[] }
    const ordered = modifiers.some(({ type }) => type === 'ORDER_MODIFIER')
    const rows = ordered ? ready.text : `SELECT * FROM (${ready.text}\n) ORDER BY ${keys}`
    await session.run(`CREATE TEMP TABLE ${keptRows.own} AS ${rows}`)
    return await digestOf(session, keptRows.own)
  })
}

/** Whether the kept rows and the imported ones are the same, each as often, whatever their order. */
export async function sameRows(session: Engine): Promise<boolean> {
  const beside = await rowsBeside(session, keptRows.own, keptRows.brought)
  return beside !== undefined && beside.every((rows) => rows === 0)
}

/** Reads the engine's version, as DuckDB names it. */
export async function engineVersion(session: Engine): Promise<string> {
  const [row] = await session.rows<{ version: string }>('SELECT version() AS version')
  return row?.version ?? ''
}

/**
 * Writes the kept rows with their note: equal rows and notes give equal bytes. A dictionary would lose the sign of
 * -0.0.
 */
export async function writeStamped(session: Engine, path: string, note: StampNote): Promise<void> {
  using writer = await Engine.open(':memory:', { threads: 1 })
  await carry(session, `FROM ${keptRows.own}`, writer, keptRows.own)
  await writer.run(
    `COPY (FROM ${keptRows.own}) TO ${quote(path)} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd,
       DICTIONARY_SIZE_LIMIT 0,
      KV_METADATA {${footerKey}: ${quote(JSON.stringify(note))}})`,
  )
}

/** Copies the rows that another session kept, to be compared like those of a stamped file. */
export async function bringKept(from: Engine, to: Engine): Promise<void> {
  await carry(from, `FROM ${keptRows.own}`, to, keptRows.brought)
}

/** Reads the note of a stamped file; undefined for any other Parquet file. */
export async function readNote(path: string): Promise<StampNote | undefined> {
  using reader = await Engine.open(':memory:', { threads: 1 })
  const rows = await reader.rows(
    `SELECT decode(value) AS note FROM parquet_kv_metadata(${quotePath(path)}) WHERE decode(key) = ` + quote(footerKey),
  )
  const note = rows[0]?.['note']
  return typeof note === 'string' ? noteShape.loose().parse(JSON.parse(note)) : undefined
}

/** A row as texts that tell every bit of its values. */
type Line = readonly (string | null)[]

/** A row in which two results differ. */
export interface ChangedRow {
  /** Counted from 1; 0 if the columns differ. */
  readonly row: number
  /** The column that differs first; null if one side has no such row. */
  readonly column: string | null
  /** The value of that column before and after, or the whole row; null on the side that has no such row. */
  readonly from: string | null
  readonly to: string | null
}

/** The first row in which two results differ, with all its values. */
export interface FirstRow extends ChangedRow {
  readonly lines: { readonly before: Line | null; readonly after: Line | null }
}

/**
 * Finds the first row that occurs more often in the kept rows than in the imported ones, or less often; undefined if
 * there is none.
 */
export async function firstRow(session: Engine): Promise<FirstRow | undefined> {
  const names = await columnNames(session, keptRows.own)
  const others = await columnNames(session, keptRows.brought)
  if (names.join('\n') !== others.join('\n')) {
    const columns = { from: others.join(', '), to: names.join(', ') }
    return { row: 0, column: null, ...columns, lines: { before: null, after: null } }
  }
  const [difference] = await session.rows<{ place: bigint; was: Line | null; now: Line | null }>(
    `WITH own AS (${linesOf(keptRows.own, names)}), other AS (${linesOf(keptRows.brought, names)}),
     more AS (SELECT line FROM (SELECT line, 1 AS n FROM own UNION ALL SELECT line, -1 FROM other) GROUP BY line
       HAVING sum(n) <> 0)
     SELECT place, was.line AS was, now.line AS now
     FROM (SELECT own.place, own.line FROM own SEMI JOIN more USING (line)) AS now
     FULL JOIN (SELECT other.place, other.line FROM other SEMI JOIN more USING (line)) AS was USING (place)
     ORDER BY place LIMIT 1`,
  )
  if (difference === undefined) return undefined
  const { was, now } = difference
  const at = was && now ? names.findIndex((_, n) => was[n] !== now[n]) : -1
  const differingText = (line: Line | null): string | null =>
    line === null
      ? null
      : at === -1
        ? names.map((name, n) => `${name}=${line[n] ?? 'NULL'}`).join(' ')
        : (line[at] ?? null)
  return {
    row: Number(difference.place),
    column: names[at] ?? null,
    from: differingText(was),
    to: differingText(now),
    lines: { before: was, after: now },
  }
}

function linesOf(table: string, names: readonly string[]): string {
  return `SELECT row_number() OVER () AS place, ${lineSql(names)} AS line FROM ${table}`
}

/** Builds the SQL of a row as one list of texts. */
function lineSql(names: readonly string[]): string {
  return `[${names.map((name) => `CAST(${quoteName(name)} AS VARCHAR)`).join(', ')}]`
}

/** Counts how often the rows of a difference are kept, as one text. */
export async function countOf(session: Engine, { lines }: FirstRow): Promise<string> {
  const names = await columnNames(session, keptRows.own)
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

/** Computes the SHA-256 over the rows of a relation in their order; every bit of a double counts. */
async function digestOf(session: Engine, relation: string): Promise<ResultDigest> {
  const described = await columnsOf(session, relation)
  const hash = createHash('sha256').update(described.map(({ name, type }) => `${name} ${type}`).join('\n'))
  const line = described.map(({ name }) => `coalesce(${bitsText(quoteName(name))}, chr(30))`).join(', ')
  const { chunks } = await session.stream(`SELECT sha256(concat_ws(chr(31), ${line})) AS line FROM ${relation}`)
  let rows = 0
  for await (const chunk of chunks) {
    rows += chunk.rows
    for (const digest of chunk.columns[0] ?? []) if (typeof digest === 'string') hash.update(digest)
  }
  return { rows, result: hash.digest('hex') }
}

/** Rows and digest of a result. */
export interface ResultDigest {
  /** Number of rows. */
  readonly rows: number
  /** SHA-256 over all rows in their order, hex. */
  readonly result: string
}

/** A query over one version of the lake. */
export interface PinnedQuery {
  readonly root: string
  readonly version: number
  /** The text of the views. */
  readonly script: string
  readonly query: string
  readonly variables: SessionVariables
  /** Whether any variable may be set, such as those of a stamped result. */
  readonly anyVariable: boolean
  /** Whether files of that version are gone for good: the lake goes on without them. */
  readonly filesGone?: boolean
}

/** Builds the options of a session in which it runs: on one thread, so that sums repeat. */
export function pinnedOptions({ script, query, anyVariable, variables, filesGone }: PinnedQuery): SessionOptions {
  return { script, threads: 1, query, anyVariable, set: variables, ...(filesGone === true && { filesGone }) }
}
