import { quote } from '../../lake/store/engine.ts'
import { clockWords, type Compiled, type CompiledViews } from './compile.ts'
import { asStored, fillIn, readObjects } from './template.ts'

/** Builds the text of `lake.sql`: the same objects as `lake.duckdb`, for any DuckDB session. */
export function scriptText({ root, version, objects }: CompiledViews): string {
  const head = [
    `-- The lake in ${root.replaceAll(/[\r\n]/g, ' ')} as of version ${version}: views and macros only, made ` +
      `by \`pitlake views\`.`,
    '-- Use it with the official duckdb command line: duckdb -init lake.sql',
    "-- SET VARIABLE as_of = '2024-06-01' moves every view back to what was knowable then, observed_as_of to what this",
    "-- lake held then; SET VARIABLE backfill = 'rule' lets the rule date backfilled points.",
    '-- The files are named by their full path. "No files found that match the pattern": the lake was moved or ' +
      'copied, or',
    '-- vacuumed since. Run `pitlake views` and read the new lake.sql.',
    "SET TimeZone = 'UTC';",
    'SET parquet_metadata_cache = true;',
  ]
  return `${head.join('\n')}\n\n${objects.map(section).join('\n')}`
}

function section({ file, sql }: Compiled): string {
  return `-- ${file}\n${sql}\n`
}

const header = /^(?=-- \d\d_\w+\.sql$)/m
const created = /^-- \S+\nCREATE (?:OR REPLACE )?\w+(?: IF NOT EXISTS)? [\w."]+/

/**
 * Lists the objects that differ from an earlier script. Undefined if it makes other objects, by kind or by name: then
 * replacing those that changed would not produce what the new script does.
 */
export function changedObjects(objects: readonly Compiled[], earlier: string): readonly Compiled[] | undefined {
  const [, ...stood] = earlier.split(header).map((text) => text.trimEnd())
  const isNew = (text: string, i: number): boolean => created.exec(text)?.[0] !== created.exec(stood[i] ?? '')?.[0]
  const texts = objects.map((object) => section(object).trimEnd())
  if (texts.length !== stood.length || texts.some(isNew)) return undefined
  return objects.filter((_, i) => texts[i] !== stood[i])
}

/** Tells whether an object is needed, by its name, and its schema if that is not `main`. */
export type IsNeeded = (name: string, schema: string | undefined) => boolean

const named = /^-- \S+\nCREATE (?:OR REPLACE )?(?:VIEW|MACRO) (?:(\w+)\.)?"?(\w+)"?/

/**
 * Returns the text of a `lake.sql` with the schemas and only those views and macros that are needed. No object of a lake
 * names a different one, so the others stay what they are.
 */
export function partOfScript(script: string, isNeeded: IsNeeded): string {
  const sections = script.split(header).filter((section) => {
    const [, schema, name] = named.exec(section) ?? []
    return name === undefined || isNeeded(name, schema)
  })
  return sections.join('')
}

/** Placeholder for the real relation of stored points in the SQL that replaces it. */
export const realPoints = '{{real}}'

/**
 * Builds the text of a `lake.sql` with other points: wherever its views and macros read stored points, `points` is read
 * instead, a SELECT of the same columns with `{{real}}` once for the relation over the files. The cuts by `as_of` and
 * `observed_as_of` come behind it, and comments are left out. Undefined if the text is of a program that wrote points
 * differently.
 */
export function alteredScript(script: string, points: string): string | undefined {
  const { heads, tail } = frameOfPoints()
  const [before = '', after, ...more] = points.split(realPoints)
  if (after === undefined || more.length > 0) throw new RangeError(`one ${realPoints} was to be in ${points}`)
  let altered = script
  let matches = 0
  // As it is in views, inside the texts from which the joins make theirs, and in texts of those.
  for (const depth of [0, 1, 2]) {
    const spelt = (text: string): string => quotedTimes(text, depth)
    let opened = 0
    for (const head of heads) {
      const parts = altered.split(spelt(head))
      opened += parts.length - 1
      altered = parts.join(spelt(`${head}(${before}`))
    }
    if (altered.split(spelt(tail)).length - 1 !== opened) return undefined
    matches += opened
    altered = altered.replaceAll(spelt(tail), () => spelt(`${after})${tail}`))
  }
  if (matches === 0) return undefined
  return altered.replaceAll(asStored, 'false').replaceAll(/^COMMENT ON [^\n]*;$\n?/gm, '')
}

const quotedTimes = (text: string, times: number): string =>
  times === 0 ? text : quotedTimes(quote(text).slice(1, -1), times - 1)

/**
 * Finds the relation over the files of points that a `lake.sql` reads, for FROM; undefined if its program wrote points
 * differently.
 */
export function relationOfPoints(script: string): string | undefined {
  const { heads, tail } = frameOfPoints()
  for (const head of heads) {
    const [relation, rest] = script.split(head)[1]?.split(tail) ?? []
    if (rest !== undefined) return relation
  }
  return undefined
}

/** SQL around the relation of stored points; nothing in it depends on a lake. */
interface PointsFrame {
  /**
   * The SQL before the relation: with `observed_at` cut at `ledger_as_of` as in views, and as it is stored as in joins.
   */
  readonly heads: readonly [string, string]
  readonly tail: string
}

function frameOfPoints(): PointsFrame {
  const object = readObjects([]).find(({ kind, name }) => kind === 'view' && name === 'points')
  if (!object) throw new RangeError('src/query/views/sql/ has no view points')
  const mark = '\u0002'
  const around = (keepsObservedAt: boolean): readonly string[] =>
    fillIn('points', object.body, (word, argument) => {
      if (word === 'files') return mark
      return keepsObservedAt && word === 'stored_by_then' ? argument : clockWords[word]?.(argument)
    }).split(mark)
  const [head = '', tail = ''] = around(false)
  const [plainHead = ''] = around(true)
  return { heads: [head, plainHead], tail }
}

/**
 * Marks the text of views for untrusted clients: each scan of a file gets the mark, a plain word that cannot be
 * guessed, as the name of its file column, and each cut by `as_of` contains it as a text, so that a bound plan
 * distinguishes the scans of the views from any other. Text that names the folder is left out.
 */
export function markedViews(script: string, mark: string): string {
  return script
    .replaceAll('rows_read.filename', `rows_read.${mark}`)
    .replaceAll(/(?<![\w/.-])path_of_file(?![\w/.-])/g, mark)
    .replaceAll(scan, (_, options: string) => `${options}, filename = $$${mark}$$`)
    .replaceAll(
      /getvariable\(('+)as_of\1\) IS NULL/g,
      (unset, q: string) => `(${unset} AND ${q}${mark}${q} <> ${q}${q})`,
    )
    .replaceAll(/'(?:[^']|'')*' AS folder/g, 'CAST(NULL AS VARCHAR) AS folder')
    .replaceAll(/\(SELECT count\(\*\) FROM glob\('(?:[^']|'')*'\)\) = 0/g, 'false')
}

/** End of the options of a scan; the mark stands between dollars, which mean the same in a text of a text. */
const scan = /(hive_partitioning = \w+(?:, hive_types = \{[^}]*\})?)(?:, filename = '*\w+'*)?/g
