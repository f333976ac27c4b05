import { type Engine, quote, quoteList, type Row } from '../lake/store/engine.ts'
import type { NoteCode } from './views/question-words.ts'
import { instantSql } from './views/template.ts'
import type { Empty } from './filled-columns.ts'
import { runCancellable, isCancel, type RunDeps } from './run.ts'
import type { Note } from './note-texts.ts'
import { withAsOf } from './lake.ts'
import { lackIn } from '../lake/store/memory.ts'
import type { Parameters } from '../lake/store/sql.ts'
import { admit } from './gate.ts'
import { words } from './gate-lists.ts'
import type { PanelSpec } from './panel.ts'
import type { PointsFilter, Standard } from './points.ts'
import { readsRegistry, Remembered, treeOf } from './parse-tree.ts'
import { statementsOf } from './statements.ts'

/** How much an answer told. */
export interface Extent {
  readonly rows: number
  readonly empty: readonly Empty[]
}

/** What was asked of a metric, as `question_notes` takes it; `*` is any metric. */
interface AskedMetric extends Readonly<Record<'interval' | 'asset' | Side, readonly string[]>> {
  /** Path, with a pointer behind `#` where one was named. */
  readonly name: string
  readonly component: string | null
  /** Whether the catalogue's dimensions stand in where none is named. */
  readonly defaults: boolean
  /** Whether nothing was told of any asset. */
  readonly everywhere: boolean
  /** The newest instant asked; null where all is. */
  readonly last: string | null
  /** Whether a part of all `t` was asked. */
  readonly times: boolean
}

/** A text with which a column of the universe is compared. */
interface AskedMember {
  readonly column: string
  readonly value: string
}

/** Decisions later than what is settled of a metric: how many, and the first of them. */
interface UnresolvedDecisions {
  readonly metric: string
  readonly decisions: number
  readonly since: string
}

/**
 * Facts about a question from which the macro `question_notes` derives notes; each field is absent if there is none.
 */
export interface AskedNotes {
  /** The metrics that the question names. */
  readonly metrics?: readonly AskedMetric[]
  /** Text constants of the query. */
  readonly texts?: readonly string[]
  /** Names of the views and macros that the query reads. */
  readonly tables?: readonly string[]
  /** The ends of the calendars in the query. */
  readonly grids?: readonly CalendarEnds[]
  /** Texts with which the query compares columns of the registry. */
  readonly members?: readonly AskedMember[]
  /** Number of decisions without a ts. */
  readonly without_instant?: number
  /** Whether the answer has no rows, or one row of nothing but NULL. */
  readonly empty?: boolean
  /** Metrics of which decisions lie in an unresolved range. */
  readonly beyond?: readonly UnresolvedDecisions[]
  /** Why further facts are missing; only the program adds it, the macro does not read it. */
  readonly unnoted?: LostNotes
}

/** Why notes could not be worked out, as their note says it. */
type LostNotes = 'too little memory' | 'too little disk' | 'an error of DuckDB, please report it'

/** Notes of a query: those that are known before it runs, and those that depend on its answer. */
export interface QueryNotes {
  /** Facts known before the query runs. */
  readonly notes: AskedNotes
  /**
   * Returns further facts once rows and empty columns of the answer are known; an empty object if nothing is doubtful.
   */
  readonly doubts: (answer: Extent) => Promise<AskedNotes>
}

/** What was asked of a metric, all of it where nothing else is said. */
function askedMetric(name: string, rest: Partial<AskedMetric>): AskedMetric {
  const any = { interval: [], asset: [], currency: [], exchange: [], network: [], component: null, last: null }
  return { name, ...any, defaults: true, everywhere: false, times: false, ...rest }
}

/** Columns that hold nothing for most metrics. */
const oftenNull = words('currency exchange network o extra computed_at component')

/**
 * Whether a result is one to wonder about: no rows, a column that tells nothing although it mostly does, a count of
 * nothing.
 */
export function isDoubtful(rows: number, empty: readonly Empty[], counts: boolean): boolean {
  const isStrange = ({ column, everywhere, zero }: Empty): boolean =>
    zero === true ? counts : everywhere && !oftenNull.has(column.toLowerCase())
  return rows === 0 || empty.some(isStrange)
}

/**
 * What the lake notes of a question. Where `as_of` is mandatory (`cut`) it tells what was known then and no more;
 * elsewhere it looks past it, because since when something is known is what helps.
 */
export async function notesOf(
  engine: Engine,
  { unnoted, ...asked }: AskedNotes,
  cut: boolean,
): Promise<readonly Note[]> {
  const lostNotes = lostNote(unnoted)
  const isAsked = (answer: unknown): boolean =>
    answer === true || Number(answer) > 0 || (Array.isArray(answer) && answer.length > 0)
  if (!Object.values(asked).some(isAsked)) return lostNotes
  try {
    const asOf = await asOfIn(engine)
    const question = quote(JSON.stringify({ ...asked, as_of: asOf }))
    const ask = async (): Promise<Note[]> =>
      (await engine.rows<NoteRow>(`FROM question_notes(${question})`)).map(noteOf)
    return [...(cut || asOf === null ? await ask() : await withAsOf(engine, undefined, ask)), ...lostNotes]
  } catch (error) {
    if (isCancel(error)) throw error
    // The views of another program may not know how to answer.
    const isOther = error instanceof Error && /^(?:Catalog|Binder) Error/.test(error.message)
    return isOther ? lostNotes : lostNote(unnoted ?? lossIn(error) ?? 'an error of DuckDB, please report it')
  }
}

/** The note about notes that are missing; none if none are. */
function lostNote(reason: LostNotes | undefined): readonly Note[] {
  return reason === undefined ? [] : [{ code: 'unnoted', subject: reason }]
}

/** The instant at which a session stands; null where it stands at none. */
export async function asOfIn(engine: Engine): Promise<string | null> {
  const [row] = await engine.rows<{ at: string | null }>(`SELECT CAST(${instantSql('as_of')} AS VARCHAR) AS at`)
  return row?.at ?? null
}

/** Why an error loses notes; undefined for one of the caller's own relation, or of views that cannot answer. */
function lossIn(error: unknown): LostNotes | undefined {
  const lack = lackIn(error)
  if (lack !== undefined) return `too little ${lack}`
  const isGrave = error instanceof Error && /^(?:INTERNAL|FATAL|IO) Error/.test(error.message)
  return isGrave ? 'an error of DuckDB, please report it' : undefined
}

/**
 * Questions beside a question, which never stand in its way: a lake of another program, for one, may not know how to
 * answer. What is lost for want of memory or by an error of the engine is remembered, so that a note can name it.
 */
class Aside {
  #lost: LostNotes | undefined

  /** Does the work; undefined if it fails. */
  async ask<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (isCancel(error)) throw error
      this.#lost ??= lossIn(error)
      return undefined
    }
  }

  /** What is to be noted of questions that were lost; nothing if none was. */
  lost(): AskedNotes {
    return this.#lost === undefined ? {} : { unnoted: this.#lost }
  }
}

type NoteRow = {
  readonly code: NoteCode
  readonly subject: string
  readonly figures: string | null
  readonly near: string[]
  readonly there: string[]
  readonly words: string
}

/** A note of the lake; of its figures those that its words tell. */
function noteOf({ code, subject, figures, near, there, words }: NoteRow): Note {
  const all = Object.entries(JSON.parse(figures ?? '{}') as Readonly<Record<string, string | number | null>>)
  const shownFigures = all.filter(
    (figure): figure is [string, string | number] => figure[1] !== null && words.includes(`{${figure[0]}}`),
  )
  return {
    code,
    subject,
    ...(shownFigures.length > 0 && { figures: Object.fromEntries(shownFigures) }),
    ...(near.length > 0 && { near }),
    ...(there.length > 0 && { there }),
  }
}

/** First instant and end of a calendar in a query; null if an end is not a constant. */
type CalendarEnds = readonly (string | null)[]

/** What statements query, as the macro `question_asked` of the lake reports it. */
interface AskedSql {
  readonly tables: readonly string[]
  readonly texts: readonly string[]
  /** The ends of each calendar in the query. */
  readonly grids?: readonly CalendarEnds[]
  readonly members?: readonly AskedMember[]
  /** Whether the answer counts something. */
  readonly counts: boolean
  readonly metrics: readonly AskedMetric[]
  readonly joins: readonly AskedJoin[]
}

/** A call of a join: what it asks of its metrics, with the options as the caller gave them. */
interface AskedJoin {
  readonly metrics: readonly AskedMetric[]
  /** Null where it is no constant. */
  readonly interval: string | null
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  /** Whether decisions later than what is settled get a value. */
  readonly answers_unsettled: boolean
  /** The caller's SELECT of asset, ts and latency of each decision, not judged yet; null where it is not found. */
  readonly decisions: string | null
}

/** A join with what its decisions tell. */
interface DecidedJoin {
  readonly metrics: readonly AskedMetric[]
  readonly beyond: readonly UnresolvedDecisions[]
}

/** Parsed scripts by their text; nothing else is read. */
const askedBy = new Remembered<AskedSql | null>()

/** What the words of a script ask. */
async function askedInSql(engine: Engine, sql: string, aside: Aside, parameters: Parameters = []): Promise<AskedSql> {
  // Those without a name are counted from 1.
  const namedValues = Object.entries<unknown>(
    Array.isArray(parameters) ? [null, ...(parameters as readonly unknown[])] : parameters,
  )
  const texts = Object.fromEntries(namedValues.filter(([, value]) => typeof value === 'string'))
  const list = quoteList(statementsOf(sql).map(({ text }) => text))
  const question = `FROM question_asked(${list}, ${quote(JSON.stringify(texts))})`
  const found = await aside.ask(async () =>
    askedBy.of(engine, question, async () => {
      const [row] = await engine.rows<{ asked: string }>(question)
      return JSON.parse(row?.asked ?? 'null') as AskedSql | null
    }),
  )
  return found ?? { tables: [], texts: [], counts: false, metrics: [], joins: [] }
}

/** Asks the decisions of joins how far they reach, and where one may be late, how many are. */
async function decidedBy(
  engine: Engine,
  joins: readonly AskedJoin[],
  mark: string | undefined,
  aside: Aside,
): Promise<DecidedJoin[]> {
  const found: DecidedJoin[] = []
  for (const join of joins) {
    const decided = await aside.ask(async () => decisionsOf(engine, join, mark))
    found.push(decided ?? { metrics: join.metrics, beyond: [] })
  }
  return found
}

/** What the decisions of a join tell; undefined where it is not found which they are. */
async function decisionsOf(
  engine: Engine,
  join: AskedJoin,
  mark: string | undefined,
): Promise<DecidedJoin | undefined> {
  if (join.decisions === null) return undefined
  // The one text of a caller: judged as a statement of its own it is one SELECT, so that nothing of it ends the
  // brackets.
  const { kind, text } = await admit(engine, join.decisions, undefined, mark)
  if (kind !== 'SELECT') return undefined
  const names = JSON.stringify(join.metrics.map(({ name }) => name))
  const [reach] = await askDecisions<DecisionReach & Row>(engine, text, 'question_reach', [names, join.interval])
  const { currency, exchange, network } = join
  const beyond =
    reach?.late === true && join.answers_unsettled
      ? await askDecisions<UnresolvedDecisions & Row>(engine, text, 'question_unsettled', [
          names,
          join.interval,
          currency,
          exchange,
          network,
        ])
      : []
  const reached = { last: reach?.last ?? null, asset: JSON.parse(reach?.assets ?? '[]') as readonly string[] }
  return { metrics: join.metrics.map((metric) => ({ ...metric, ...reached })), beyond }
}

/** How far the decisions of a join reach. */
interface DecisionReach {
  /** The ts of the newest decision; null without one. */
  readonly last: string | null
  /** The assets that are asked for, as JSON. */
  readonly assets: string
  /** Whether one may be later than what is settled. */
  readonly late: boolean
}

/** The macros that take decisions, and how the values of a question stand in their calls. */
const decisionMacros = {
  question_reach: `from_json($1, '["VARCHAR"]'), $2`,
  question_unsettled: `from_json($1, '["VARCHAR"]'), $2, currency := $3, exchange := $4, network := $5`,
} as const

/** Asks a macro about the decisions that a judged SELECT gives; every value of the question is a parameter. */
async function askDecisions<T extends Row>(
  engine: Engine,
  judged: string,
  macro: keyof typeof decisionMacros,
  values: Parameters,
): Promise<T[]> {
  const decisions = `WITH _pit_given (asset, ts, latency) AS (\n${judged}\n)`
  return await engine.ask<T>(`${decisions} FROM ${macro}('_pit_given', ${decisionMacros[macro]})`, values)
}

const joins = /\bpit_(?:join|long|window)\b/i

/**
 * What the lake is asked to note of a query with so many columns, 0 where it gives no rows: at once, and once it is
 * known how much its answer tells. What it asks is found out only where that may matter.
 */
export async function noticingSql(
  engine: Engine,
  sql: string,
  columns: number,
  run: RunDeps,
  parameters?: Parameters,
): Promise<QueryNotes> {
  return await runCancellable(engine, sql, run, async () => {
    const aside = new Aside()
    const isJoin = joins.test(sql)
    const isEarly =
      (await asOfIn(engine)) !== null &&
      (await readsRegistry(engine, await treeOf(engine, statementsOf(sql).at(-1)?.text ?? '')))
    let question = isJoin || isEarly ? await askedInSql(engine, sql, aside, parameters) : undefined
    const early = question?.joins.filter((join) => join.answers_unsettled) ?? []
    const decided = await decidedBy(engine, early, run.mark, aside)
    const notes: AskedNotes = {
      tables: isEarly ? (question?.tables ?? []) : [],
      beyond: decided.flatMap(({ beyond }) => beyond),
      ...aside.lost(),
    }
    const doubts = async ({ rows, empty }: Extent): Promise<AskedNotes> => {
      if (columns === 0 || (rows > 0 && empty.length === 0)) return {}
      question ??= await askedInSql(engine, sql, aside, parameters)
      if (!isDoubtful(rows, empty, question.counts)) return aside.lost()
      const { tables, texts, grids = [], members = [], joins: all, metrics: compared } = question
      const metrics = [
        ...(await decidedBy(engine, all, run.mark, aside)).flatMap((decision) => decision.metrics),
        ...compared,
      ]
      const assets = new Set(metrics.flatMap(({ asset }) => asset))
      const isNothing = rows === 0 || (rows === 1 && empty.length === columns)
      const unknown = texts.filter((text) => !assets.has(text))
      return { metrics, texts: unknown, tables, grids, members, empty: isNothing, ...aside.lost() }
    }
    return { notes, doubts }
  })
}

/** What a condition on the universe compares its columns with. */
export async function membersIn(engine: Engine, condition: string): Promise<AskedNotes> {
  const aside = new Aside()
  const { members = [] } = await askedInSql(engine, `SELECT 1 FROM universe WHERE (\n${condition}\n)`, aside)
  return { members, ...aside.lost() }
}

/** What a panel, or a join with one column `found`, asked of the metrics that told nothing of some assets. */
export function doubtsOfPanel(spec: PanelSpec, empty: readonly Empty[], last: string | null, foundColumn?: string) {
  const field = ['v', 't', 'available_at', 'age'].find((fieldName) =>
    (spec.fields ?? ['v']).some((name) => name === fieldName),
  )
  const { interval, component = null } = spec
  const metrics = spec.metrics.flatMap(({ name, metric }) => {
    const ownColumn = foundColumn ?? (field === 'v' ? name : field && `${name}.${field}`)
    const emptyColumn = empty.find(({ column }) => column === ownColumn)
    if (emptyColumn === undefined || emptyColumn.zero === true) return []
    const asset = emptyColumn.assets.filter((asset) => asset !== '')
    const rest = { asset, component, everywhere: emptyColumn.everywhere, last, ...sides(spec) }
    return [askedMetric(metric, { interval: [interval], ...rest })]
  })
  return { metrics }
}

/** What a filter of points asked of each metric. */
export function doubtsOfFilter(filter: PointsFilter, standards: readonly Standard[]): AskedNotes {
  const asset = [filter.assets ?? []].flat()
  const rest = { asset, times: filter.since !== undefined || filter.until !== undefined, ...sides(filter) }
  const metrics = [filter.metrics ?? '*'].flat().map((name) => {
    const interval = filter.interval ?? standards.find(({ metric }) => metric === name)?.interval
    return askedMetric(name, { interval: typeof interval === 'string' ? [interval] : [], ...rest })
  })
  return { metrics }
}

type Side = 'currency' | 'exchange' | 'network'

function sides(values: { readonly [name in Side]?: string | undefined }): Pick<AskedMetric, Side> {
  const list = (name: Side): readonly string[] => [values[name] ?? []].flat()
  return { currency: list('currency'), exchange: list('exchange'), network: list('network') }
}
