import { usage } from '../../base/errors.ts'
import { closing } from '../../query/lake.ts'
import { quoteName } from '../../lake/store/engine.ts'
import type { Ready } from '../../query/gate.ts'
import { jsonLines, type ResultLines } from '../../query/json-lines.ts'
import { typesOf } from '../../query/projection.ts'
import { runCancellable, type RunDeps } from '../../query/run.ts'
import type { Note } from '../../query/note-texts.ts'
import { judgeQuestion, type JudgedQuestion, type Question } from '../../query/question.ts'
import type { Desk, LakeFacts, Seat } from './session-manager.ts'
import type { Asker } from './turns.ts'

/** Maximum size of a page of an answer. */
interface PageLimits {
  readonly rows: number
  /** Returns the bytes that the text of the rows may have in addition to the rest of the page. */
  readonly room: (page: AnswerPage) => number
}

/** A part of an answer: rows as JSON objects, a text each. */
export interface AnswerPage {
  readonly facts: LakeFacts
  readonly sql: string
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly string[]
  /** Cursor for the next page, of the same version; null at the end. */
  readonly cursor: string | null
  readonly notes: readonly Note[]
}

/** Bytes of the text of a page, and so of the values of a row: agents read into what they keep in mind. */
export const pageBytes = 20_000
/** Maximum number of answers that are kept open for their next pages, and their time, in milliseconds. */
const mostOpen = 8
const patience = 600_000

/** An answer of which a part was returned. */
interface OpenAnswer {
  /** The question as JSON text. */
  readonly question: string
  readonly judged: JudgedQuestion
  /** Session that returns the answer. */
  readonly seat: Seat
  readonly answer: ResultLines
  /** Rows that were read and not returned yet, a JSON text each. */
  waiting: readonly string[]
  /** Number of rows that were returned. */
  told: number
  /** Number of the next page, from 1. */
  page: number
  /** Time when it was last used, milliseconds. */
  used: number
}

/** Dependencies of pages on the outside world. */
interface PagesDeps {
  /** Milliseconds that only go on. */
  readonly elapsed: () => number
  /** Draws a name that cannot be guessed. */
  readonly draw: () => string
}

/**
 * Answers in pages. An unfinished answer stays open with its session: the next page is of the same version and in the
 * same order, even after further commits. One that was dropped is reported as over, never answered anew.
 */
export class Pages implements Disposable {
  readonly #desk: Desk
  readonly #deps: PagesDeps
  readonly #open = new Map<string, OpenAnswer>()

  constructor(desk: Desk, deps: PagesDeps) {
    this.#desk = desk
    this.#deps = deps
  }

  /** Returns the first page of an answer. */
  async first(question: Question, limits: PageLimits, asker: Asker): Promise<AnswerPage> {
    return await this.#desk.turn(asker, async (run) => {
      const seat = await this.#desk.sit(question.knowledge)
      return await closing(seat, async () => this.#tell(await begin(question, seat, run), limits, run))
    })
  }

  /** Returns the next page, for a client that sends the same question with the last cursor. */
  async next(question: Question, cursor: string, limits: PageLimits, asker: Asker): Promise<AnswerPage> {
    const [id = '', page = ''] = cursor.split('.')
    const open = this.#open.get(id)
    const wrong = (expected: string, got: string) =>
      usage('cursor', { expected, got, next: 'send the query again without a cursor' })
    if (open === undefined) throw wrong('one of an answer that is still open', 'one that is over or unknown')
    if (open.question !== JSON.stringify(question)) throw wrong('the question that it came with', 'another one')
    if (page !== String(open.page)) throw wrong('the one that came last', 'one that was used')
    // Out of the others' reach while it is read: one that fails is over.
    this.#open.delete(id)
    try {
      return await this.#desk.turn(asker, async (run) => await this.#tell(open, limits, run))
    } catch (error) {
      await putAway(open)
      throw error
    }
  }

  /** Puts all answers away. */
  [Symbol.dispose](): void {
    for (const id of this.#open.keys()) this.#drop(id)
  }

  async #tell(open: OpenAnswer, limits: PageLimits, run: RunDeps): Promise<AnswerPage> {
    const { seat, judged, answer } = open
    const { sql, ready } = judged
    const columns = ready.columns.map(({ type }, k) => ({
      name: answer.names[k] ?? '',
      type: type.alias ?? String(type),
    }))
    const notes = open.told === 0 ? judged.notes : []
    const head: AnswerPage = { facts: seat.facts, sql, columns, rows: [], cursor: null, notes }
    const most = { rows: limits.rows, bytes: limits.room(head) }
    const rows = await runCancellable(seat.engine, sql, run, async () => await take(open, most))
    open.told += rows.length
    const page = { ...head, rows }
    if (open.waiting.length > 0) return { ...page, cursor: this.#keep(open) }
    const doubts = await judged.doubts({ rows: answer.filled.rows, empty: answer.filled.empty() })
    seat[Symbol.dispose]()
    return { ...page, cursor: null, notes: [...page.notes, ...doubts] }
  }

  #keep(open: OpenAnswer): string {
    const id = this.#deps.draw()
    open.page++
    open.used = this.#deps.elapsed()
    this.#open.set(id, open)
    // An older version takes memory of its own: only the newest two are kept.
    const openings = [...new Set([...this.#open.values()].map(({ seat }) => seat.opening))].toSorted((a, b) => b - a)
    const oldest = openings[1] ?? openings[0] ?? 0
    for (const [other, { seat, used }] of this.#open)
      if (this.#open.size > mostOpen || seat.opening < oldest || this.#deps.elapsed() - used > patience)
        this.#drop(other)
    return `${id}.${open.page}`
  }

  #drop(id: string): void {
    const open = this.#open.get(id)
    this.#open.delete(id)
    if (open !== undefined) void putAway(open)
  }
}

async function begin(question: Question, seat: Seat, run: RunDeps): Promise<OpenAnswer> {
  const judged = await judgeQuestion(question, seat.engine, run)
  const { ready } = judged
  const answer = await runCancellable(seat.engine, judged.sql, run, async () =>
    jsonLines(seat.engine, { ...ready, text: boundedRows(ready) }, judged.by),
  )
  const waiting: readonly string[] = []
  return { question: JSON.stringify(question), judged, seat, answer, waiting, told: 0, page: 1, used: 0 }
}

/**
 * Takes as many rows as fit on a page; at least one, or it is refused. The rest waits, so that it is known whether
 * there is more.
 */
async function take(
  open: OpenAnswer,
  most: { readonly rows: number; readonly bytes: number },
): Promise<readonly string[]> {
  const rows: string[] = []
  let bytes = 0
  for (;;) {
    while (open.waiting.length === 0) {
      const next = await open.answer.lines.next()
      if (next.done === true) return rows
      open.waiting = next.value
    }
    let count = 0
    for (const row of open.waiting) {
      const more = bytes + Buffer.byteLength(row) + 2
      if (rows.length + count === most.rows || (rows.length + count > 0 && more > most.bytes)) break
      if (more > most.bytes)
        throw usage('SQL', { expected: `rows of at most ${most.bytes} bytes`, got: `one of ${more}`, next: shorter })
      bytes = more
      count++
    }
    rows.push(...open.waiting.slice(0, count))
    open.waiting = open.waiting.slice(count)
    if (open.waiting.length > 0) return rows
  }
}

/** Ends the stream, then its session. */
async function putAway({ answer, seat }: OpenAnswer): Promise<void> {
  try {
    await answer.lines.return(undefined)
  } catch {
    // The rest of its answer is no longer requested.
  } finally {
    seat[Symbol.dispose]()
  }
}

const shorter = 'name fewer columns, or cut texts with left(x, 1000)'

/** Types of which a value has a few bytes. */
const short =
  typesOf(`BOOLEAN TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT HUGEINT UHUGEINT FLOAT
  DOUBLE DECIMAL DATE TIME TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS TIMESTAMP_TZ TIME_TZ INTERVAL UUID`)

/** Builds the statement that fails at a row that is too long before any other code receives it. */
function boundedRows({ text, columns }: Ready): string {
  const names = columns.map((_, k) => quoteName(`c${k}`))
  const long = names.filter((_, k) => !short.has(columns[k]?.type.typeId ?? -1))
  const [first] = long
  if (first === undefined) return text
  const length = long.map((name) => `coalesce(strlen(CAST(${name} AS VARCHAR)), 0)`).join(' + ')
  const words = `'a row of ' || (${length}) || ' bytes is longer than the ${pageBytes} of a page: ${shorter}'`
  const parts = names.map((name) =>
    name === first ? `CASE WHEN ${length} > ${pageBytes} THEN error(${words}) ELSE ${name} END AS ${name}` : name,
  )
  return `SELECT ${parts.join(', ')} FROM (${text}\n) AS answer(${names.join(', ')})`
}
