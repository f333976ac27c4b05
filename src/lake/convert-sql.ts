import { readFileSync } from 'node:fs'
import { quote } from './engine.ts'

const texts = new Map<string, string>()

/** The statement `src/sql/convert/<name>.sql` with each `{{fragment}}` replaced; a missing or unused one is an error. */
export function statement(name: string, fragments: Readonly<Record<string, string | number>> = {}): string {
  const unused = new Set(Object.keys(fragments))
  const sql = text(name).replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => {
    const fragment = fragments[key]
    if (fragment === undefined) throw new RangeError(`${name}.sql needs the fragment ${key}`)
    unused.delete(key)
    return String(fragment)
  })
  if (unused.size > 0) throw new RangeError(`${name}.sql has no fragment ${[...unused].join(', ')}`)
  return sql
}

/**
 * SQL of the text at the position that the column `body` names; a constant where all texts are the same, else an enum:
 * to look up and to write a small number is several times faster than a text, and every reader of Parquet sees text.
 */
export function lookup(texts: readonly (string | null)[]): string {
  const first = texts[0] ?? null
  if (texts.every((text) => text === first)) return first === null ? 'CAST(NULL AS VARCHAR)' : quote(first)
  const list = texts.map((text) => (text === null ? 'NULL' : quote(text))).join(', ')
  const values = [...new Set(texts)].flatMap((text) => (text === null ? [] : [quote(text)])).join(', ')
  return `(CAST([${list}] AS ENUM (${values})[]))[body + 1]`
}

/** The rows as an SQL literal of their JSON text. */
export function json(rows: readonly object[]): string {
  return quote(JSON.stringify(rows))
}

function text(name: string): string {
  const held = texts.get(name)
  if (held !== undefined) return held
  const read = readFileSync(new URL(`../sql/convert/${name}.sql`, import.meta.url), 'utf8')
  texts.set(name, read)
  return read
}
