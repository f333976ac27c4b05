import { readInto, sizeOf } from '../store/files.ts'
import { onGridSql, endSql, stepSql } from '../intervals-sql.ts'
import type { Window } from '../windows.ts'
import { realDisk } from '../store/disk.ts'
import type { Lexed } from './lexer.ts'
import { fewRows, identityColumns } from '../store/parquet.ts'
import { contradictsConvention } from './clocks.ts'
import { expectedRange, findHoles } from './holes.ts'
import {
  bodyAt,
  type Existing,
  fileOf,
  identityOf,
  type Ordered,
  type PartJob,
  type Tally,
  type WrittenFile,
} from './conversion.ts'
import { Proof } from './proof.ts'
import { type Shape, shapeOf } from './shape.ts'
import { numbered, rowsSql, statement } from './sql.ts'
import { sniffed } from './byte-counts.ts'
import { bodySql } from './stage.ts'
import { describe, literalDating, type Part, readBack, writePoints } from './write.ts'
import { type Engine, quoteList } from '../store/engine.ts'
import { levelsSql } from './files.ts'

/** What is known of the bodies, by position. */
export interface Facts {
  /** Why a body is poison. */
  readonly poison: ReadonlyMap<number, string>
  /** How many points a body has that is not empty. */
  readonly points: ReadonlyMap<number, number>
  readonly tallies: ReadonlyMap<number, Tally>
  readonly holes: ReadonlyMap<number, Window[]>
}

/** A file that was written without staging; no body is poison, with which nothing can be done directly. */
export interface Direct extends Facts {
  readonly file: WrittenFile | null
}

/**
 * Writes the points of all bodies straight from their JSON to the file, then proves from the file and from the bytes of
 * the bodies that nothing was converted in silence, contradicts, or should not be stored. Null where any of this is not
 * proved: then the bodies are to be staged and compared.
 */
export async function convertDirectly(
  session: Engine,
  job: PartJob,
  ordered: readonly Ordered[],
  lexed: Map<string, Lexed>,
): Promise<Direct | null> {
  if (!areApart(job, ordered)) return null
  const heads = await Promise.all(
    ordered.map(async ({ body }, i) => ({
      i,
      text: (await readInto(body.file, Buffer.alloc(sniffed))).toString('latin1'),
    })),
  )
  const filled = heads.filter(({ text }) => !isEmptyArray(text))
  const full = filled.map(({ i }) => i)
  const shape = shapeOf(filled.map(({ text }) => text))
  if ((full.length > 0 && !shape) || (await meetsHeld(session, job, ordered))) return null
  const brought = shape ? await bringOrTidy(session, job, { ordered, full, shape, lexed }) : none
  if (!brought) return null
  const { file, parts } = brought
  const tallies = new Map([...parts].map(([i, part]) => [i, tallyOf(part)]))
  const source = (bodies: readonly number[]): string => placedSql(job, bodies, parts)
  const poison = new Map<number, string>()
  const holes = await findHoles(session, { ordered, poison, tallies, source })
  return { file, poison, points: new Map([...parts].map(([i, { rows }]) => [i, rows])), tallies, holes }
}

/** Bytes of a point with its comma, such as `{"t":1577836800,"v":1},`. */
const shortestPoint = 24

/** A path of its own: DuckDB remembers files that it read, and may take a second one of the same path for the first. */
function outOf(job: PartJob): string {
  return `${job.out}.direct`
}
const none: Brought = { file: null, parts: new Map() }

function isEmptyArray(text: string): boolean {
  return text.length < sniffed && /^[ \t\r\n]*\[[ \t\r\n]*\][ \t\r\n]*$/.test(text)
}

/** Whether the windows of each series are apart from one another and from those of earlier answers. */
function areApart(job: PartJob, ordered: readonly Ordered[]): boolean {
  if (job.rules.filter((rule) => rule.basis === 'stated').length > 1) return false
  return ordered.every(({ body, rank }, i) => {
    if (body.lost) return false
    const [since, until] = [body.since ?? -Infinity, body.until ?? Infinity]
    const before = ordered[i - 1]
    if (before?.rank === rank && (before.body.until ?? Infinity) > since) return false
    return !body.prior.some((earlier) => earlier.since < until && earlier.until > since)
  })
}

const askedColumns =
  'asset VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR, params VARCHAR, since BIGINT, until BIGINT'

async function meetsHeld(session: Engine, job: PartJob, ordered: readonly Ordered[]): Promise<boolean> {
  const { existing, recent } = job
  if (existing.length === 0 && recent.existing.length === 0) return false
  const asked = ordered.map(({ body: { series, since, until } }) => ({ ...identityOf(series), since, until }))
  const sql = statement('meets', {
    source: levelsSql(pathsOf(existing), pathsOf(recent.existing), job),
    asked: rowsSql(askedColumns, asked),
  })
  const [row] = await session.rows<{ meets: boolean }>(sql)
  return row?.meets !== false
}

function pathsOf(files: readonly Existing[]): string[] {
  return files.map(({ path }) => path)
}

interface Brought {
  readonly file: WrittenFile | null
  readonly parts: ReadonlyMap<number, Part>
}

interface Batch {
  readonly ordered: readonly Ordered[]
  /** Positions of the bodies that are no empty arrays. */
  readonly full: readonly number[]
  readonly shape: Shape
  readonly lexed: Map<string, Lexed>
}

async function bringOrTidy(session: Engine, job: PartJob, batch: Batch): Promise<Brought | null> {
  try {
    const brought = await bring(session, job, batch)
    if (brought) await realDisk.move(outOf(job), job.out)
    return brought
  } finally {
    await realDisk.remove(outOf(job))
  }
}

async function bring(session: Engine, job: PartJob, batch: Batch): Promise<Brought | null> {
  const { ordered, full, shape, lexed } = batch
  const files = ordered.map(({ body }) => body.file)
  const proof = new Proof(files, shape, lexed)
  const sizes = await Promise.all(full.map(async (i) => await sizeOf(fileOf(files, i))))
  const few = sizes.reduce((sum, size) => sum + size, 0) <= fewRows * shortestPoint
  const source = { source: `(${sourceSql(job, batch)})`, place: 'body', sorted: true, late: false, minusZero: false }
  const [copied, bytesRead] = await Promise.allSettled([
    writePoints(session, job, literalDating(job, ordered), { ...source, few, out: outOf(job) }),
    proof.read(full),
  ])
  if (bytesRead.status === 'rejected') throw bytesRead.reason
  if (copied.status === 'rejected') return null
  const cuts = cutsOf(ordered)
  const groups = await readBack(session, job, { out: outOf(job), told: shape.told }, cuts)
  const parts = new Map(groups.map((group) => [bodyOf(ordered, cuts, group), group]))
  if (parts.size !== groups.length || parts.size !== full.length) return null
  for (const i of full) {
    const part = parts.get(i)
    if (!part || !mayBeStored(job, bodyAt(ordered, i), part) || !(await proof.holds(i, part))) return null
  }
  const inOrder = await isInOrder(session, job, full, parts)
  return inOrder ? { file: describe(groups), parts } : null
}

/** The SELECT that reads the bodies; soundness of each value is checked inside. */
function sourceSql(job: PartJob, { ordered, full, shape }: Batch): string {
  return statement('direct', {
    on_grid: onGridSql('mark', job.interval, job.weekStart),
    start: job.timestamp === 'interval_end' ? stepSql('mark', job.interval, -1) : 'mark',
    body: bodySql(full),
    files: quoteList(full.map((i) => bodyAt(ordered, i).body.file)),
    v: shape.v,
    o: shape.o,
    columns: shape.columns,
    computed: shape.computed,
  })
}

/** The instants at which a series goes from one body to the next. */
function cutsOf(ordered: readonly Ordered[]): readonly number[] {
  const inner = ordered.filter(({ rank }, i) => ordered[i - 1]?.rank === rank)
  const starts = inner.flatMap(({ body }) => (body.since === null ? [] : [body.since]))
  return [...new Set(starts)].toSorted((a, b) => a - b)
}

/** The last body of the group's series that was asked from the group's part on or earlier; -1 for no known series. */
function bodyOf(ordered: readonly Ordered[], cuts: readonly number[], group: Part): number {
  const from = cuts[group.part - 1] ?? -Infinity
  return ordered.findLastIndex(({ body, rank }, i) => {
    const own = identityOf(body.series)
    if (identityColumns.some((name) => own[name] !== group[name])) return false
    return ordered[i - 1]?.rank !== rank || (body.since ?? -Infinity) <= from
  })
}

/** Whether all points lie inside the window and are finished, and no clock contradicts. */
function mayBeStored(job: PartJob, { body }: Ordered, part: Part): boolean {
  if (part.early > 0 || contradictsConvention(part, job)) return false
  const expected = expectedRange(job, body, part.first)
  return expected !== null && part.first >= (body.since ?? -Infinity) && part.last < expected.until
}

/** Whether each body's points stand together, bodies in their order, and each point behind the one before. */
async function isInOrder(
  session: Engine,
  job: PartJob,
  full: readonly number[],
  parts: ReadonlyMap<number, Part>,
): Promise<boolean> {
  let row = 0
  const starts = new Set<number>()
  for (const i of full) {
    const part = parts.get(i)
    if (part?.first_row !== row || part.last_row !== row + part.rows - 1) return false
    starts.add(row)
    row += part.rows
  }
  const sql = statement('disorder', { file: quoteList([outOf(job)]), limit: starts.size + 1 })
  const steps = await numbered<{ row: number }>(session, sql)
  return steps.every((step) => starts.has(step.row))
}

function tallyOf({ rows, first, last }: Part): Tally {
  return { kept: rows, first, last, added: rows, addedFirst: first, addedLast: last, beyond: 0 }
}

function placedSql(job: PartJob, bodies: readonly number[], parts: ReadonlyMap<number, Part>): string {
  const rows = bodies.map((body) => ({
    body,
    first_row: parts.get(body)?.first_row,
    last_row: parts.get(body)?.last_row,
  }))
  return `(${statement('placed', { file: quoteList([job.out]), places: rowsSql('body INTEGER, first_row BIGINT, last_row BIGINT', rows), close: endSql('t', job.interval) })})`
}
