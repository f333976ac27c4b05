/** What stands for a placeholder: its word and its argument ('' where it has none) give the SQL text. */
export type Fill = (word: string, argument: string) => string | undefined

/** The text with every `{{word argument}}` replaced, inner ones first; one that nothing stands for is an error. */
export function fillIn(name: string, text: string, fill: Fill): string {
  const start = text.indexOf('{{')
  if (start < 0) return text
  const end = closing(text, start)
  const [, word = '', argument = ''] = /^(\w+)\s*([\s\S]*?)\s*$/.exec(text.slice(start + 2, end)) ?? []
  const filled = fill(word, fillIn(name, argument, fill))
  if (filled === undefined)
    throw new RangeError(`src/views/sql/${name} holds ${text.slice(start, end + 2)}, which stands for nothing`)
  return `${text.slice(0, start)}${filled}${fillIn(name, text.slice(end + 2), fill)}`
}

/** Where the `}}` stands that belongs to the `{{` at `start`. */
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
 * The SQL of a moment of any type as TIMESTAMPTZ, alike in every session time zone: TIMESTAMPTZ and text with `Z` or an
 * offset are their instant, everything without a zone is UTC.
 */
export function utcSql(x: string): string {
  return `CASE WHEN typeof(${x}) = 'TIMESTAMP WITH TIME ZONE' THEN CAST(${x} AS TIMESTAMPTZ)
    WHEN typeof(${x}) = 'VARCHAR' AND regexp_matches(CAST(${x} AS VARCHAR), ':[0-9.]+ *([+-]|[A-Za-z])') THEN CAST(CAST(${x} AS VARCHAR) AS TIMESTAMPTZ)
    ELSE timezone('UTC', CAST(${x} AS TIMESTAMP)) END`
}

/** The SQL of the instant that a session variable holds, NULL while it is unset; it folds to a constant. */
export function instantSql(variable: string): string {
  return utcSql(`getvariable('${variable}')`)
}

/** True while a session variable is unset; shorter than asking its instant, and each view asks several times. */
export function unsetSql(variable: string): string {
  return `getvariable('${variable}') IS NULL`
}

/** True while the rule stands in for backfilled points; a word that is neither `rule` nor `strict` is an error. */
export const backfillSql = `CASE WHEN getvariable('backfill') IS NULL THEN false
    WHEN CAST(getvariable('backfill') AS VARCHAR) = 'rule' THEN true
    WHEN CAST(getvariable('backfill') AS VARCHAR) = 'strict' THEN false
    ELSE CAST(error('the variable backfill is neither ''rule'' nor ''strict''') AS BOOLEAN) END`
