import { pipeline } from 'node:stream/promises'
import { realDisk } from '../../lake/store/disk.ts'
import { type Engine, quoteList } from '../../lake/store/engine.ts'
import { readStream, writeStream } from '../../lake/store/files.ts'
import { fileOf, type Loaded } from './conversion-types.ts'
import { isNested, isNumbers, kindBits, lexBody, type Lexed } from './lexer.ts'
import { statement } from './sql.ts'
import { bodySql, forget, gridOf, statsOf, type Loading } from './stage.ts'

/**
 * Smallest integer from which on a double cannot represent every integer; only the text of a larger one shows whether
 * it is exact.
 */
const beyondDouble = 2 ** 53

/**
 * Reads the spool files of the table `bodies` into the session as the view `staged_points` (body, t, v, o, extra,
 * computed), each body by its position in `files`; poisoned bodies are removed from both. All are lexed first, and then
 * read with declared types if their keys and kinds of values are known, otherwise value by value.
 */
export async function readBodies(
  engine: Engine,
  what: Pick<Loading, 'circumstances' | 'files' | 'lexed' | 'interval' | 'temporary' | 'dated'>,
): Promise<Loaded> {
  const loading: Loading = { engine, ...what, staged: new Map(), poison: new Map(), copies: new Map() }
  const { staged, poison, copies } = loading
  try {
    await engine.run(statement('typed_values'))
    await engine.run(statement('typed_points', { ...gridOf(what), beyond_double: String(beyondDouble) }))
    await engine.run(statement('points_by_value'))
    const { others, shapes } = await loadTyped(loading, await lexBodies(loading))
    await loadByValue(loading, others)
    await engine.run(statement('staged_points'))
    await refuseContradictions(loading)
    await forget(engine, 'bodies', [...poison.keys()])
    // Rows that one statement read are in the order of the bodies.
    const sorted = shapes === 1 && others.length === 0 && [...staged.values()].every(({ rising }) => rising)
    return { staged, poison, sorted }
  } finally {
    for (const copy of copies.values()) await realDisk.remove(copy)
  }
}

/** Drops the tables of the bodies, once everything usable has been copied from them. */
export async function forgetBodies(engine: Engine): Promise<void> {
  await engine.run('DROP TABLE typed_values; DROP TABLE points_by_value')
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

/**
 * Stages bodies whose points contain only t, computed_at and one kind of value; returns the number of shapes, and the
 * bodies that are left.
 */
async function loadTyped(loading: Loading, lexed: ReadonlyMap<number, Lexed>) {
  const { engine, staged } = loading
  const flat = [...lexed].flatMap(([body, seen]) => (hasKinds(seen, 'flat') ? [body] : []))
  const nested = [...lexed].flatMap(([body, seen]) => (hasKinds(seen, 'nested') && !flat.includes(body) ? [body] : []))
  await fill(loading, flat, flatColumns)
  await fill(loading, nested, nestedColumns)
  const typed = [...flat, ...nested]
  if (typed.length > 0) {
    const found = await statsOf(loading, `(FROM typed_points WHERE body IN (${typed.join(', ')}))`)
    for (const [body, staging] of found) if (staging.sound) staged.set(body, staging)
    const unsound = [...found.keys()].filter((body) => !staged.has(body))
    await forget(engine, 'typed_values', unsound)
  }
  const unstaged = [...lexed.keys()].filter((body) => !staged.has(body))
  return { others: unstaged, shapes: [flat, nested].filter((bodies) => bodies.length > 0).length }
}

/**
 * Whether v is a number throughout (`flat`; with o in addition or instead), or nested throughout; null counts as
 * either.
 */
function hasKinds({ keys, elements }: Lexed, shape: 'flat' | 'nested'): boolean {
  const isSimple = keys.other.count === 0 && keys.t.count === elements && keys.t.kinds === kindBits.number
  if (!isSimple || !isNumbers(keys.computed_at.kinds)) return false
  if (shape === 'nested') return isNested(keys.v.kinds) && keys.o.count === 0 && keys.v.count === elements
  return isNumbers(keys.v.kinds) && isNested(keys.o.kinds) && (keys.v.count === elements || keys.o.count === elements)
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
const nestedColumns: TypedColumns = { v: 'NULL', o: 'v', columns: `v: 'VARCHAR'` }

/** Reads bodies into the table `typed_values`, all or none. */
async function fill(loading: Loading, bodies: readonly number[], columns: TypedColumns): Promise<void> {
  if (bodies.length === 0) return
  const files = quoteList(bodies.map((body) => loading.copies.get(body) ?? fileOf(loading.files, body)))
  await loading.engine
    .run(statement('typed_values_load', { ...columns, body: bodySql(bodies), files }))
    .catch(() => undefined)
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
  for (const table of ['typed_values', 'points_by_value']) await forget(engine, table, refusedBodies)
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
    return engine.run(statement('raw_values_load', { body: bodySql(some), files: quoteList(paths) }))
  }
  try {
    await fill(bodies)
  } catch {
    for (const body of bodies) {
      try {
        await fill([body])
      } catch (error) {
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
