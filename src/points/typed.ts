import { fileOf } from './conversion.ts'
import { isNested, isNumbers, kindBits, type Lexed } from './lexer.ts'
import { agrees, type ByteCounts, countBytes } from './byte-counts.ts'
import { beyondDouble, shapeOf } from './shape.ts'
import { statement } from './sql.ts'
import { bodySql, forget, gridOf, type Loading, type Staged, statsOf } from './stage.ts'
import { quoteList } from '../store/engine.ts'

/** Stages bodies of plain numbers, each proved by its counted bytes; returns all others. */
export async function loadCounted(loading: Loading): Promise<number[]> {
  const { engine, files, lexed, staged, circumstances } = loading
  await engine.run(statement('points', { ...gridOf(circumstances), beyond_double: String(beyondDouble) }))
  const counted = new Map<number, ByteCounts>()
  for (const [body, file] of files.entries()) {
    const counts = lexed.has(file) ? null : await countBytes(file, (start) => shapeOf([start])?.kind === 'numbers')
    if (counts !== null) counted.set(body, counts)
  }
  await fill(loading, [...counted.keys()], numberColumns)
  await keep(loading, [...counted.keys()], async (body, { points: rows, ...read }) => {
    const counts = counted.get(body)
    return counts !== undefined && (await agrees(counts, { rows, ...read }, fileOf(files, body)))
  })
  return [...files.keys()].filter((body) => !staged.has(body))
}

/** Stages bodies whose points hold nothing but t, computed_at and one kind of value; returns the others. */
export async function loadTyped(loading: Loading, bodies: readonly number[]): Promise<number[]> {
  const { files, lexed, staged } = loading
  const seen = (body: number): Lexed | undefined => lexed.get(fileOf(files, body))
  const flat = bodies.filter((body) => hasKinds(seen(body), 'flat'))
  const nested = bodies.filter((body) => !flat.includes(body) && hasKinds(seen(body), 'nested'))
  await fill(loading, flat, flatColumns)
  await fill(loading, nested, nestedColumns)
  await keep(loading, [...flat, ...nested], async () => await Promise.resolve(true))
  return bodies.filter((body) => !staged.has(body))
}

/** Counts what was read of these bodies; those that are not sound, or not proved, leave the table again. */
async function keep(
  loading: Loading,
  bodies: readonly number[],
  isProved: (body: number, found: Staged) => Promise<boolean>,
): Promise<void> {
  if (bodies.length === 0) return
  const { engine, staged } = loading
  const found = await statsOf(loading, `(FROM typed_points WHERE body IN (${bodies.join(', ')}))`)
  for (const [body, one] of found) if (one.sound && (await isProved(body, one))) staged.set(body, one)
  await forget(
    engine,
    'typed',
    [...found.keys()].filter((body) => !staged.has(body)),
  )
}

/** Whether v is a number throughout (`flat`; o may stand beside it or instead), or nested throughout; null either way. */
function hasKinds(seen: Lexed | undefined, shape: 'flat' | 'nested'): boolean {
  if (!seen) return false
  const { keys, elements } = seen
  const known = keys.other.count === 0 && keys.t.count === elements && keys.t.kinds === kindBits.number
  if (!known || !isNumbers(keys.computed_at.kinds)) return false
  if (shape === 'nested') return isNested(keys.v.kinds) && keys.o.count === 0 && keys.v.count === elements
  return isNumbers(keys.v.kinds) && isNested(keys.o.kinds) && (keys.v.count === elements || keys.o.count === elements)
}

/** How the declared columns become v and o. */
interface TypedColumns {
  readonly v: string
  readonly o: string
  readonly columns: string
}

/** Nothing but numbers in v. */
const numberColumns: TypedColumns = { v: 'v', o: 'NULL', columns: `v: 'DOUBLE'` }
/** Numbers in v, objects or arrays in o. */
const flatColumns: TypedColumns = { v: 'v', o: 'o', columns: `v: 'DOUBLE', o: 'VARCHAR'` }
/** Objects or arrays in v. */
const nestedColumns: TypedColumns = { v: 'NULL', o: 'v', columns: `v: 'VARCHAR'` }

/** Reads bodies into the table `typed`, all or none. */
async function fill(loading: Loading, bodies: readonly number[], columns: TypedColumns): Promise<void> {
  if (bodies.length === 0) return
  const files = quoteList(bodies.map((body) => loading.copies.get(body) ?? fileOf(loading.files, body)))
  await loading.engine.run(statement('typed', { ...columns, body: bodySql(bodies), files })).catch(() => undefined)
}
