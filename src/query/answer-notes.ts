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

/** Size of an answer: its rows, and its empty columns. */
export interface Extent {
  readonly rows: number
  readonly empty: readonly Empty[]
}

/** Metric that a query names, in the fields that `question_notes` reads; `*` is any metric. */
interface AskedMetric extends Readonly<Record<'interval' | 'asset' | Side, readonly string[]>> {
  /** Path, with a pointer behind `#` where one was named. */
  readonly name: string
  readonly component: string | null
  /** Whether the catalogue's default dimensions apply if the query names none. */
  readonly defaults: boolean
  /** Whether the metric returned nothing for any asset. */
  readonly everywhere: boolean
  /** Newest timestamp queried; null if there is no such limit. */
  readonly last: string | null
  /** Whether the query restricts `t` to a range. */
  readonly times: boolean
}

/** A text with which a column of the universe is compared. */
interface AskedMember {
  readonly column: string
  readonly value: string
}

/** Decisions later than the resolved range of a metric: how many, and the first of them. */
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
  /** Decisions in an unresolved range, by metric. */
  readonly beyond?: readonly UnresolvedDecisions[]
  /** Reason why further facts are missing; only the program adds it, the macro does not read it. */
  readonly unnoted?: LostNotes
}

/** Reasons why notes could not be computed, in the words of the note. */
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

/** Builds the entry for a metric; a query without restrictions unless `rest` states some. */
function askedMetric(name: string, rest: Partial<AskedMetric>): AskedMetric {
  const any = { interval: [], asset: [], currency: [], exchange: [], network: [], component: null, last: null }
  return { name, ...any, defaults: true, everywhere: false, times: false, ...rest }
}

/** Columns that are null for most metrics. */
const oftenNull = words('currency exchange network o extra computed_at component')

/** Whether a result looks wrong: no rows, an empty column that is usually filled, or a count of 0. */
export function isDoubtful(rows: number, empty: readonly Empty[], counts: boolean): boolean {
  const isStrange = ({ column, everywhere, zero }: Empty): boolean =>
    zero === true ? counts : everywhere && !oftenNull.has(column.toLowerCase())
  return rows === 0 || empty.some(isStrange)
}

/**
 * Computes the notes of the lake on a question. Where `as_of` is mandatory (`cut`) they show only what was known then;
 * elsewhere they look past it, because the time from which something is known is what helps.
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

/** Builds the note about notes that are missing; none if none are. */
function lostNote(reason: LostNotes | undefined): readonly Note[] {
  return reason === undefined ? [] : [{ code: 'unnoted', subject: reason }]
}

/** Reads the `as_of` of a session; null if none is set. */
export async function asOfIn(engine: Engine): Promise<string | null> {
  const [row] = await engine.rows<{ at: string | null }>(`SELECT CAST(${instantSql('as_of')} AS VARCHAR) AS at`)
  return row?.at ?? null
}

/**
 * Classifies an error that loses notes; undefined if the caller's own relation caused it, or views that cannot answer.
 */
function lossIn(error: unknown): LostNotes | undefined {
  const lack = lackIn(error)
  if (lack !== undefined) return `too little ${lack}`
  const isGrave = error instanceof Error && /^(?:INTERNAL|FATAL|IO) Error/.test(error.message)
  return isGrave ? 'an error of DuckDB, please report it' : undefined
}

/**
 * Runs side questions that never make the main question fail: a lake of a different program, for example, may not know
 * how to answer. It remembers what is lost for want of memory or by an error of the engine, so that a note can name it.
 */
class Aside {
  #lost: LostNotes | undefined

  /** Runs the work; undefined if it fails. */
  async ask<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (isCancel(error)) throw error
      this.#lost ??= lossIn(error)
      return undefined
    }
  }

  /** Returns the note on questions that were lost; empty if none was. */
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

/** Converts a row to a note; of its statistics only those that its words show. */
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

/** Content of statements, as the macro `question_asked` of the lake reports it. */
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

/** Call of a join: the metrics it queries, with the options as the caller gave them. */
interface AskedJoin {
  readonly metrics: readonly AskedMetric[]
  /** Interval of the metrics; null if it is no constant. */
  readonly interval: string | null
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  /** Whether decisions later than the resolved range get a value. */
  readonly answers_unsettled: boolean
  /** SELECT of the caller of asset, ts and latency of each decision, not judged yet; null where it is not found. */
  readonly decisions: string | null
}

/** A join with what its decisions tell. */
interface DecidedJoin {
  readonly metrics: readonly AskedMetric[]
  readonly beyond: readonly UnresolvedDecisions[]
}

/** Parsed scripts by their text; nothing else is read. */
const askedBy = new Remembered<AskedSql | null>()

/** Lists what the statements of a script query. */
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

/** Finds how far the decisions of each join reach and, if one may be late, counts them. */
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

/** Computes the reach of a join's decisions; undefined if the decisions cannot be determined. */
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
      ? await askDecisions<UnresolvedDecisions & Row>(engine, text, 'question_unresolved', [
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

/** Range that the decisions of a join cover. */
interface DecisionReach {
  /** The ts of the newest decision; null without one. */
  readonly last: string | null
  /** Assets of the decisions, as JSON. */
  readonly assets: string
  /** Whether a decision may be later than the resolved range. */
  readonly late: boolean
}

/** Macros that take decisions, each with the arguments that follow them in a call. */
const decisionMacros = {
  question_reach: `from_json($1, '["VARCHAR"]'), $2`,
  question_unresolved: `from_json($1, '["VARCHAR"]'), $2, currency := $3, exchange := $4, network := $5`,
} as const

/** Runs a macro over the decisions that a judged SELECT returns; every value of the question is a parameter. */
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
 * Computes what the lake notes of a query with so many columns (0 if it returns no rows): at once, and when the size of
 * its answer is known. The statements are analysed only if that may matter.
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

/** Finds the values with which a condition on the universe compares its columns. */
export async function membersIn(engine: Engine, condition: string): Promise<AskedNotes> {
  const aside = new Aside()
  const { members = [] } = await askedInSql(engine, `SELECT 1 FROM universe WHERE (\n${condition}\n)`, aside)
  return { members, ...aside.lost() }
}

/**
 * Lists what a panel, or a join with one column `found`, queried of the metrics that returned nothing for some assets.
 */
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

/** Lists what a filter of points queries of each metric. */
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
