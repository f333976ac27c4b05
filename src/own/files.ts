import { isAbsolute, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { LakeError, usage } from '../errors.ts'
import { sizeText } from '../kinds.ts'
import { statOf } from '../store/disk.ts'
import { readStream } from '../store/files.ts'
import { type Engine, quote, quoteList } from '../store/engine.ts'
import { columnsOf, type Columns } from '../store/parquet.ts'
import { parseInstant } from '../time.ts'

/** How a file is read, by the ending of its name, `.gz` and `.zst` aside. */
const endings = {
  parquet: 'parquet',
  pq: 'parquet',
  csv: 'csv',
  tsv: 'csv',
  txt: 'csv',
  json: 'json',
  jsonl: 'json',
  ndjson: 'json',
  arrow: 'arrow',
  arrows: 'arrow',
  feather: 'arrow',
  ipc: 'arrow',
} as const

type Format = (typeof endings)[keyof typeof endings] | 'query'

/** A file of the user's, as it stood before it was read. */
interface Standing {
  readonly path: string
  readonly bytes: number
  readonly changed: number
}

/** What an import reads: a relation for FROM with the columns of the files, and what it is made of. */
export interface OwnFiles {
  readonly format: Format
  /** The relation; its rows come in the order of the files. */
  readonly relation: string
  readonly columns: Columns
  readonly files: readonly Standing[]
  /** SQL of the number of a row, where rows of the relation are no rows of the files. */
  readonly row?: string
}

/** How much may be read, and from where relative names count. */
interface Reach {
  readonly cwd: string
  readonly maxBytes: number
}

const mostFiles = 10_000

/** Whether a text is a query and no file. */
export const isQuery = (text: string): boolean => /^\s*(?:SELECT|WITH|FROM|\()\s/i.test(text)

/** Finds the files that names, globs and folders mean, and says how they are read; nothing is read but their heads. */
export async function givenBy(engine: Engine, names: readonly string[], reach: Reach): Promise<OwnFiles> {
  const [first = ''] = names
  if (isQuery(first)) {
    if (names.length > 1) throw usage('import', { expected: 'one SELECT, or files', got: 'both' })
    const relation = `(${first.trim().replace(/;$/, '')})`
    return { format: 'query', relation, files: [], columns: await described(engine, first, relation) }
  }
  const files = await filesOf(engine, names, reach)
  await refuseCut(files)
  const formats = new Map(files.map(({ path }) => [formatOf(path), path]))
  const [[format, path] = ['csv', ''], other] = [...formats]
  if (other) throw usage(other[1], { expected: `${format}, as ${path}`, got: other[0] })
  return await readAs(engine, format as Format, files)
}

function formatOf(path: string): Format {
  const bare = path.toLowerCase().replace(/\.(?:gz|zst)$/, '')
  const ending = bare.slice(bare.lastIndexOf('.') + 1)
  if (Object.hasOwn(endings, ending)) return endings[ending as keyof typeof endings]
  throw usage(path, { expected: `a name that ends in .${Object.keys(endings).join(', .')}`, got: `.${ending}` })
}

async function filesOf(engine: Engine, names: readonly string[], { cwd, maxBytes }: Reach): Promise<Standing[]> {
  const paths: string[] = []
  for (const name of names) {
    const path = isAbsolute(name) ? name : join(cwd, name)
    const stat = await statOf(path)
    const own =
      stat?.isDirectory() === true ? await globbed(engine, `${path}/**`) : stat ? [path] : await globbed(engine, path)
    const readable = stat?.isDirectory() === true ? own.filter((one) => isReadable(one)) : own
    if (readable.length === 0)
      throw usage(name, { expected: 'a file, a folder, a glob or a SELECT', got: 'no such file' })
    paths.push(...readable)
  }
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

const isReadable = (path: string): boolean =>
  Object.keys(endings).some((ending) =>
    path
      .toLowerCase()
      .replace(/\.(?:gz|zst)$/, '')
      .endsWith(`.${ending}`),
  )

async function globbed(engine: Engine, pattern: string): Promise<string[]> {
  const rows = await engine.rows<{ file: string }>(`SELECT file FROM glob(${quote(pattern)}) ORDER BY file`)
  return rows.map(({ file }) => file)
}

async function standingOf(path: string): Promise<Standing> {
  const stat = await statOf(path)
  if (!stat?.isFile()) throw usage(path, { expected: 'a file', got: stat ? 'something else' : 'no such file' })
  return { path, bytes: stat.size, changed: stat.mtimeMs }
}

/** Refuses compressed files that end too soon: the engine reads what there is of them. */
async function refuseCut(files: readonly Standing[]): Promise<void> {
  for (const { path } of files) {
    const [, ending] = /\.(gz|zst)$/i.exec(path) ?? []
    if (ending === undefined) continue
    const unpacked = ending.toLowerCase() === 'gz' ? createGunzip() : createZstdDecompress()
    await pipeline(readStream(path), unpacked, async (chunks: AsyncIterable<unknown>) => {
      for await (const _ of chunks);
    }).catch((error: unknown) => {
      throw unreadableFile(path, error)
    })
  }
}

/** Refuses files that changed while they were read. */
export async function refuseGrown(files: readonly Standing[]): Promise<void> {
  for (const file of files) {
    const now = await standingOf(file.path)
    if (now.bytes !== file.bytes || now.changed !== file.changed)
      throw new LakeError('incomplete', {
        subject: file.path,
        expected: 'a file that nobody writes to',
        got: `${file.bytes} bytes before it was read, ${now.bytes} behind that`,
        next: 'import it again once it is whole; nothing of it was taken',
      })
  }
}

/** The path of each row's file. */
export const fileColumn = '_own_file'

async function readAs(engine: Engine, format: Format, files: readonly Standing[]): Promise<OwnFiles> {
  const list = quoteList(files.map(({ path }) => path.replaceAll(/[*?[]/g, (sign) => `[${sign}]`)))
  const named = `filename = '${fileColumn}', hive_partitioning = false`
  if (format === 'parquet') {
    const relation = `read_parquet(${list}, ${named})`
    return { format, relation, files, columns: await described(engine, files[0]?.path, relation) }
  }
  if (format === 'json') {
    const relation = `read_json_objects(${list}, format = 'auto', filename = '${fileColumn}', maximum_object_size = 16777216)`
    return { format, relation, files, columns: await keysOf(engine, files[0]?.path, relation) }
  }
  if (format === 'arrow') {
    const { loadArrow } = await import('../store/arrow.ts')
    const paths = files.map(({ path }) => path)
    const relation = await loadArrow(engine, paths, fileColumn).catch((error: unknown) => {
      throw error instanceof LakeError ? error : unreadableFile(paths[0] ?? '', error)
    })
    return { format, relation, files, columns: await columnsOf(engine, relation) }
  }
  const csv = (more: string): string =>
    `read_csv(${list}, header = true, all_varchar = true, null_padding = false, strict_mode = true, ${named}${more})`
  const columns = await described(engine, files[0]?.path, csv(''))
  // Where a row is torn the engine takes the whole line for one column.
  const [only] = columns.filter(({ name }) => name !== fileColumn)
  const split = columns.length === 2 ? [',', ';', '\t', '|'].find((sign) => only?.name.includes(sign)) : undefined
  const more =
    split === undefined
      ? ''
      : `, delim = ${quote(split)}, quote = '"', auto_detect = false, columns = ${split && columnsSql(only?.name ?? '', split)}`
  return {
    format,
    relation: csv(more),
    files,
    columns: more === '' ? columns : await described(engine, files[0]?.path, csv(more)),
  }
}

function columnsSql(header: string, sign: string): string {
  return `{${header
    .split(sign)
    .map((name) => `${quote(name.trim())}: 'VARCHAR'`)
    .join(', ')}}`
}

/** The columns of a relation; what the engine says of files that it cannot read is one line. */
async function described(engine: Engine, subject = '', relation: string): Promise<Columns> {
  try {
    return await columnsOf(engine, relation)
  } catch (error) {
    throw unreadableFile(subject, error)
  }
}

/** The keys of the first objects. */
async function keysOf(engine: Engine, subject = '', relation: string): Promise<Columns> {
  try {
    const rows = await engine.rows<{ name: string }>(
      `SELECT DISTINCT unnest(json_keys(json)) AS name FROM (FROM ${relation} LIMIT 1000) WHERE json_type(json) = 'OBJECT'`,
    )
    return rows.map(({ name }) => ({ name, type: 'JSON' })).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    throw unreadableFile(subject, error)
  }
}

/** What the engine cannot read, in one line with the file and, where it tells, the line or byte. */
export function unreadableFile(subject: string, error: unknown): LakeError {
  const text = error instanceof Error ? error.message : String(error)
  const file = /(?:file|File:?) ["']([^"'\n]+)["']/.exec(text)?.[1] ?? /^\s*file = (.+)$/m.exec(text)?.[1] ?? subject
  const line = /(?:on Line: |in line |line )(\d+)/.exec(text)?.[1]
  const words = text
    .replace(/^[\w ]*Error: /, '')
    .split('\n')
    .map((one) => one.trim())
    .filter((one) => one !== '' && !one.startsWith('Original Line'))
  const got = words.filter((one) => !one.startsWith('CSV Error on Line'))[0] ?? text
  return usage(line === undefined ? file : `${file}: line ${line}`, {
    expected: 'a file that is whole',
    got: got.replaceAll(/ in file "[^"]*"/g, '').slice(0, 200),
    next: 'nothing of it was taken',
    cause: error,
  })
}

/** The day in the name of a dated export, Unix seconds of its beginning; null where it names none, or several. */
export function exportDay(path: string): number | null {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const days = [...name.matchAll(/(?<!\d)(\d{4})[-_]?(\d{2})[-_]?(\d{2})(?!\d)/g)].map(
    ([, y, m, d]) => `${y}-${m}-${d}`,
  )
  const [one, other] = days
  return one === undefined || other !== undefined ? null : (parseInstant(one) ?? null)
}
