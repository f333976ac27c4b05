import { join } from 'node:path'
import { cleanUpAfterError, withCleanup } from '../../base/cleanup.ts'
import { usage } from '../../base/errors.ts'
import { isObject, jsonOf, jsonText, repeatedKey } from '../../base/json.ts'
import { noteTexts, type Note } from '../../query/note-texts.ts'
import { knowledgeOptions, type Options } from '../../query/options.ts'
import { panelSpec, panelSql, panelTable } from '../../query/panel.ts'
import { judgeQuestion, type Question } from '../../query/question.ts'
import { splitKnownOptions, readOptions, saysSame } from '../../query/read-options.ts'
import { type Format, formatFacts, formats, writeFile } from '../../query/write.ts'
import { explainChange } from '../../trust/results/explain-change.ts'
import { dateFile } from '../../trust/dating/dating.ts'
import { type DatingOptions, datingOptions } from '../../trust/dating/options.ts'
import { compressedEnding } from '../../lake/store/compressed-files.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { sizeOf, writePrivate } from '../../lake/store/files.ts'
import { outFile } from '../../lake/store/output.ts'
import { engineMemory } from '../../lake/store/memory.ts'
import { type Desk, type LakeFacts, writerPart } from './session-manager.ts'
import type { HttpQuestion, HttpResponse } from './listen.ts'
import { reportedRefusal, thrownBy, type ToldRefusal, wholeLakeOnly } from './refusal.ts'
import { lookaheadOptions, lookaheadTool } from './tools.ts'
import type { Asker } from './turns.ts'

/** Inputs of the paths. */
interface PathsInput {
  readonly desk: Desk
  /** A folder for answers on their way. */
  readonly scratch: string
  /** Draws a name that is not in use. */
  readonly draw: () => string
}

/** An answer of a path; a large body is a file. */
export type PathAnswer = Omit<HttpResponse, 'body'> & {
  readonly body: string | { readonly path: string; readonly bytes: number }
}

/** Handlers by path. */
type Paths = Readonly<Record<string, (question: HttpQuestion) => Promise<PathAnswer>>>

/** Paths of the server. */
export const pathNames: readonly string[] = ['/query', '/panel', '/metrics', '/lookahead', '/explain', '/when']
/** The paths that also take a POST. */
export const posts: readonly string[] = ['/query', '/panel', '/lookahead', '/explain', '/when']

/** The forms in which answers are sent. */
const served = formats.filter((name) => formatFacts[name].served !== undefined)
const typesOf = (name: Format): readonly string[] => formatFacts[name].served?.types ?? []

const formatOption = {
  format: { kind: 'choice', choices: served, about: 'of the answer; by Accept where none is named' },
} as const satisfies Options
const queryOptions = {
  ...knowledgeOptions,
  ...formatOption,
  sql: { kind: 'text', about: 'one SELECT', required: true },
} as const
const explainOptions = {
  result: { kind: 'text', about: 'a Parquet file that pitlake stamp wrote, in base64', required: true },
} as const satisfies Options
const whenOptions = {
  table: {
    kind: 'text',
    about: 'a CSV file, also compressed with gzip or zstd, or a Parquet file, in base64',
    required: true,
  },
  ...datingOptions,
} as const satisfies Options
const besidePanel = {
  ...knowledgeOptions,
  ...formatOption,
  explain: { kind: 'switch', about: 'returns the SQL instead of running it' },
} as const satisfies Options

/**
 * Queries, panels and the catalogue's metrics over HTTP; an answer begins when it is whole, so that no half one is
 * sent.
 */
export function pathsOf(input: PathsInput): Paths {
  return {
    '/query': async (question) => {
      const { sql, format, ...knowledge } = readOptions(
        queryOptions,
        await readValues(question, queryOptions),
        'fields',
      )
      return await answerInFormat(input, { knowledge, sql }, formOf(question, format), question)
    },
    '/panel': async (question) => {
      const { own, rest } = splitKnownOptions(
        besidePanel,
        await readValues(question, { ...panelTable, ...besidePanel }),
      )
      const { format, explain, ...knowledge } = readOptions(besidePanel, own, 'fields')
      const panel = panelSpec(rest, 'fields')
      if (explain === true) {
        const { decisions, query } = panelSql(panel)
        return { status: 200, type: 'text/plain', body: `${decisions};\n${query};\n` }
      }
      return await answerInFormat(input, { knowledge, panel }, formOf(question, format), question)
    },
    '/metrics': async (question) => {
      const { format } = readOptions(formatOption, fromAddress(question.query), 'fields')
      const sql = 'SELECT * FROM endpoints ORDER BY metric'
      return await answerInFormat(input, { knowledge: {}, sql, generated: true }, formOf(question, format), question)
    },
    '/lookahead': async (question) => {
      const body = await lookaheadTool(input.desk).call(await readValues(question, lookaheadOptions), question)
      return { status: 200, type: 'application/json', body }
    },
    '/explain': async (question) => {
      const { result } = readOptions(explainOptions, await readValues(question, explainOptions), 'fields')
      return { status: 200, type: 'application/json', body: await explained(input, result, question) }
    },
    '/when': async (question) => {
      const { table, ...options } = readOptions(whenOptions, await readValues(question, whenOptions), 'fields')
      return { status: 200, type: 'application/json', body: await dated(input, { table, options }, question) }
    },
  }
}

/**
 * Explains why a result that this lake stamped is different now; the file is proved to be a stamped one before its
 * query runs.
 */
async function explained({ desk, scratch, draw }: PathsInput, result: string, asker: Asker): Promise<string> {
  const { wall, folder } = desk.means
  if (wall !== undefined) throw wholeLakeOnly('explain', wall)
  const path = join(scratch, `${draw()}.parquet`)
  const explain = async (): Promise<string> => {
    await writePrivate(path, Buffer.from(result, 'base64'))
    const { from, to, ...told } = await desk.turn(asker, async (run) => {
      return await explainChange({ root: folder, from: path, to: null }, { ...run, mark: undefined })
    })
    return jsonText({ ...told, from: { version: from.version }, to: { version: to.version } })
  }
  try {
    return await withCleanup(explain, async () => await realDisk.remove(path))
  } catch (error) {
    // What is wrong with the file is for its owner to correct.
    const { kind, complaints } = withoutPaths(error, { [path]: 'the result', [folder]: 'the lake' })
    throw thrownBy({ kind: kind === 'integrity' ? 'usage' : kind, complaints })
  }
}

/** Builds the refusal for a client in which names stand for the paths of this machine. */
function withoutPaths(error: unknown, names: Readonly<Record<string, string>>): ToldRefusal {
  const { kind, complaints } = reportedRefusal(error)
  let text = jsonText(complaints)
  for (const [path, name] of Object.entries(names)) text = text.replaceAll(path, name)
  return { kind, complaints: jsonOf(text) as typeof complaints }
}

/** A table to date, and what its sender says about it. */
interface SentTable {
  /** The file in base64. */
  readonly table: string
  readonly options: DatingOptions
}

/** First bytes of a Parquet file. */
const parquetMark = 'PAR1'

/** Finds the time from whose knowledge a table comes. */
async function dated({ desk, scratch, draw }: PathsInput, { table, options }: SentTable, asker: Asker) {
  const { wall, folder } = desk.means
  if (wall !== undefined) throw wholeLakeOnly('when', wall)
  const bytes = Buffer.from(table, 'base64')
  // The file comes without its name, so its first bytes tell what it is.
  const isParquet = bytes.subarray(0, parquetMark.length).toString('latin1') === parquetMark
  const path = join(scratch, `${draw()}${isParquet ? '.parquet' : `.csv${compressedEnding(bytes)}`}`)
  const date = async (): Promise<string> => {
    await writePrivate(path, bytes)
    return await desk.turn(asker, async (run) => {
      const input = { path, subject: 'table', options, door: 'fields' } as const
      return jsonText(await dateFile(input, { ...run, folder, mark: undefined }, engineMemory(writerPart)))
    })
  }
  try {
    return await withCleanup(date, async () => await realDisk.remove(path))
  } catch (error) {
    throw thrownBy(withoutPaths(error, { [path]: 'the table', [folder]: 'the lake' }))
  }
}

/** Reads a question as one record: the address, and a body that is a JSON object, or SQL. */
async function readValues(question: HttpQuestion, table: Options): Promise<Readonly<Record<string, unknown>>> {
  const named = fromAddress(question.query)
  if (question.method !== 'POST') return named
  const body = await question.body()
  if (!/^application\/json\b/i.test(question.headers['content-type'] ?? '')) return both(table, named, { sql: body })
  const parsed = jsonOf(body)
  if (!isObject(parsed)) throw usage('the body', { expected: 'a JSON object', got: 'none' })
  once(repeatedKey(body))
  return both(table, named, parsed)
}

/** Refuses a value that is given twice: it is unknown which was meant. */
function once(name: string | undefined): void {
  if (name !== undefined) throw usage(name, { expected: 'one value', got: 'several' })
}

/** Merges the values of the address and of the body; a value in both must be the same. */
function both(table: Options, named: Readonly<Record<string, unknown>>, body: Readonly<Record<string, unknown>>) {
  once(Object.keys(named).find((name) => Object.hasOwn(body, name) && !saysSame(table, name, named[name], body[name])))
  return { ...named, ...body }
}

/** Reads the parameters of an address. */
function fromAddress(query: URLSearchParams): Readonly<Record<string, unknown>> {
  once([...query.keys()].find((name) => query.getAll(name).length > 1))
  return Object.fromEntries(query)
}

/** Chooses the named format, else the one that the client prefers of those that exist. */
function formOf({ headers }: HttpQuestion, named: Format | undefined): Format {
  if (named !== undefined) return named
  const liked = (headers.accept ?? '*/*')
    .split(',')
    .map((field) => {
      const [type = '', ...parameters] = field.split(';').map((part) => part.trim().toLowerCase())
      const [, weight = '1'] = /^q=([\d.]+)$/.exec(parameters.find((part) => part.startsWith('q=')) ?? '') ?? []
      return { type, weight: Number(weight) }
    })
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
  for (const { type } of liked) {
    const found = served.find((name) => typesOf(name).includes(type))
    if (found !== undefined) return found
    if (type === '*/*' || type === 'application/*') return 'jsonl'
    if (type === 'text/*') return 'csv'
  }
  throw usage('accept', {
    expected: served.map((name) => typesOf(name)[0]).join(', '),
    got: headers.accept,
    next: 'numbers for Prometheus are at `pitlake status --listen`',
  })
}

async function answerInFormat({ desk, scratch, draw }: PathsInput, question: Question, format: Format, asker: Asker) {
  const path = join(scratch, `${draw()}${formatFacts[format].served?.ending}`)
  try {
    const { facts, sql, rows, notes } = await desk.turn(asker, async (run) => {
      using seat = await desk.sit(question.knowledge)
      const { sql, ready, by, notes, doubts } = await judgeQuestion(question, seat.engine, run)
      const options = { format, width: 80, rows: Infinity, by, memory: engineMemory(writerPart) }
      const written = await writeFile({ engine: seat.engine, ready, options, deps: run }, outFile(path, null), path)
      return { facts: seat.facts, sql, rows: written.rows, notes: [...notes, ...(await doubts(written))] }
    })
    const body = { path, bytes: await sizeOf(path) }
    return { status: 200, type: typesOf(format)[0] ?? '', body, headers: headersOf(facts, sql, rows, notes) }
  } catch (error) {
    await cleanUpAfterError(async () => await realDisk.remove(path))
    throw error
  }
}

/** Bytes of SQL and notes that a head has room for. */
const roomy = 4000

function headersOf(facts: LakeFacts, sql: string, rows: number, notes: readonly Note[]): Record<string, string> {
  const fitting = (name: string, text: string): Record<string, string> =>
    text === '' || text.length > roomy ? {} : { [name]: text }
  return {
    'pitlake-lake': facts.lake,
    // Behind a limit neither reveals a later commit.
    ...(facts.version !== null && { 'pitlake-version': String(facts.version) }),
    ...(facts.digest !== null && { 'pitlake-digest': facts.digest }),
    'pitlake-synthetic': String(facts.synthetic),
    'pitlake-rows': String(rows),
    ...fitting('pitlake-sql', encodeURIComponent(sql)),
    ...fitting('pitlake-notes', noteTexts(notes, 'fields').map(encodeURIComponent).join(' ')),
    ...fitting('pitlake-noted', encodeURIComponent(jsonText(notes))),
  }
}
