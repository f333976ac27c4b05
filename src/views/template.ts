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
 * The SQL expression of an instant that a session variable holds, TIMESTAMPTZ, NULL while it is unset. It folds to a
 * constant and reads alike in every session time zone: TIMESTAMPTZ and text with `Z` or an offset are their instant,
 * everything without a zone is UTC.
 */
export function instantSql(variable: string): string {
  const held = `getvariable('${variable}')`
  return `CASE WHEN typeof(${held}) = 'TIMESTAMP WITH TIME ZONE' THEN CAST(${held} AS TIMESTAMPTZ)
    WHEN typeof(${held}) = 'VARCHAR' AND regexp_matches(CAST(${held} AS VARCHAR), ':[0-9.]+ *([+-]|[A-Za-z])') THEN CAST(CAST(${held} AS VARCHAR) AS TIMESTAMPTZ)
    ELSE timezone('UTC', CAST(${held} AS TIMESTAMP)) END`
}

/** True while the rule stands in for backfilled points; a word that is neither `rule` nor `strict` is an error. */
export const backfillSql = `CASE WHEN getvariable('backfill') IS NULL THEN false
    WHEN CAST(getvariable('backfill') AS VARCHAR) = 'rule' THEN true
    WHEN CAST(getvariable('backfill') AS VARCHAR) = 'strict' THEN false
    ELSE CAST(error('the variable backfill is neither ''rule'' nor ''strict''') AS BOOLEAN) END`
