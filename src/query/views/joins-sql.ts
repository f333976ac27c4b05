import type { Sql } from '../../base/intervals-sql.ts'
import { quote } from '../../lake/store/engine.ts'

/*
 * Texts of SQL as expressions of SQL: what the macros of the joins put together while they are bound.
 */

/** The value behind a key, text; NULL where the key is not there. */
export function lookUp(lines: Sql, key: Sql): Sql {
  return `string_split(string_split(${lines}, concat('\n', ${key}, '\t'))[2], '\n')[1]`
}

/** Texts by their keys, as one text. */
export function linesOf(pairs: readonly (readonly [string, string])[]): Sql {
  return quote(`\n${pairs.map(([key, value]) => `${key}\t${value}\n`).join('')}`)
}

/** The place of a text in the text of a query. */
export function slot(name: string): string {
  return `\u0001${name}\u0001`
}

/** A text with places as an SQL expression: each place holds the text that its expression gives. */
export function filled(text: string, places: Readonly<Record<string, Sql>>): Sql {
  const pieces = text.split('\u0001').map((name, n) => {
    if (n % 2 === 0) return quote(name)
    const place = places[name]
    if (place === undefined) throw new RangeError(`nothing stands for ${name} in a query`)
    return place
  })
  return `concat(${pieces.join(', ')})`
}

/** The literal of a text, NULL of NULL. */
export function literal(text: Sql): Sql {
  return `'''' || replace(${text}, '''', '''''') || ''''`
}
