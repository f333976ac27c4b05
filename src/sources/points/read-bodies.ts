import { pipeline } from 'node:stream/promises'
import { withCleanup } from '../../base/cleanup.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { type Engine, quotePaths } from '../../lake/store/engine.ts'
import { readStream, writeStream } from '../../lake/store/files.ts'
import { fileOf, type Loaded } from './conversion-types.ts'
import { appendColumns, beyondDouble, type ColumnBody, judgeColumns } from './column-bodies.ts'
import { isNested, isNumbers, kindBits, lexBody, type Lexed } from './lexer.ts'
import { requireBodyError } from './body-errors.ts'
import { lookup, statement } from './sql.ts'
import { bodySql, forget, gridOf, statsOf, type Loading } from './stage.ts'

/** Maximum number of statements for bodies that keep their order; with more, those of one kind are read together. */
const mostRuns = 50

/**
 * Reads the spool files of the table `bodies` into the session as the view `staged_points` (body, t, v, o, extra,
 * computed), each body by its position in `files`; poisoned bodies are removed from both. All are lexed first. Numbers
 * are then columns already; other bodies are read with declared types if their keys and kinds of values are known,
 * otherwise value by value.
 */
export async function readBodies(
  engine: Engine,
  what: Pick<Loading, 'circumstances' | 'files' | 'lexed' | 'intervals' | 'temporary' | 'dated'>,
): Promise<Loaded> {
  const loading: Loading = { engine, ...what, staged: new Map(), poison: new Map(), copies: new Map() }
  const { staged, poison, copies } = loading
  const load = async (): Promise<Loaded> => {
    await engine.run(statement('points_by_value'))
    const { others, inOrder, hasNested } = await loadTyped(loading, await lexBodies(loading))
    await loadByValue(loading, others)
    await engine.run(statement('staged_points', { nested: hasNested ? 'o' : 'CAST(NULL AS VARCHAR)' }))
    await refuseContradictions(loading)
    await forget(engine, 'bodies', [...poison.keys()])
    const sorted = inOrder && others.length === 0 && [...staged.values()].every(({ rising }) => rising)
    return { staged, poison, sorted }
  }
  return await withCleanup(load, async () => {
    for (const copy of copies.values()) await realDisk.remove(copy)
  })
}

/** Drops the tables of the bodies, once everything usable has been copied from them. */
export async function forgetBodies(engine: Engine): Promise<void> {
  await engine.run('DROP TABLE typed_points; DROP TABLE points_by_value')
}

/** Lexes the bodies; returns those that are sound JSON arrays of objects and not empty. */
async function lexBodies(loading: Loading): Promise<Map<number, Lexed>> {
  const sound = new Map<number, Lexed>()
  for (const [body, file] of loading.files.entries()) {
    const seen = loading.lexed[body] ?? (await lexBody(file))
    if (seen.problem !== null) loading.poison.set(body, seen.problem)
    else if (seen.elements > 0) sound.set(body, seen)
    if (seen.problem === null && seen.negativeZeros.length > 0) await respell(loading, body, seen.negativeZeros)
  }
  return sound
}

/** Writes a copy of the body in which each `-0` is `-0.0`: DuckDB reads the former as an integer without a sign. */
async function respell(loading: Loading, body: number, ends: readonly number[]): Promise<void> {
  const copy = `${loading.temporary}.body${body}`
  loading.copies.set(body, copy)
  async function* spelled(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let offset = 0
    let at = 0
    for await (const chunk of source) {
      let from = 0
      for (; at < ends.length && (ends[at] ?? 0) <= offset + chunk.length; at++) {
        const cut = (ends[at] ?? 0) - offset
        yield chunk.subarray(from, cut)
        yield Buffer.from('.0')
        from = cut
      }
      yield chunk.subarray(from)
      offset += chunk.length
    }
  }
  await pipeline(readStream(fileOf(loading.files, body)), spelled, writeStream(copy))
}

/** The way in which a body goes to `typed_points`: from its columns, or read as one of two shapes. */
type Way = 'columns' | TypedColumns

/** Bodies that go to `typed_points` in one way and with one statement. */
interface Group {
  readonly way: Way
  readonly bodies: number[]
}

/**
 * Stages bodies whose points contain only t, computed_at and one kind of value; returns whether they are in order in
 * `typed_points`, whether that has a column `o`, and the bodies that are left.
 */
async function loadTyped(
  loading: Loading,
  lexed: ReadonlyMap<number, Lexed>,
): Promise<{ readonly others: readonly number[]; readonly inOrder: boolean; readonly hasNested: boolean }> {
  const { engine, staged } = loading
  const columns = columnBodies(loading, lexed)
  const ways = [...lexed].flatMap(([body, seen]): [number, Way][] => {
    const way = columns.has(body) ? 'columns' : shapeOf(seen)
    return way === null ? [] : [[body, way]]
  })
  const hasNested = ways.some(([, way]) => way !== 'columns')
  await engine.run(statement('typed_points', { nested: hasNested ? ', o VARCHAR' : '' }))
  const runs = runsOf(ways)
  const inOrder = runs.length <= mostRuns
  const read: number[] = []
  for (const { way, bodies } of inOrder ? runs : byWay(ways))
    if (way === 'columns') {
      const judged = bodies.flatMap((body) => columns.get(body) ?? [])
      await appendColumns(engine, judged, hasNested)
      for (const found of judged) staged.set(found.body, found.staged)
    } else {
      read.push(...bodies)
      await fill(loading, bodies, way)
    }
  await judgeTyped(loading, read)
  return { others: [...lexed.keys()].filter((body) => !staged.has(body)), inOrder, hasNested }
}

/** Judges the bodies that a strict reading has put into columns; those with a fault are left for reading by value. */
function columnBodies({ circumstances, intervals }: Loading, lexed: ReadonlyMap<number, Lexed>) {
  const judged = new Map<number, ColumnBody>()
  for (const [body, { columns }] of lexed) {
    const interval = intervals[body]
    if (columns === null || interval === undefined) continue
    const found = judgeColumns(body, columns, { ...circumstances, interval })
    if (found !== null) judged.set(body, found)
  }
  return judged
}

/** Groups neighbours that go the same way. */
function runsOf(ways: readonly (readonly [number, Way])[]): Group[] {
  const runs: Group[] = []
  for (const [body, way] of ways) {
    const run = runs.at(-1)
    if (run?.way === way) run.bodies.push(body)
    else runs.push({ way, bodies: [body] })
  }
  return runs
}

/** Groups all bodies that go the same way. */
function byWay(ways: readonly (readonly [number, Way])[]): Group[] {
  return [...Map.groupBy(ways, ([, way]) => way)].map(([way, some]) => ({ way, bodies: some.map(([body]) => body) }))
}

/** Stages the bodies of `typed_points` that were read from files; those with a fault are removed. */
async function judgeTyped(loading: Loading, bodies: readonly number[]): Promise<void> {
  if (bodies.length === 0) return
  const found = await statsOf(loading, `(FROM typed_points WHERE body IN (${bodies.join(', ')}))`)
  for (const [body, staging] of found) if (staging.sound) loading.staged.set(body, staging)
  const unsound = [...found.keys()].filter((body) => !loading.staged.has(body))
  await forget(loading.engine, 'typed_points', unsound)
}

/**
 * The shape of a body in which objects or arrays occur: in o, beside or instead of numbers in v, or in v throughout; null
 * counts as either. Null for any other body.
 */
function shapeOf({ keys, elements }: Lexed): TypedColumns | null {
  const isSimple = keys.other.count === 0 && keys.t.count === elements && keys.t.kinds === kindBits.number
  if (!isSimple || !isNumbers(keys.computed_at.kinds)) return null
  if (keys.o.count === 0) return isNested(keys.v.kinds) && keys.v.count === elements ? nestedColumns : null
  const isWhole = keys.v.count === elements || keys.o.count === elements
  return isNumbers(keys.v.kinds) && isNested(keys.o.kinds) && isWhole ? flatColumns : null
}

/** The SQL that converts the declared columns to v and o. */
interface TypedColumns {
  readonly v: string
  readonly o: string
  readonly columns: string
}

/** Numbers in v, objects or arrays in o. */
const flatColumns: TypedColumns = { v: 'v', o: 'o', columns: `v: 'DOUBLE', o: 'VARCHAR'` }
/** Objects or arrays in v. */
const nestedColumns: TypedColumns = { v: 'CAST(NULL AS DOUBLE)', o: 'v', columns: `v: 'VARCHAR'` }

/** Reads bodies into the table `typed_points`, all or none; bodies that cannot be read so are left for reading by value. */
async function fill(loading: Loading, bodies: readonly number[], columns: TypedColumns): Promise<void> {
  const { engine, intervals } = loading
  const files = quotePaths(bodies.map((body) => loading.copies.get(body) ?? fileOf(loading.files, body)))
  const how = { ...columns, ...gridOf(loading), interval: lookup(intervals), beyond_double: String(beyondDouble) }
  try {
    await engine.run(statement('typed_points_load', { ...how, body: bodySql(bodies), files }))
  } catch (error) {
    requireBodyError(error)
  }
}

/** Refuses bodies out of order that contain one t twice with different points; equal ones are harmless. */
async function refuseContradictions({ engine, poison, staged, dated }: Loading): Promise<void> {
  await engine.run(statement('canonical_json'))
  const suspects = [...staged].filter(([, body]) => body.doubled).map(([body]) => body)
  if (suspects.length === 0) return
  // If the source dates its points, each occurs once for each time.
  const once = dated ? `t, CASE WHEN body IN (${dated.join(', ')}) THEN computed END` : 't'
  const sql = statement('conflicting_bodies', { bodies: suspects.join(', '), once })
  const rows = await engine.rows<{ body: number; t: bigint }>(sql)
  for (const { body, t } of rows) {
    poison.set(body, `two different points with the same t: ${t}`)
    staged.delete(body)
  }
  const refusedBodies = rows.map(({ body }) => body)
  for (const table of ['typed_points', 'points_by_value']) await forget(engine, table, refusedBodies)
}

/** Stages the remaining bodies, value by value; the defect of a body becomes its reason. */
async function loadByValue(loading: Loading, bodies: readonly number[]): Promise<void> {
  const { engine, poison, staged } = loading
  if (bodies.length === 0) return
  await engine.run(statement('raw_values'))
  await fillTable(loading, bodies)
  await engine.run(statement('body_shapes'))
  await engine.run(statement('points_by_value_load', { ...gridOf(loading), beyond_double: String(beyondDouble) }))
  for (const { body, fault, faults } of await engine.rows<FaultRow>(statement('body_faults')))
    poison.set(body, faults > 1n ? `${fault} (and ${faults - 1n} more)` : fault)
  await engine.run('DROP TABLE raw_values')
  await forget(
    engine,
    'points_by_value',
    bodies.filter((body) => poison.has(body)),
  )
  for (const [body, found] of await statsOf(loading, 'points_by_value')) staged.set(body, found)
}

type FaultRow = { readonly body: number; readonly fault: string; readonly faults: bigint }

/**
 * Fills the table with all bodies at once if possible, otherwise one by one, so that DuckDB's refusal of one does not
 * affect the others.
 */
async function fillTable(loading: Loading, bodies: readonly number[]): Promise<void> {
  const { engine, files, copies, poison } = loading
  const fill = (some: readonly number[]): Promise<number> => {
    const paths = some.map((body) => copies.get(body) ?? fileOf(files, body))
    return engine.run(statement('raw_values_load', { body: bodySql(some), files: quotePaths(paths) }))
  }
  try {
    await fill(bodies)
  } catch (cause) {
    requireBodyError(cause)
    for (const body of bodies) {
      try {
        await fill([body])
      } catch (error) {
        requireBodyError(error)
        poison.set(body, plainWords(error, copies.get(body) ?? fileOf(files, body)))
      }
    }
  }
}

/** Returns DuckDB's error message without its advice and without the path of the spool file. */
function plainWords(error: unknown, file: string): string {
  const first = String(error instanceof Error ? error.message : error).split('\n')[0] ?? ''
  if (first.includes('maximum_object_size')) return 'a point of more than 16 MB'
  return first
    .replace(/^[\w ]*Error: /, '')
    .replaceAll(/ in file "[^"]*"/g, '')
    .replaceAll(file, 'the body')
    .slice(0, 300)
}
