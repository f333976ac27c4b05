import type { Sql } from '../../base/intervals-sql.ts'
import { quote } from '../../lake/store/engine.ts'

/*
 * Texts of SQL as expressions of SQL: what the macros of the joins put together while they are bound.
 */

/** Builds the SQL of the value behind a key, text; NULL if the key is missing. */
export function lookUp(lines: Sql, key: Sql): Sql {
  return `string_split(string_split(${lines}, concat('\n', ${key}, '\t'))[2], '\n')[1]`
}

/** Formats texts by their keys, as one text. */
export function linesOf(pairs: readonly (readonly [string, string])[]): Sql {
  return quote(`\n${pairs.map(([key, value]) => `${key}\t${value}\n`).join('')}`)
}

/** Formats the place of a text in the text of a query. */
export function slot(name: string): string {
  return `\u0001${name}\u0001`
}

/** Builds a text with places as an SQL expression: each place receives the text of its expression. */
export function filled(text: string, places: Readonly<Record<string, Sql>>): Sql {
  const pieces = text.split('\u0001').map((name, n) => {
    if (n % 2 === 0) return quote(name)
    const place = places[name]
    if (place === undefined) throw new RangeError(`nothing stands for ${name} in a query`)
    return place
  })
  return `concat(${pieces.join(', ')})`
}

/** Builds the literal of a text, NULL of NULL. */
export function literal(text: Sql): Sql {
  return `'''' || replace(${text}, '''', '''''') || ''''`
}

/** Builds the SQL of a span. The engine takes a text without a unit as seconds: only 0 needs none. */
export function spanSql(parameter: Sql): Sql {
  const text = `CAST(${parameter} AS VARCHAR)`
  return (
    `CAST(CASE WHEN TRY_CAST(${text} AS DOUBLE) <> 0 THEN error(concat('${parameter} has no unit: ', ${text})) ` +
    `ELSE ${text} END AS INTERVAL)`
  )
}
