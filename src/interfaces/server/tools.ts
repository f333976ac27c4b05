import { usage } from '../../base/errors.ts'
import { isObject, jsonOf, jsonText } from '../../base/json.ts'
import { proveNoLookahead } from '../../trust/lookahead/lookahead.ts'
import { type Note, noteText } from '../../query/note-texts.ts'
import { knowledgeOptions, type Options, type ReadOptions } from '../../query/options.ts'
import { panelSpec, panelTable } from '../../query/panel.ts'
import { metricsOf } from '../../query/points.ts'
import { judgeQuestion, type Question } from '../../query/question.ts'
import { splitKnownOptions, readOptions } from '../../query/read-options.ts'
import { quote } from '../../lake/store/engine.ts'
import { didYouMean, nearPaths } from '../../base/suggestion.ts'
import type { Desk } from './session-manager.ts'
import { type AnswerPage, pageBytes, type Pages } from './result-pages.ts'
import { wholeLakeOnly } from './refusal.ts'
import type { Asker } from './turns.ts'

/** Answers a call of a tool with a document as JSON text; the client may go away meanwhile. */
export type ToolCall = (args: unknown, asker: Asker) => Promise<string>

/** One tool for agents. */
export interface Tool {
  readonly name: string
  readonly about: string
  readonly input: Options
  readonly call: ToolCall
}

/** Rows of a page: the default, and the maximum. */
const pageRows = { usual: 200, most: 2000 }
/** Maximum bytes of a page for its notes, and for what precedes its rows, without the notes. */
const noteBytes = 4000
const headBytes = 10_000

const paging = {
  rows: { kind: 'count', most: pageRows.most, about: `rows of a page, ${pageRows.usual} unless said` },
  cursor: {
    kind: 'text',
    about: 'the cursor of the page before, with the same arguments; continues in the same version of the lake',
  },
  show_sql: { kind: 'switch', about: 'also returns the SQL that ran' },
} as const satisfies Options
/** Options with a mandatory `as_of`: the answer contains only what was knowable at it. */
const timedOptions = { ...knowledgeOptions, as_of: { ...knowledgeOptions.as_of, required: true } } as const
const sqlOption = { sql: { kind: 'text', about: 'one SELECT', required: true } } as const satisfies Options

/** Returns a page of an answer as a document; `beside` is added to its head. */
type AskPage = (question: Question, paged: Paged, asker: Asker, beside?: object) => Promise<string>
type Paged = ReadOptions<typeof paging>

/** Sources of the tools; `standing` reports the current state of the lake, as `status --json` does. */
type ToolsFrom = { readonly desk: Desk; readonly pages: Pages; readonly standing: () => Promise<object> }

/** Builds the tools of a lake. If rows are returned an instant is mandatory: `as_of`, or `ts` in the decisions. */
export function toolsOf({ desk, pages, standing }: ToolsFrom): readonly Tool[] {
  const page: AskPage = async (question, { rows = pageRows.usual, cursor, showSql = false }, asker, beside) => {
    const head = (page: AnswerPage): string => headOf(question, page, { ...beside, ...(showSql && { sql: page.sql }) })
    const limits = { rows, room: (page: AnswerPage): number => roomBeside(head(page)) }
    const refusalText =
      cursor === undefined ? pages.first(question, limits, asker) : pages.next(question, cursor, limits, asker)
    const { rows: lines, cursor: next, notes } = await refusalText
    const tail = jsonText({ ...notesIn(notes), row_count: lines.length, cursor: next }).slice(1, -1)
    // Its rows are at the end, a line each.
    return `${head(await refusalText)},${tail},"rows":[${lines.map((row) => `\n${row}`).join(',')}]}`
  }
  return [
    tool(
      'metrics',
      'The metrics that there are, from the catalogue: path, meaning, defaults, and the rule by which a value ' +
        'becomes knowable.',
      { match: { kind: 'text', about: 'only paths and meanings with this text' }, ...paging },
      async ({ match, ...paged }, asker) =>
        await page({ knowledge: {}, sql: metricsSql(match), generated: true }, paged, asker),
    ),
    describeTool(page, pages, desk),
    tool(
      'query',
      'One SELECT in DuckDB SQL over the views and macros of the lake (points, series, endpoints, universe, ' +
        'history.*, pit_join, …) as known at as_of. No files, no settings, nothing is written.',
      { ...sqlOption, ...timedOptions, ...paging },
      async ({ sql, rows, cursor, showSql, ...knowledge }, asker) =>
        await page({ knowledge, sql }, { rows, cursor, showSql }, asker),
    ),
    panelTool(page),
    tool(
      'universe',
      'The tokenized products with issuer, asset and status, as known at ts; retired ones included.',
      {
        ts: { ...knowledgeOptions.as_of, required: true },
        condition: { kind: 'text', about: "on its columns: status = 'active'" },
        ...paging,
      },
      async ({ ts, condition, ...paged }, asker) => {
        const where = condition === undefined ? '' : `\nWHERE (\n${condition}\n)`
        const sql = `SELECT * FROM universe${where}\nORDER BY product_id`
        return await page({ knowledge: { asOf: ts }, sql, condition }, paged, asker)
      },
    ),
    lookaheadTool(desk),
    tool('status', 'Whether the lake can be trusted today: coverage, freshness, gaps, violations.', {}, async () => {
      const { wall } = desk.means
      if (wall !== undefined) throw wholeLakeOnly('status', wall)
      using seat = await desk.sit({})
      return fitted({ lake: seat.facts, ...(await standing()) })
    }),
  ]
}

const describeOptions = {
  name: { kind: 'text', about: 'a metric, or a view such as points or history.products, or a macro', required: true },
  as_of: timedOptions.as_of,
  ...paging,
} as const satisfies Options

function describeTool(page: AskPage, pages: Pages, desk: Desk): Tool {
  return tool(
    'describe',
    'Everything about one metric (its endpoint, and its series as known at as_of), or the columns of a view or ' +
      'the parameters of a macro.',
    describeOptions,
    async ({ name, asOf, ...paged }, asker) => {
      const question = (sql: string): Question => ({ knowledge: { asOf }, sql, generated: true })
      const first = async (sql: string): Promise<string | undefined> =>
        (await pages.first(question(`${sql}\nLIMIT 1`), { rows: 1, room: () => pageBytes }, asker)).rows[0]
      const endpoint = await first(`SELECT * FROM endpoints WHERE metric = ${quote(name)}`)
      const series = question(`SELECT * FROM series WHERE metric = ${quote(name)} ORDER BY ALL`)
      if (endpoint !== undefined) return await page(series, paged, asker, { endpoint: jsonOf(endpoint) })
      if ((await first(objectSql(name))) === undefined) throw await unknown(desk, name)
      return await page(question(objectSql(name)), paged, asker)
    },
  )
}

function panelTool(page: AskPage): Tool {
  const beside = { ...knowledgeOptions, ...paging }
  return {
    name: 'panel',
    about:
      'A row for each decision and a column for each metric: the latest value that was knowable at the ts of the decision.',
    input: { ...panelTable, ...beside },
    call: async (args, asker) => {
      const { own, rest } = splitKnownOptions(beside, recordOf(args))
      const { rows, cursor, showSql, ...knowledge } = readOptions(beside, own, 'fields')
      return await page({ knowledge, panel: panelSpec(rest, 'fields') }, { rows, cursor, showSql }, asker)
    },
  }
}

/** Options of lookahead. */
export const lookaheadOptions = {
  ...sqlOption,
  ts: { kind: 'text', about: 'the column with the instant of each row (ts)' },
  labels: { kind: 'list', about: 'columns that may look ahead, such as the return that a model learns' },
  cutoffs: { kind: 'count', most: 200, about: 'number of runs in which a part of the future is hidden (20)' },
  show_sql: paging.show_sql,
} as const satisfies Options

function tool<const Table extends Options>(
  name: string,
  about: string,
  input: Table,
  answer: (args: ReadOptions<Table>, asker: Asker) => Promise<string>,
): Tool {
  return {
    name,
    about,
    input,
    call: async (args, asker) => await answer(readOptions(input, recordOf(args), 'fields'), asker),
  }
}

const recordOf = (args: unknown): Readonly<Record<string, unknown>> => (isObject(args) ? args : {})

/** Builds the head of a page, without its notes and rows. */
function headOf({ knowledge }: Question, { facts, columns }: AnswerPage, beside: object): string {
  const { asOf: as_of = null, observedAsOf: observed_as_of = null, ...settings } = knowledge
  return jsonText({ lake: facts, as_of, observed_as_of, ...settings, ...beside, columns }).slice(0, -1)
}

/** Computes the bytes that are left for rows, whatever the notes will be. */
function roomBeside(head: string): number {
  const bytes = Buffer.byteLength(head)
  if (bytes <= headBytes) return pageBytes - noteBytes - bytes
  const next = 'name fewer columns, a calendar instead of decisions, or leave out show_sql'
  throw usage('the answer', { expected: `names of columns, and SQL, of ${headBytes} bytes`, got: `${bytes}`, next })
}

/** Formats as many notes as there is room for, as words and as data. */
function notesIn(all: readonly Note[]): object {
  const notes: { notes: string[]; noted: Note[] } = { notes: [], noted: [] }
  for (const note of all) {
    const more = { notes: [...notes.notes, noteText(note, 'fields')], noted: [...notes.noted, note] }
    if (Buffer.byteLength(jsonText(more)) > noteBytes - 200)
      return { ...notes, left_out: { notes: all.length - notes.notes.length } }
    Object.assign(notes, more)
  }
  return notes
}

/**
 * Shrinks a document to fit on a page: half of its longest list is left out, as often as is needed, and the number is
 * stated.
 */
function fitted(document: Readonly<Record<string, unknown>>): string {
  const all = jsonText(document)
  if (Buffer.byteLength(all) <= pageBytes) return all
  const lists = Object.entries(document).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]))
  const [name, list] = lists.toSorted(([, a], [, b]) => jsonText(b).length - jsonText(a).length)[0] ?? ['', []]
  if (list.length === 0) throw usage('the answer', { expected: `at most ${pageBytes} bytes`, got: `${all.length}` })
  const kept = list.slice(0, Math.floor(list.length / 2))
  const before = document['left_out'] as Readonly<Record<string, number>> | undefined
  const left_out = { ...before, [name]: list.length - kept.length + (before?.[name] ?? 0) }
  return fitted({ ...document, [name]: kept, left_out })
}

function metricsSql(match = ''): string {
  const like = quote(match)
  return `SELECT metric, about, default_interval, default_currency, default_exchange, default_network, rule, basis
FROM endpoints
WHERE contains(lower(metric), lower(${like})) OR contains(lower(about), lower(${like}))
ORDER BY metric`
}

function objectSql(name: string): string {
  const quotedName = quote(name)
  return `SELECT column_name AS name, data_type AS type, comment FROM duckdb_columns()
WHERE NOT internal AND ${quotedName} IN (table_name, schema_name || '.' || table_name)
UNION ALL SELECT function_name, 'macro(' || array_to_string(parameters, ', ') || ')', comment FROM duckdb_functions()
WHERE NOT internal AND function_name = ${quotedName}`
}

const objectsSql = `SELECT DISTINCT CASE schema_name WHEN 'main' THEN '' ELSE schema_name || '.' END || view_name AS name
FROM duckdb_views() WHERE NOT internal
UNION SELECT function_name FROM duckdb_functions() WHERE NOT internal`

async function unknown(desk: Desk, name: string) {
  using seat = await desk.sit({})
  const objects = await seat.engine.rows<{ name: string }>(objectsSql)
  const near = nearPaths(name, [...(await metricsOf(seat.engine)), ...objects.map((object) => object.name)])
  const next = didYouMean(near, 'metrics lists them')
  return usage(name, { expected: 'a metric, a view or a macro', got: 'an unknown name', next })
}

/**
 * Builds the tool that judges whether a query looks ahead; that needs the whole lake, which is not available under an
 * as_of limit.
 */
export const lookaheadTool = (desk: Desk): Tool =>
  tool(
    'lookahead',
    'Proves or disproves that a query looks ahead: it runs on the whole lake and again without the future. Its ' +
      'rows need an instant of their own.',
    lookaheadOptions,
    async (question, asker) => await lookahead(desk, question, asker),
  )

async function lookahead(desk: Desk, options: ReadOptions<typeof lookaheadOptions>, asker: Asker) {
  const { wall } = desk.means
  if (wall !== undefined) throw wholeLakeOnly('lookahead', wall)
  return await desk.turn(asker, async (run) => {
    using seat = await desk.sit({})
    const { ts = 'ts', labels = [], cutoffs = 20 } = options
    const { sql } = await judgeQuestion({ sql: options.sql }, seat.engine, run)
    const proof = await proveNoLookahead(
      // The settings of a seat are fixed: a question with a number of threads gets an engine of its own.
      async (threads) => (threads === undefined ? await seat.engine.session() : await desk.open(threads)),
      { sql, ts, labels, cutoffs, tolerance: 0, door: 'fields' },
      run,
    )
    return fitted({ lake: seat.facts, ...(options.showSql === true && { sql }), ...proof })
  })
}
