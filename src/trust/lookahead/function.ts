import type { Table } from 'apache-arrow'
import { LakeError } from '../../base/errors.ts'
import { jsonText } from '../../base/json.ts'
import { formatMicros, microsOf, parseMicros } from '../../base/time.ts'
import { Engine, isSameName, quoteName } from '../../lake/store/engine.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import { setVariables, type VariableValue } from '../../query/lake.ts'
import type { Moment } from '../../query/options.ts'
import { readVariables, refuseStrange } from '../../query/read-options.ts'
import { carry } from '../../query/row-comparison.ts'
import type { LookaheadProof } from './lookahead.ts'
import { endCalendar } from './calendar.ts'
import { bringUserFiles, bringUserTable, cutUserRows, ownTable, refuseTakenNames } from './own-files.ts'
import type { TrialInput } from './runs.ts'
import { tryFutures, undecidedOutcome } from './trial.ts'
import {
  changedWorld,
  enterWorld,
  openWorlds,
  type Subject,
  type World,
  type WorldReader,
  withoutAsOf,
  wholeLake,
} from './world.ts'

/** Error that a function raised instead of giving rows. */
export class Raised extends Error {
  /** World in which the function raised it. */
  readonly world: World

  constructor(message: string, world: World) {
    super(message)
    this.world = world
  }
}

/** Returns a world for a function, which may query beyond `as_of`: points after the cut-off do not exist in it. */
export function withoutLaterPoints(world: World): World {
  const { as_of: at } = world
  return at === undefined ? world : { ...world, ...changedWorld(`[${microsOf(at)}]`, 'gone') }
}

/** Calls a function in a world; what it throws is `Raised`, but for a cancel. */
async function callRaising<T>(world: World, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof LakeError && error.kind === 'stopped') throw error
    throw new Raised(error instanceof Error ? error.message : String(error), world)
  }
}

/** Questions of a function to the lake in one run. */
export interface FunctionQuestions {
  /** Notes of the answers. */
  readonly notes: readonly string[]
  /** Text of each question, as SQL. */
  readonly asked: readonly string[]
}

/** Runs a function in a world and puts its rows into a temporary table; what it raises is thrown as `Raised`. */
type Answer = (table: string, world: World) => Promise<FunctionQuestions>

/**
 * Tries a function as a query is tried: on the whole lake, twice, on the lake cut at many instants, and with other
 * futures. A function has no plan. One that raises, or whose rows are no result, is undecided, with the reason.
 */
export async function proveFunction(
  session: Engine,
  text: string,
  input: TrialInput,
  answer: Answer,
): Promise<LookaheadProof> {
  const noted = new Set<string>()
  const questions = new Set<string>()
  const fill = async (table: string, world: World): Promise<void> => {
    const { notes, asked: requested } = await answer(table, world)
    for (const sql of requested) questions.add(sql)
    // Facts missing only in a different world are no fact of the lake.
    if (world === wholeLake) for (const note of notes) noted.add(note)
  }
  const within: WorldReader = async () => {
    throw new RangeError('a function gives no relation')
  }
  const subject: Subject = {
    session,
    text,
    kind: 'function',
    preparation: [],
    hands: [],
    fill,
    within,
    askedQueries: () => [...questions],
  }
  const none = {
    proved: false,
    chain: [],
    unproved: { what: 'the function', why: 'it has no plan that could be read', line: null, column: null },
    assumes: [],
  }
  try {
    const tested = await tryFutures(subject, input, [], { alone: true, isProved: async () => false })
    const unsteady = 'the function is not deterministic: two runs on the same lake differ'
    const found = tested === 'unsteady' ? undecidedOutcome(unsteady, 0, []) : tested
    return { ...found, ...none, notes: [...noted, ...found.notes] }
  } catch (error) {
    if (!(error instanceof Raised)) throw error
    const where = error.world === wholeLake ? 'on the whole lake' : `as of ${error.world['as_of'] ?? 'an instant'}`
    return { ...undecidedOutcome(`the function raises ${where}: ${error.message}`, 0, []), ...none }
  }
}

/** Options of `lookahead` for a function. */
export interface FunctionOptions extends Partial<TrialInput> {
  /**
   * Your own data, rows or files, by the names under which queries read them. Rows with `available_at` are known from
   * then on; a date counts from the end of its day.
   */
  readonly own?: Readonly<Record<string, string | GivenRows>> | undefined
  /** Session variables by name, without `as_of`: the test itself sets it. */
  readonly set?: Readonly<Record<string, VariableValue>> | undefined
  /** Cancels the call, which then fails with a LakeError of kind `stopped`. */
  readonly signal?: AbortSignal | undefined
}

/** Tries a function of this process: `ask` calls it with a session that sees a world, which is closed behind it. */
export async function proveAnswering(
  folder: string,
  text: string,
  { signal, ts = 'ts', labels = [], cutoffs = 50, tolerance = 0, onCutoff, own = {}, set = {} }: FunctionOptions,
  ask: (session: Engine, world: World) => Promise<FunctionQuestions & { readonly rows: GivenRows }>,
): Promise<LookaheadProof> {
  const variables = withoutAsOf(readVariables(set))
  refuseStrange(Object.keys(variables), false)
  using engine = await openWorlds(folder, { set: variables })
  const names = Object.keys(own)
  await refuseTakenNames(engine, names)
  const ownNotes: string[] = []
  for (const [name, rows] of Object.entries(own)) ownNotes.push(...(await bringGiven(engine, name, rows)))
  const input = { ts, labels, cutoffs, tolerance, ...(onCutoff && { onCutoff }) }
  const proof = await proveFunction(engine, text, input, async (table, world) => {
    if (signal?.aborted === true) throw new LakeError('stopped', { subject: 'the look-ahead was cancelled' })
    using session = await engine.session()
    await setVariables(session, { set: variables })
    await enterWorld(session, withoutLaterPoints(world))
    await endCalendar(session)
    for (const name of names) {
      await carry(engine, `FROM ${quoteName(ownTable(name))}`, session, ownTable(name))
      await cutUserRows(session, name)
    }
    const { rows, ...questions } = await callRaising(world, async () => ask(session, world))
    await bringRows(engine, table, rows, ts)
    return questions
  })
  return { ...proof, notes: [...ownNotes, ...proof.notes] }
}

/** Lets a session read user data by a name; returns the notes on their times. */
async function bringGiven(session: Engine, name: string, rows: string | GivenRows): Promise<readonly string[]> {
  if (typeof rows === 'string') return await bringUserFiles(session, [[name, rows]])
  using reader = await Engine.open(':memory:', { threads: 1 })
  const relation = 'given_rows'
  await bringRows(reader, relation, rows)
  const columns = await columnsOf(reader, relation)
  return await bringUserTable(reader, { format: 'table', relation, columns, files: [], subject: name }, session, name)
}

/** Clips an instant that a function queries to the end of its world. */
export function clipMoment(at: Moment | undefined, { as_of: end }: World): Moment | undefined {
  const cutoff = at instanceof Date ? at.toISOString() : at
  if (cutoff === undefined || end === undefined) return at
  return (parseMicros(cutoff) ?? Number.POSITIVE_INFINITY) > microsOf(end) ? end : at
}

/** Selects the decisions of a call in its world: all of them, or those until its calendars end. */
export function decisionsIn<T>(decisions: readonly T[], { proof_calendar: end }: World): readonly T[] {
  if (end === undefined) return decisions
  return decisions.filter((decision) => {
    const { ts } = (typeof decision === 'object' && decision !== null ? decision : {}) as { readonly ts?: unknown }
    const at = ts instanceof Date ? ts.toISOString() : ts
    return typeof at !== 'string' || !((parseMicros(at) ?? Number.NEGATIVE_INFINITY) > microsOf(end))
  })
}

/** Row that a function returns, by the names of its columns. */
export type Given = Readonly<Record<string, unknown>>
/** Rows that a function returns: an Arrow table or objects. */
export type GivenRows = Table | readonly Given[]

/**
 * Puts rows into a temporary table: numbers are DOUBLE, bigints HUGEINT, Dates, Arrow's timestamps and the texts of
 * `ts` instants, Arrow's dates DATE; lists and objects are compared as JSON.
 */
async function bringRows(session: Engine, table: string, givenRows: GivenRows, ts?: string): Promise<void> {
  const fields = 'schema' in givenRows ? givenRows.schema.fields : undefined
  const rows = 'schema' in givenRows ? recordsOf(givenRows) : givenRows
  const names = fields?.map(({ name }) => name) ?? [...new Set(rows.flatMap((row) => Object.keys(row)))]
  // Columns whose numbers are milliseconds since 1970, with a fraction of microseconds.
  const fieldsOf = (word: string): ReadonlySet<string> =>
    new Set(fields?.filter(({ type }) => String(type).startsWith(word)).map(({ name }) => name))
  const instants = fieldsOf('Timestamp')
  const dates = fieldsOf('Date')
  const columns = names.map((name) => {
    const kinds = new Set(rows.map((row) => kindOf(row[name])).filter((kind) => kind !== 'null'))
    const [kind = 'string'] = kinds
    if (dates.has(name)) return { name, type: 'DATE' }
    if (instants.has(name) || (ts !== undefined && isSameName(name, ts) && kind === 'string'))
      return { name, type: 'TIMESTAMPTZ' }
    return { name, type: kinds.size === 1 ? (types[kind] ?? 'VARCHAR') : 'VARCHAR' }
  })
  const cells = rows.map((row) =>
    names.map((name) => {
      const cell = cellOf(row[name], instants.has(name) || dates.has(name))
      return dates.has(name) ? (cell?.slice(0, 10) ?? null) : cell
    }),
  )
  const typedCells = columns.map(({ name, type }, n) => `CAST(cells[${n + 1}] AS ${type}) AS ${quoteName(name)}`)
  await session.run(
    `CREATE OR REPLACE TEMP TABLE ${quoteName(table)} AS SELECT ${typedCells.length === 0 ? '1 AS nothing' : typedCells.join(', ')}
     FROM (SELECT unnest(from_json($1, '[["VARCHAR"]]')) AS cells)`,
    [JSON.stringify(cells)],
  )
}

function recordsOf(table: Table): readonly Given[] {
  const columns = table.schema.fields.map(({ name }, n) => [name, table.getChildAt(n)] as const)
  return Array.from({ length: table.numRows }, (_, i) =>
    Object.fromEntries(columns.map(([name, column]): [string, unknown] => [name, column?.get(i)])),
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
  if (typeof value === 'number')
    return instant ? formatMicros(Math.round(value * 1000)) : Object.is(value, -0) ? '-0' : String(value)
  if (typeof value === 'object') return jsonText(value)
  return typeof value === 'string' ? value : `${value as bigint | boolean}`
}
