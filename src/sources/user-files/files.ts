import { machineLack } from '../../lake/store/file-errors.ts'
import { join, resolve } from 'node:path'
import type { SourceMapping } from '../../catalog/sources.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { sizeText } from '../../base/option-kinds.ts'
import { statOf } from '../../lake/store/disk.ts'
import { decompressionSql, proveWhole } from '../../lake/store/compressed-files.ts'
import { type Engine, literalPath, quote, quoteName, quotePaths } from '../../lake/store/engine.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import { parseInstant } from '../../base/time.ts'
import { exactType, type FileColumn, refuseColumn, widenSql } from './file-columns.ts'
import { readParquetFiles } from './parquet-files.ts'

/** Endings of file names by format, without `.gz` and `.zst`. */
const endings = {
  parquet: ['parquet', 'parq', 'pq'],
  csv: ['csv', 'tsv', 'txt'],
  json: ['json', 'jsonl', 'ndjson'],
  arrow: ['arrow', 'arrows', 'feather', 'ipc'],
} as const

/** A format of files; derived, because `endings` lists them once. */
type FileFormat = keyof typeof endings

/** The source of rows; `table` is a table of the engine itself, which may be empty. */
type Format = FileFormat | 'query' | 'table'

/** A user file, with its state before it was read. */
interface Standing {
  readonly path: string
  readonly bytes: number
  readonly changed: number
}

/** The input of an import: a relation for FROM with the columns of the files, and its sources. */
export interface OwnFiles {
  readonly format: Format
  /** The relation; its rows are in the order of the files. */
  readonly relation: string
  readonly columns: readonly FileColumn[]
  readonly files: readonly Standing[]
  /** Reads these columns into the relation, if it is empty before. */
  readonly load?: (names: readonly string[]) => Promise<void>
  /** The subject of errors about rows without a file; default: the SELECT. */
  readonly subject?: string
  /** SQL of the number of a row, if rows of the relation are not rows of the files. */
  readonly row?: string
}

/** The limit on reading files, and the folder to which relative names refer. */
interface Reach {
  readonly cwd: string
  readonly maxBytes: number
}

const mostFiles = 10_000

/** The subject of errors about a query. */
export const selectName = 'the SELECT'

/** The first keyword of a query, after brackets and comments. */
const queryStart = /^(?:\s|\(|--[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*(?:SELECT|WITH|FROM)(?:[\s*('"]|--|\/\*)/i

/** Whether a text is a query and no file. */
export const isQuery = (text: string): boolean => queryStart.test(text)

/**
 * Builds the relation of a SELECT: its text in brackets on lines of their own, so that a comment at its end does not
 * swallow a bracket. A text that parses by itself cannot end the brackets around it.
 */
async function relationOfSelect(engine: Engine, text: string): Promise<string> {
  const refuse = (got: string, cause?: unknown): LakeError => usage(selectName, { expected: 'one SELECT', got, cause })
  await engine.parse(text).catch((cause: unknown) => {
    const message = cause instanceof Error ? cause.message : String(cause)
    throw refuse(message.replace(/^.*?(?=Parser Error: )/, '').split('\n')[0] ?? '', cause)
  })
  const semicolon = text.lastIndexOf(';')
  // Only comments may follow the semicolon at the end of a statement.
  const isEnd = semicolon >= 0 && (await countStatements(engine, text.slice(semicolon))) === 0
  for (const select of isEnd ? [text, text.slice(0, semicolon)] : [text]) {
    const relation = `(\n${select}\n)`
    if ((await countStatements(engine, `FROM ${relation}`)) > 0) return relation
  }
  throw refuse('several statements, or a statement of another kind')
}

/** Counts the statements of a text; 0 if it does not parse. */
async function countStatements(engine: Engine, text: string): Promise<number> {
  return await engine.parse(text).catch(() => 0)
}

/**
 * Finds the files that names, globs and folders mean, and how they and their mapping are read; nothing is read but
 * their heads.
 */
export async function givenBy(engine: Engine, names: readonly string[], reach: Reach, mapping: SourceMapping) {
  return unfolded(await openFiles(engine, names, reach), mapping)
}

/** Finds the files that names, globs and folders mean, and how they are read; nothing is read but their heads. */
export async function openFiles(engine: Engine, names: readonly string[], reach: Reach): Promise<OwnFiles> {
  const [first = ''] = names
  const isSelect = isQuery(first)
  if (isSelect && names.length > 1) throw usage('import', { expected: 'one SELECT, or files', got: 'both' })
  const query = isSelect ? await relationOfSelect(engine, first) : undefined
  const files = query ? [] : await filesOf(engine, names, reach)
  await refuseCut(files)
  const formats = new Map(files.map(({ path }) => [formatOf(path), path]))
  const [[format = 'query' as const, path] = [], other] = [...formats]
  if (other) throw usage(other[1], { expected: `${format}, as ${path}`, got: other[0] })
  try {
    const paths = files.map(({ path: file }) => file)
    const read =
      format === 'parquet'
        ? await readParquetFiles(engine, paths, fileColumn)
        : format === 'arrow'
          ? await (await import('./arrow-files.ts')).readArrowFiles(engine, paths, fileColumn)
          : await describeRelation(engine, format, query ?? (await relationOf(engine, format, paths)))
    return { format, ...read, files }
  } catch (error) {
    throw error instanceof LakeError ? error : unreadableFile(files[0]?.path ?? selectName, error)
  }
}

function formatOf(path: string): FileFormat | undefined {
  const [, ending = ''] = /\.(\w+)(?:\.(?:gz|zst))?$/.exec(path.toLowerCase()) ?? []
  const found = Object.entries(endings).find(([, all]) => all.some((known) => known === ending))
  return found?.[0] as FileFormat | undefined
}

async function filesOf(engine: Engine, names: readonly string[], { cwd, maxBytes }: Reach): Promise<Standing[]> {
  const paths: string[] = []
  for (const name of names) {
    const path = resolve(cwd, name)
    const stat = await statOf(path)
    const isFolder = stat?.isDirectory() === true
    const sql = `SELECT file FROM glob(${quote(await globOf(isFolder ? join(path, '**') : path))}) ORDER BY file`
    const matched = stat && !isFolder ? [path] : (await engine.rows<{ file: string }>(sql)).map(({ file }) => file)
    const readable = isFolder ? matched.filter(formatOf) : matched
    if (readable.length === 0)
      throw usage(name, { expected: 'a file, a folder, a glob or a SELECT', got: 'no such file' })
    paths.push(...readable)
  }
  const strange = paths.find((path) => !formatOf(path))
  if (strange !== undefined)
    throw usage(strange, {
      expected: `a name that ends in .${Object.values(endings).flat().join(', .')}`,
      got: `.${strange.slice(strange.lastIndexOf('.') + 1)}`,
    })
  const found = await Promise.all([...new Set(paths)].map(standingOf))
  const bytes = found.reduce((sum, file) => sum + file.bytes, 0)
  const empty = found.find((file) => file.bytes === 0)
  if (empty) throw usage(empty.path, { expected: 'rows', got: 'an empty file' })
  if (found.length <= mostFiles && bytes <= maxBytes) return found
  throw usage(`${names[0] ?? ''}: ${found.length} files, ${sizeText(bytes)}`, {
    expected: `at most ${mostFiles} files and ${sizeText(maxBytes)}`,
    next: 'name fewer, or say --max-bytes',
  })
}

/** Builds the glob of a path: the folders that exist under their names as written are no pattern. */
async function globOf(path: string): Promise<string> {
  const parts = path.split('/')
  const folder = (depth: number): string => parts.slice(0, depth).join('/')
  let depth = parts.length - 1
  while (depth > 0 && (await statOf(folder(depth)))?.isDirectory() !== true) depth--
  return [literalPath(folder(depth)), ...parts.slice(depth)].join('/')
}

async function standingOf(path: string): Promise<Standing> {
  const stat = await statOf(path)
  if (!stat?.isFile()) throw usage(path, { expected: 'a file', got: stat ? 'something else' : 'no such file' })
  return { path, bytes: stat.size, changed: stat.mtimeMs }
}

/** Refuses compressed files that end too soon. */
async function refuseCut(files: readonly Standing[]): Promise<void> {
  for (const { path } of files)
    await proveWhole(path).catch((error: unknown) => {
      throw unreadableFile(path, error)
    })
}

/** Refuses files that changed while they were read. */
export async function refuseGrown(files: readonly Standing[]): Promise<void> {
  for (const file of files) {
    const now = await standingOf(file.path)
    if (now.bytes !== file.bytes || now.changed !== file.changed)
      throw new LakeError('incomplete', {
        subject: file.path,
        expected: 'a file that does not change during the import',
        got: `${file.bytes} bytes before it was read, ${now.bytes} behind that`,
        next: 'import it again once it is whole; nothing of it was taken',
      })
  }
}

/** The path of each row's file. */
export const fileColumn = '_own_file'

async function describeRelation(engine: Engine, format: Format, relation: string) {
  const all = format === 'json' ? await keysOf(engine, relation) : await columnsOf(engine, relation)
  return { relation, columns: all.filter(({ name }) => name !== fileColumn) }
}

/** SQL of files as a relation: CSV as texts, JSON as objects. */
async function relationOf(engine: Engine, format: Format, paths: readonly string[]): Promise<string> {
  const list = quotePaths(paths)
  const named = `filename = '${fileColumn}'${decompressionSql(...paths)}`
  if (format === 'json') return `read_json_objects(${list}, format = 'auto', ${named}, maximum_object_size = 16777216)`
  const csv = (more: string): string =>
    `read_csv(${list}, header = true, all_varchar = true, null_padding = false, strict_mode = true, ${named}, ` +
    `hive_partitioning = false${more})`
  const columns = await columnsOf(engine, csv(''))
  // If a row is broken, the engine takes the whole line for one column.
  const [only] = columns.filter(({ name }) => name !== fileColumn)
  const split = columns.length === 2 ? [',', ';', '\t', '|'].find((sign) => only?.name.includes(sign)) : undefined
  if (only === undefined || split === undefined) return csv('')
  const typed = only.name.split(split).map((name) => `${quote(name.trim())}: 'VARCHAR'`)
  return csv(`, delim = ${quote(split)}, quote = '"', auto_detect = false, columns = {${typed.join(', ')}}`)
}

/** Lists the keys of the objects, by default of the first ones. */
export async function keysOf(engine: Engine, relation: string, limit = 'LIMIT 1000'): Promise<FileColumn[]> {
  const rows = await engine.rows<{ name: string }>(
    `SELECT DISTINCT unnest(json_keys(json)) AS name FROM (FROM ${relation} ${limit}) WHERE json_type(json) ` +
      `= 'OBJECT'`,
  )
  return rows.map(({ name }) => ({ name, type: 'JSON' })).toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** The name of a column that is a day: `2024-02-05`, or with the name of a series before it, `UNRATE_20240205`. */
const dayName = /^(?:(.*)_)?(\d{4})-?(\d\d)-?(\d\d)$/

/** A column with the values of a series as they were published on a day. */
interface VintageColumn extends FileColumn {
  /** Name of the series; '' if the column has none. */
  readonly series: string
  /** The day, as `2024-02-05`. */
  readonly day: string
}

function vintageColumn(column: FileColumn): VintageColumn[] {
  const [, series = '', year, month, day] = dayName.exec(column.name) ?? []
  return year === undefined ? [] : [{ ...column, series, day: `${year}-${month}-${day}` }]
}

/** Refuses columns whose values would become one vintage of one series: of several series, or two of one day. */
function refuseMerged(file: string, vintages: readonly VintageColumn[], rest: readonly FileColumn[]): void {
  const refuse = (name: string, otherName: string, expected: string, got: string): LakeError =>
    usage(`${file}: columns ${name} and ${otherName}`, { expected, got, next: 'choose the columns by a SELECT' })
  const [first] = vintages
  const stranger = vintages.find(({ series }) => series !== first?.series)
  if (first && stranger) {
    const got = `${first.series || 'no name'} and ${stranger.series || 'no name'}`
    throw refuse(first.name, stranger.name, 'vintages of one series', got)
  }
  // If a CSV file has a name twice, the engine calls the second column by that name and a number.
  const named = [
    ...vintages,
    ...rest.flatMap(({ name }) => vintageColumn({ name: name.replace(/_\d+$/, ''), type: '' })),
  ]
  const twins = [...Map.groupBy(named, ({ day }) => day)].find(([, columns]) => columns.length > 1)
  if (twins === undefined) return
  const [day, [one, other]] = twins
  throw refuse(one?.name ?? '', other?.name ?? '', 'one column for each day', `two for ${day}`)
}

/**
 * Converts the wide form that statistics offices publish: if no column is the value, and columns are the days of
 * vintages, each cell becomes a value of that vintage, and an empty one is none. Other files are returned unchanged,
 * with their mapping.
 */
function unfolded(ownFiles: OwnFiles, mapping: SourceMapping): OwnFiles & { readonly mapping: SourceMapping } {
  const { value = 'value', vintage = 'vintage', components } = mapping
  const has = (name: string): boolean => ownFiles.columns.some((column) => column.name === name)
  const vintages = ownFiles.columns.flatMap(vintageColumn)
  if (vintages.length === 0 || ownFiles.format === 'json' || components || has(value) || has(vintage))
    return { ...ownFiles, mapping }
  const file = ownFiles.files[0]?.path ?? 'the SELECT'
  const rest = ownFiles.columns.filter(({ name }) => !vintages.some((column) => column.name === name))
  refuseMerged(file, vintages, rest)
  // The engine would choose a common type itself, in which integers are rounded.
  const type = exactType(vintages.map((column) => column.type))
  const mixed = `columns of ${[...new Set(vintages.map((column) => column.type))].join(' and ')}`
  const unreadable =
    vintages.flatMap((column) => column.unreadable ?? [])[0] ??
    (type === undefined
      ? refuseColumn(file, vintages[0]?.name ?? '', 'one type for all days', mixed, 'write them with one type')
      : undefined)
  const cells = vintages.map((column) => {
    const cell = type === undefined ? 'NULL' : widenSql(quoteName(column.name), column.type, type)
    return `${cell} AS ${quote(column.day)}`
  })
  const rows = `SELECT row_number() OVER () AS own_row, * FROM ${ownFiles.relation}`
  const names = `NAME ${quoteName(vintage)} VALUE ${quoteName(value)}`
  const relation = `(UNPIVOT (${rows}) ON ${cells.join(', ')} INTO ${names})`
  const cell = { name: value, type: type ?? 'VARCHAR', ...(unreadable && { unreadable }) }
  const columns = [...rest, { name: vintage, type: 'VARCHAR' }, cell]
  const { load } = ownFiles
  const wide = async (names: readonly string[]): Promise<void> => {
    const named = names.filter((name) => name !== value && name !== vintage)
    await load?.([...named, ...vintages.map(({ name }) => name)])
  }
  const read = { ...ownFiles, relation, columns, row: 'own_row', ...(load && { load: wide }) }
  return { ...read, mapping: { ...mapping, value, vintage } }
}

/**
 * Builds the error of a file that the engine cannot read: one line with the file and, if the engine reports it, the
 * line or byte. If memory or disk does not suffice, the error is about that.
 */
export function unreadableFile(subject: string, error: unknown): LakeError {
  // A lack of memory or disk says nothing about the file.
  const lack = machineLack(error, `reading ${subject}`)
  if (lack !== undefined) return lack
  const text = error instanceof Error ? error.message : String(error)
  const file = /(?:file|File:?) ["']([^"'\n]+)["']/.exec(text)?.[1] ?? /^\s*file = (.+)$/m.exec(text)?.[1] ?? subject
  const line = /(?:on Line: |in line |line )(\d+)/.exec(text)?.[1]
  const words = text
    .replace(/^[\w ]*Error: /, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('Original Line'))
  const got = words.filter((word) => !word.startsWith('CSV Error on Line'))[0] ?? text
  return usage(line === undefined ? file : `${file}: line ${line}`, {
    expected: file === selectName ? 'one that runs' : 'a file that is whole',
    got: got.replaceAll(/ in file "[^"]*"/g, '').slice(0, 200),
    next: 'nothing of it was taken',
    cause: error,
  })
}

/**
 * Parses the day in the name of a dated export into Unix seconds of its beginning; null if the name has none, or
 * several.
 */
export function exportDay(path: string): number | null {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const days = [...name.matchAll(/(?<!\d)(\d{4})[-_]?(\d{2})[-_]?(\d{2})(?!\d)/g)].map(
    ([, y, m, d]) => `${y}-${m}-${d}`,
  )
  const [firstDay, otherDay] = days
  return firstDay === undefined || otherDay !== undefined ? null : (parseInstant(firstDay) ?? null)
}
