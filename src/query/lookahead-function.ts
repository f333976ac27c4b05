import { type Engine, quoteName } from '../store/engine.ts'
import type { Proof } from './lookahead.ts'
import type { TrialInput } from './lookahead-runs.ts'
import { tryFutures, undecided } from './lookahead-trial.ts'
import { type Subject, type World, wholeLake } from './lookahead-world.ts'

/** What a function said instead of rows. */
export class Raised extends Error {
  /** The world in which it said so. */
  readonly world: World

  constructor(message: string, world: World) {
    super(message)
    this.world = world
  }
}

/** Runs a function in a world and puts its rows into a temporary table; what it raises is thrown as `Raised`. */
export type Answer = (table: string, world: World) => Promise<void>

/**
 * Tries a function as a query is tried: on the whole lake, twice, on the lake cut at many instants, and with other futures.
 * Of a function there is no plan. One that raises, or whose rows are no result, is undecided, with the reason.
 */
export async function proveFunction(session: Engine, text: string, input: TrialInput, answer: Answer): Promise<Proof> {
  const subject: Subject = { session, text, kind: 'function', fill: answer }
  const none = {
    proved: false,
    chain: [],
    unproved: { what: 'the function', why: 'it has no plan that could be read' },
  }
  try {
    const tested = await tryFutures(subject, input, [], { alone: true, isProved: async () => false })
    const unsteady = 'the function is not deterministic: two runs on the same lake differ'
    return { ...(tested === 'unsteady' ? undecided(unsteady, 0, []) : tested), ...none }
  } catch (error) {
    if (!(error instanceof Raised)) throw error
    const where = error.world === wholeLake ? 'on the whole lake' : `as of ${error.world['as_of'] ?? 'an instant'}`
    return { ...undecided(`the function raises ${where}: ${error.message}`, 0, []), ...none }
  }
}

/** A row that a function gives, by the names of its columns. */
export type Given = Readonly<Record<string, unknown>>

/**
 * Puts rows into a temporary table: numbers are DOUBLE, bigints HUGEINT, Dates and the texts of `ts` instants; lists and
 * objects are compared as JSON. `instants` names columns whose numbers are milliseconds since 1970.
 */
export async function bringRows(
  session: Engine,
  table: string,
  rows: readonly Given[],
  {
    names,
    instants,
    ts,
  }: { readonly names: readonly string[]; readonly instants: ReadonlySet<string>; readonly ts: string },
): Promise<void> {
  const columns = names.map((name) => {
    const kinds = new Set(rows.map((row) => kindOf(row[name])).filter((kind) => kind !== 'null'))
    const [kind = 'string'] = kinds
    if (instants.has(name) || (name === ts && kind === 'string')) return { name, type: 'TIMESTAMPTZ' }
    return { name, type: kinds.size === 1 ? (types[kind] ?? 'VARCHAR') : 'VARCHAR' }
  })
  const cells = rows.map((row) => names.map((name) => cellOf(row[name], instants.has(name))))
  const made = columns.map(({ name, type }, n) => `CAST(cells[${n + 1}] AS ${type}) AS ${quoteName(name)}`)
  await session.run(
    `CREATE OR REPLACE TEMP TABLE ${quoteName(table)} AS SELECT ${made.length === 0 ? '1 AS nothing' : made.join(', ')}
     FROM (SELECT unnest(from_json($1, '[["VARCHAR"]]')) AS cells)`,
    [JSON.stringify(cells)],
  )
}

const types: Readonly<Record<string, string>> = {
  number: 'DOUBLE',
  bigint: 'HUGEINT',
  boolean: 'BOOLEAN',
  instant: 'TIMESTAMPTZ',
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  return value instanceof Date ? 'instant' : typeof value
}

function cellOf(value: unknown, instant: boolean): string | null {
  if (value === null || value === undefined) return null
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'number') return instant ? isoOf(value) : Object.is(value, -0) ? '-0' : String(value)
  if (typeof value === 'object')
    return JSON.stringify(value, (_, held: unknown) => (typeof held === 'bigint' ? String(held) : held))
  return String(value)
}

/** Milliseconds with a fraction that holds microseconds. */
function isoOf(ms: number): string {
  const micros = Math.round(ms * 1000)
  const whole = Math.floor(micros / 1_000_000)
  return `${new Date(whole * 1000).toISOString().slice(0, -5)}.${String(micros - whole * 1_000_000).padStart(6, '0')}Z`
}

/** The columns that the rows of a function have, in the order in which they first come. */
export function namesIn(rows: readonly Given[]): readonly string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row)))]
}
