import { textsIn } from '../../lake/store/sql.ts'

/**
 * Returns the SQL text for a placeholder from its word and its argument ('' if it has none); undefined for an unknown
 * word.
 */
export type PlaceholderFill = (word: string, argument: string) => string | undefined

/** Replaces every `{{word argument}}` in a text, inner ones first; one without a replacement is an error. */
export function fillIn(name: string, text: string, fill: PlaceholderFill): string {
  const start = text.indexOf('{{')
  if (start < 0) return text
  const end = closing(text, start)
  const [, word = '', argument = ''] = /^(\w+)\s*([\s\S]*?)\s*$/.exec(text.slice(start + 2, end)) ?? []
  const filled = fill(word, fillIn(name, argument, fill))
  if (filled === undefined)
    throw new RangeError(`src/query/views/sql/${name} holds ${text.slice(start, end + 2)}, which stands for nothing`)
  return `${text.slice(0, start)}${filled}${fillIn(name, text.slice(end + 2), fill)}`
}

/** Finds the `}}` that belongs to the `{{` at `start`. */
function closing(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length - 1; at++) {
    const two = text.slice(at, at + 2)
    if (two === '{{') depth++
    else if (two === '}}') depth--
    else continue
    if (depth === 0) return at
    at++
  }
  throw new RangeError(`a placeholder is not closed: ${text.slice(start, start + 60)}`)
}

/**
 * Builds the SQL of a moment of any type as TIMESTAMPTZ, alike in every session time zone: TIMESTAMPTZ and text with
 * `Z` or an offset are their instant, everything without a zone is UTC.
 */
export function utcSql(x: string): string {
  return `CASE WHEN typeof(${x}) = 'TIMESTAMP WITH TIME ZONE' THEN CAST(${x} AS TIMESTAMPTZ)
    WHEN typeof(${x}) = 'VARCHAR' AND regexp_matches(CAST(${x} AS VARCHAR), '(?i):[0-9.]+ *(?:[+-]|(?:z|utc|gmt) *$|[a-z_]+/)') THEN CAST(CAST(${x} AS VARCHAR) AS TIMESTAMPTZ)
    ELSE timezone('UTC', CAST(${x} AS TIMESTAMP)) END`
}

/** Builds the SQL of the instant in a session variable, NULL while it is unset; it folds to a constant. */
export function instantSql(variable: string): string {
  return utcSql(`getvariable('${variable}')`)
}

/**
 * Builds the condition that a session variable is unset; shorter than reading its instant, and each view needs it
 * several times.
 */
export function unsetSql(variable: string): string {
  return `getvariable('${variable}') IS NULL`
}

/**
 * SQL that is true while the rule replaces the clock of backfilled points; a word that is neither `rule` nor `strict`
 * is an error.
 */
export const backfillSql = `CASE WHEN getvariable('backfill') IS NULL THEN false
    WHEN CAST(getvariable('backfill') AS VARCHAR) = 'rule' THEN true
    WHEN CAST(getvariable('backfill') AS VARCHAR) = 'strict' THEN false
    ELSE CAST(error('the variable backfill is neither ''rule'' nor ''strict''') AS BOOLEAN) END`

/** Condition that is true in the views of a lake; false if other points replace the stored ones. */
export const asStored = `'as stored' <> ''`

/**
 * Builds the condition that an instant lies behind an odd number of the edges in a session variable, microseconds in
 * order. It searches by halves: with a list of hundreds each row would be compared with each, which took most of a
 * look-ahead proof over millions.
 */
export function betweenEdges(variable: string, at: string): string {
  const edges = `CAST(getvariable('${variable}') AS BIGINT[])`
  const halves = `list_transform(range(CAST(ceil(log2(len(${edges}) + 1)) AS BIGINT)), lambda proof_half: 1 << proof_half)`
  return `list_reduce(list_reverse(${halves}), lambda proof_place, proof_half:
    CASE WHEN ${edges}[proof_place + proof_half] < epoch_us(${at}) THEN proof_place + proof_half ELSE proof_place END, 0) % 2 = 1`
}

const folder = new URL('sql/', import.meta.url)

/** One schema, view or macro of the lake as its SQL file defines it; its placeholders are not replaced yet. */
export interface ObjectText {
  /** `points`, `history.issuers`, `pit_join`. */
  readonly name: string
  readonly kind: 'schema' | 'view' | 'macro'
  /** Name of its file in `sql/`. */
  readonly file: string
  /** The comments at the top of the file. */
  readonly header: string
  /** Everything after the header: the CREATE statement and the comments. */
  readonly text: string
  /** Text between AS and the first `;` at the end of a line; empty for a schema. */
  readonly body: string
  /** Body with every vintage of a point; it differs from `body` for the view `points` only. */
  readonly stored: string
}

/**
 * Reads the objects in the order of their files' numbers; a text with `{{resource}}` becomes one for each of these
 * tables of the registry.
 */
export function readObjects(tables: readonly string[]): ObjectText[] {
  return textsIn(folder).flatMap(([file, whole]) => {
    const [header = ''] = /^(?:--[^\n]*\n|\s*\n)+/.exec(whole) ?? []
    const text = whole.slice(header.length)
    const texts = text.includes('{{resource}}') ? tables.map((table) => text.replaceAll('{{resource}}', table)) : [text]
    return texts.map((text) => objectOf(file, header, text))
  })
}

let parts: ReadonlyMap<string, string> | undefined

/** Reads a piece of SQL that statements share, without the comments at its top. */
export function partOf(name: string): string {
  // One build of the views asks for parts dozens of times.
  parts ??= new Map(textsIn(new URL('parts/', folder)))
  const found = parts.get(`${name}.sql`)
  if (found === undefined) throw new RangeError(`src/query/views/sql/parts/ has no ${name}.sql`)
  return found.replace(/^(?:--[^\n]*\n)+/, '').trimEnd()
}

const create = /^CREATE (?:OR REPLACE )?(SCHEMA|VIEW|MACRO)(?: IF NOT EXISTS)? ([\w."]+)/i

function objectOf(file: string, header: string, text: string): ObjectText {
  const [, kind = '', name] = create.exec(text) ?? []
  if (name === undefined) throw new RangeError(`src/query/views/sql/${file} does not begin with a CREATE statement`)
  const [, body] = /\sAS\s+([\s\S]*?);[^\S\n]*(?:\n|$)/i.exec(text) ?? []
  if (body === undefined && kind.toUpperCase() !== 'SCHEMA')
    throw new RangeError(`src/query/views/sql/${file} says no AS`)
  return {
    name: name.replaceAll('"', ''),
    kind: kind.toLowerCase() as 'schema' | 'view' | 'macro',
    file,
    header,
    text: text.trimEnd(),
    body: body ?? '',
    stored: body ?? '',
  }
}
