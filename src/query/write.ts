import { extname } from 'node:path'
import { once } from 'node:events'
import { createGzip } from 'node:zlib'
import { readStream } from '../lake/store/files.ts'
import { usage } from '../base/errors.ts'
import { bytesOf, mega } from '../base/option-kinds.ts'
import { type Cell, Engine, quote } from '../lake/store/engine.ts'
import { type OutFile, streamTo } from '../lake/store/output.ts'
import { carry } from './row-comparison.ts'
import { jsonLines } from './json-lines.ts'
import { type Empty, Filled } from './filled-columns.ts'
import { csvField, distinctNames, projectStatement } from './projection.ts'
import type { Ready } from './gate.ts'
import { runCancellable, type RunDeps } from './run.ts'
import { layTable } from './table.ts'

/** One format of a result. */
interface FormatFact {
  /** Endings of the names of its files. */
  readonly endings: readonly string[]
  /** Whether the format is text, which is written row by row. */
  readonly text?: true
  /** Compression of its bytes, in a file of any name and in a stream; uncompressed if absent. */
  readonly compression?: 'gzip'
  /** Content types of the format over HTTP, and the ending of the file that is sent there. */
  readonly served?: { readonly types: readonly [string, ...string[]]; readonly ending: string }
  /** Writes it chunk by chunk; a format without it needs a file. */
  readonly write?: (answer: ResultWriting, sink: Sink, form: 'file' | 'stream') => Promise<WrittenResult>
}

const uncompressed = {
  table: { endings: [], text: true, write: writeTable },
  csv: { endings: ['.csv'], text: true, served: { types: ['text/csv'], ending: '.csv' }, write: writeCsv },
  json: { endings: ['.json'], text: true, served: { types: ['application/json'], ending: '.json' }, write: writeJson },
  jsonl: {
    endings: ['.jsonl', '.ndjson'],
    text: true,
    served: { types: ['application/x-ndjson', 'application/jsonl'], ending: '.jsonl' },
    write: writeJsonLines,
  },
  arrow: {
    endings: ['.arrow', '.arrows', '.feather', '.ipc'],
    served: { types: ['application/vnd.apache.arrow.stream'], ending: '.arrows' },
    write: writeArrow,
  },
  parquet: {
    endings: ['.parquet', '.parq', '.pq'],
    served: { types: ['application/vnd.apache.parquet'], ending: '.parquet' },
  },
} satisfies Readonly<Record<string, FormatFact>>

/** All formats of a result. */
const facts = {
  ...uncompressed,
  'csv.gz': gzipped(uncompressed.csv),
  'json.gz': gzipped(uncompressed.json),
  'jsonl.gz': gzipped(uncompressed.jsonl),
} satisfies Readonly<Record<string, FormatFact>>

/** Builds the compressed variant of a format of text. */
function gzipped({ endings, write }: Required<Omit<FormatFact, 'compression'>>): FormatFact {
  return {
    endings: endings.map((ending) => `${ending}.gz`),
    text: true,
    compression: 'gzip',
    write: async (answer, sink, form) => throughGzip(sink, async (compressor) => write(answer, compressor, form)),
  }
}

/** Name of a format; derived, so that `facts` is the one list of them. */
export type Format = keyof typeof facts

/** Facts of each format. */
export const formatFacts: Readonly<Record<Format, FormatFact>> = facts

/** The names of the formats. */
export const formats = Object.keys(facts) as readonly Format[]

/** Whether a terminal can show a format. */
export function isReadable(format: Format): boolean {
  const { text, compression } = formatFacts[format]
  return text === true && compression === undefined
}

/** Options for writing a result. */
interface WriteOptions {
  readonly format: Format
  /** Parquet for small readers: old page format, no dictionaries, plain types. */
  readonly compat?: boolean
  /** CSV for spreadsheets: no text that one would run as a formula, no control signs. */
  readonly safe?: boolean
  /** Memory for the Parquet writer, in DuckDB's spelling; the session's by default. */
  readonly memory?: string
  /** Places on a line of a table. */
  readonly width: number
  /** Rows of a table to show; the number of the others is stated. */
  readonly rows: number
  /** Column with the asset of each row: empty columns are reported by asset. */
  readonly by?: string | undefined
}

/** Destination of text or bytes; its promise makes a writer wait that is faster than the reader. */
export type Sink = (data: string | Uint8Array) => Promise<void>

/** Extent of a written result. */
export interface WrittenResult {
  /** Rows written; of a cut table those that are shown. */
  readonly rows: number
  /** Whether more rows follow that are not shown. */
  readonly more: boolean
  /** Columns that are empty in the rows seen. */
  readonly empty: readonly Empty[]
}

/** The endings that a file's name may have. */
export const endings: readonly string[] = formats.flatMap((format) => formatFacts[format].endings)

/** Derives the format from a file's name; undefined if it has none. */
export function formatOf(file: string): Format | undefined {
  const name = file.toLowerCase()
  return formats.find((format) => formatFacts[format].endings.some((ending) => name.endsWith(ending)))
}

/** Refuses to write an uncompressed format to a file whose name ends like a compressed one. */
export function refuseFalseName(format: Format, file: string): void {
  if (formatFacts[format].compression !== undefined || !file.toLowerCase().endsWith('.gz')) return
  const compressed = formats.find((known) => known === `${format}.gz`) ?? 'csv.gz'
  const expected = 'a file whose name does not end in .gz'
  throw usage(`--format ${format}`, { expected, got: file, next: `--format ${compressed} compresses` })
}

/** A checked statement, and how its rows are to be written. */
interface ResultWriting {
  readonly engine: Engine
  readonly ready: Ready
  readonly options: WriteOptions
  readonly deps: RunDeps
}

/** Writes an answer to a file that `outFile` prepared. */
export async function writeFile(answer: ResultWriting, file: OutFile, name: string): Promise<WrittenResult> {
  const { engine, ready, options, deps } = answer
  try {
    refuseFalseName(options.format, name)
    const written =
      formatFacts[options.format].write === undefined
        ? await runCancellable(engine, ready.text, deps, async () => toParquet(answer, file))
        : await toStream(file, name, async (sink, form) => writeTo(answer, sink, form))
    await file.finish()
    return written
  } catch (error) {
    file.discard()
    throw error
  }
}

/** Opens a file as a sink and fills it. */
async function toStream(
  file: OutFile,
  name: string,
  fill: (sink: Sink, form: 'file' | 'stream') => Promise<WrittenResult>,
): Promise<WrittenResult> {
  const stream = streamTo(file)
  const failed = once(stream, 'error').then(([error]) => Promise.reject(error as Error))
  failed.catch(() => undefined)
  const sink: Sink = async (data) => {
    if (!stream.write(data)) await Promise.race([once(stream, 'drain'), failed])
  }
  try {
    const written = await fill(sink, extname(name).toLowerCase() === '.arrows' ? 'stream' : 'file')
    stream.end()
    await Promise.race([once(stream, 'close'), failed])
    return written
  } finally {
    stream.destroy()
  }
}

/** Fills a sink whose data reach a different sink compressed. */
async function throughGzip(sink: Sink, fill: (compressor: Sink) => Promise<WrittenResult>): Promise<WrittenResult> {
  const gzip = createGzip()
  const sent = (async () => {
    for await (const part of gzip) await sink(part as Uint8Array)
  })()
  sent.catch(() => undefined)
  try {
    const written = await fill(async (data) => {
      if (!gzip.write(data)) await Promise.race([once(gzip, 'drain'), sent])
    })
    gzip.end()
    await sent
    return written
  } finally {
    gzip.destroy()
  }
}

/** Writes an answer to a sink, chunk by chunk; Parquet needs a file. */
export async function writeTo(
  answer: ResultWriting,
  sink: Sink,
  form: 'file' | 'stream' = 'stream',
): Promise<WrittenResult> {
  const { engine, ready, options, deps } = answer
  if (options.format !== 'table' && !givesRows(ready)) wrappable(ready)
  return runCancellable(engine, ready.text, deps, async () => {
    const { write } = formatFacts[options.format]
    if (write === undefined)
      throw usage(`--format ${options.format}`, { expected: '--out FILE', got: 'standard output' })
    return write(answer, sink, form)
  })
}

/** Sends a finished file through a sink. */
export async function sendFile(path: string, sink: Sink): Promise<void> {
  for await (const part of readStream(path)) await sink(part as Uint8Array)
}

const parquetForms = {
  // A dictionary takes -0.0 and 0.0 for one value.
  parquet: `FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 0`,
  // Small readers load a whole row group, and mistake plain pages for dictionary pages.
  compat: `FORMAT parquet, COMPRESSION snappy, PARQUET_VERSION v1, DICTIONARY_SIZE_LIMIT 0, ROW_GROUP_SIZE 20480`,
}

/** Chooses one thread and smaller row groups if memory is scarce for so many columns. */
function frugal(columns: number, memoryLimit: string): { readonly threads: number; readonly group: string } {
  const each = (bytesOf(memoryLimit) ?? Infinity) / columns
  const rows = Math.floor(each / 16 / 8 / 2048) * 2048
  return {
    threads: Math.max(1, Math.floor(each / (1.5 * mega))),
    group: rows < 122_880 ? `, ROW_GROUP_SIZE ${Math.max(2048, rows)}` : '',
  }
}

/** Writes Parquet with a separate engine that runs no SQL of others, because a session can write no file. */
async function toParquet({ engine, ready, options }: ResultWriting, { path }: OutFile): Promise<WrittenResult> {
  const form = options.compat === true ? 'compat' : 'parquet'
  const sql = projectStatement(wrappable(ready), ready.columns, form)
  const [session] = await engine.rows<{ memory: string; threads: bigint }>(
    `SELECT current_setting('memory_limit') AS memory, CAST(current_setting('threads') AS BIGINT) AS threads`,
  )
  const { memory = '', threads = 1n } = session ?? {}
  const memoryLimit = options.memory ?? memory
  const means = frugal(ready.columns.length, memoryLimit)
  using writer = await Engine.open(':memory:', { memoryLimit, threads: Math.min(Number(threads), means.threads) })
  const filled = new Filled(distinctNames(ready.columns.map(({ name }) => name)), options.by)
  await carry(engine, sql, writer, 'answer', filled)
  const group = form === 'compat' ? '' : means.group
  await writer.run(`COPY answer TO ${quote(path)} (${parquetForms[form]}${group})`)
  return { rows: filled.rows, more: false, empty: filled.empty() }
}

/** A result of the engine, chunk by chunk. */
type Stream = Awaited<ReturnType<Engine['stream']>>

/** Returns the stream with a record of the columns that its rows fill. */
export function watchColumns(stream: Stream, by: string | undefined): Stream & { readonly filled: Filled } {
  const filled = new Filled(stream.names, by)
  async function* countedRows() {
    for await (const chunk of stream.chunks) {
      filled.addCells(chunk.rows, chunk.columns)
      yield chunk
    }
  }
  return { ...stream, chunks: countedRows(), filled }
}

function wrappable(ready: Ready): string {
  if (ready.kind === 'SELECT') return ready.text
  throw usage('SQL', { expected: 'a SELECT to write', got: ready.kind, next: 'use --format table' })
}

async function writeCsv({ engine, ready, options: { safe, by } }: ResultWriting, sink: Sink): Promise<WrittenResult> {
  const sql =
    'SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ' +
    `(${projectStatement(wrappable(ready), ready.columns, safe === true ? 'safe csv' : 'csv')})`
  const { names, chunks, filled } = watchColumns(await engine.stream(sql), by)
  await sink(`${names.map(csvField).join(',')}\n`)
  for await (const { rows, columns } of chunks) {
    const line = (i: number): string =>
      columns.map((column) => csvField((column[i] ?? null) as string | null)).join(',')
    let text = ''
    for (let i = 0; i < rows; i++) text += `${line(i)}\n`
    await sink(text)
  }
  return { rows: filled.rows, more: false, empty: filled.empty() }
}

async function writeJson(answer: ResultWriting, sink: Sink): Promise<WrittenResult> {
  return writeRows(answer, sink, { before: '[\n', between: ',\n', after: '\n]\n', none: '[]\n' })
}

async function writeJsonLines(answer: ResultWriting, sink: Sink): Promise<WrittenResult> {
  return writeRows(answer, sink, { before: '', between: '\n', after: '\n', none: '' })
}

/** Texts around rows of JSON; `none` is the whole text of a result without rows. */
interface JsonFrame {
  readonly before: string
  readonly between: string
  readonly after: string
  readonly none: string
}

async function writeRows({ engine, ready, options: { by } }: ResultWriting, sink: Sink, frame: JsonFrame) {
  const { lines, filled } = await jsonLines(engine, ready, by)
  for await (const some of lines) {
    const isFirst = filled.rows === some.length
    await sink(`${isFirst ? frame.before : frame.between}${some.join(frame.between)}`)
  }
  await sink(filled.rows > 0 ? frame.after : frame.none)
  return { rows: filled.rows, more: false, empty: filled.empty() }
}

async function writeArrow({ engine, ready, options }: ResultWriting, sink: Sink, form: 'file' | 'stream') {
  const { arrowBytes } = await import('./arrow.ts')
  const filled = new Filled(distinctNames(ready.columns.map(({ name }) => name)), options.by)
  for await (const part of arrowBytes(engine, ready.text, form, filled)) await sink(part)
  return { rows: filled.rows, more: false, empty: filled.empty() }
}

/** Writes the first rows of a result, with all columns. */
async function writeTable({ engine, ready, options }: ResultWriting, sink: Sink): Promise<WrittenResult> {
  const { names, types, chunks, filled } = watchColumns(await engine.stream(ready.text), options.by)
  const columns: Cell[][] = names.map(() => [])
  let rows = 0
  let more = false
  for await (const chunk of chunks) {
    const take = Math.min(chunk.rows, options.rows - rows)
    for (const [k, column] of columns.entries()) column.push(...(chunk.columns[k] ?? []).slice(0, take))
    rows += take
    more = take < chunk.rows
    if (more) break
  }
  await sink(layResult(ready, names, types, columns, options.width))
  return { rows, more, empty: filled.empty() }
}

/** Lays out a part of a result for people: a table, a drawing for EXPLAIN, nothing for a statement without rows. */
export function layResult(
  ready: Ready,
  names: readonly string[],
  types: readonly string[],
  columns: readonly (readonly Cell[])[],
  width: number,
): string {
  // EXPLAIN returns a drawing, not a table.
  if (names.join(' ') === 'explain_key explain_value')
    return (columns.at(-1) ?? []).map((cell) => `${typeof cell === 'string' ? cell : ''}\n`).join('')
  return givesRows(ready) ? layTable(names, types, columns, { width }) : ''
}

/** Whether a statement returns rows; SET, CREATE and the like answer with a word without meaning. */
export function givesRows(ready: Ready): boolean {
  return ready.kind === 'SELECT' || ready.kind === 'EXPLAIN' || ready.kind === 'PRAGMA'
}
