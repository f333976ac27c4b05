import { usage } from '../../base/errors.ts'
import type { Sql } from '../../base/intervals-sql.ts'
import { hint } from '../../base/suggestion.ts'
import { exportRule, type SourceMapping } from '../../catalog/sources.ts'
import { quote } from '../../lake/store/engine.ts'
import {
  type ColumnReading,
  type InstantRole,
  rawOf,
  readComponents,
  readInstant,
  readValue,
  readWord,
  type Source,
  spellingSql,
} from './columns.ts'
import { exportDay, fileColumn, type OwnFiles } from './files.ts'

/** The dimensions of a series, as mappings name them. */
export const mappedWords = ['asset', 'currency', 'exchange', 'network'] as const
/** A dimension of a series, as mappings name it. */
export type Word = (typeof mappedWords)[number]

/** A part of the key of a row: a dimension, or `day` if each file is the export of a day. */
export type RowKey = Word | 'day'

/** A column of timestamps, and their purpose. */
export interface InstantColumn {
  readonly role: InstantRole
  readonly source: Source
}

/** The parts that a mapping reads from each row of the files. */
export interface RowPlan {
  readonly given: OwnFiles
  readonly mapping: SourceMapping
  /** Readings of the parts, in the order in which a row is checked. */
  readonly readings: readonly ColumnReading[]
  /** Columns of the table that key a row, in addition to its time. */
  readonly keys: readonly RowKey[]
  /** Dimensions that the mapping states for all rows. */
  readonly constants: Readonly<Partial<Record<Word, string>>>
  /** Columns of timestamps that the mapping names. */
  readonly instants: readonly InstantColumn[]
  /** Names of the columns of the files that are read. */
  readonly used: readonly string[]
  /** Notes on what the mapping leaves open, and on the assumptions made. */
  readonly notes: readonly string[]
}

/** Determines the parts of each row that a mapping reads; an error if a column that it names is missing or unreadable. */
export function planRows(given: OwnFiles, mapping: SourceMapping): RowPlan {
  const names = given.columns.map(({ name }) => name)
  const used = new Set<string>()
  const column = (key: keyof SourceMapping, name: string = key): Source => {
    used.add(name)
    return sourceOf(given, key, name)
  }
  const constants: Partial<Record<Word, string>> = {}
  const keys: RowKey[] = []
  const readings: ColumnReading[] = []
  for (const word of mappedWords) {
    const source = mapping[word] ?? (word === 'asset' ? 'asset' : undefined)
    if (source?.startsWith('=')) constants[word] = source.slice(1)
    else if (source !== undefined) {
      keys.push(word)
      readings.push(readWord(word, column(word, source)))
    }
  }
  const t = column('t', mapping.t)
  const dating = (['available_at', 'vintage'] as const).find((key) => mapping[key] !== undefined)
  const knowledge = dating && column(dating, mapping[dating])
  const isExport = mapping.available === exportRule
  // If the time of availability is given, a day need not begin where the lake's does.
  readings.push(readInstant('interval', 't', t, { ...mapping, label: dating !== undefined || isExport }))
  readings.push(...readSpelling(t, given.relation))
  if (knowledge) readings.push(readInstant('knowledge', dating.replace('_', '-'), knowledge, mapping))
  const { components } = mapping
  const valued = (key: 'components' | 'value', name?: string): Source => valueSource(column(key, name), mapping)
  if (components) readings.push(...readComponents(components.map((component) => valued('components', component))))
  else readings.push(...readValue(valued('value', mapping.value)))
  if (isExport) {
    keys.push('day')
    readings.push({ name: 'day', flag: 'available', sql: dayOf(given), bad: 'false', raw: 'NULL', wanted: `''` })
  }
  const left = names.filter((name) => !used.has(name))
  const naive = t.type === 'VARCHAR' || t.type === 'DATE' || t.type === 'TIMESTAMP' || t.json
  const notes = [
    ...(naive && mapping.zone === undefined ? ['times without a zone are UTC: --zone'] : []),
    ...(left.length > 0 ? [`columns that are not taken: ${left.join(', ')}`] : []),
  ]
  const instants: InstantColumn[] = [
    { role: 'interval', source: t },
    ...(knowledge ? [{ role: 'knowledge' as const, source: knowledge }] : []),
  ]
  return { given, mapping, readings, keys, constants, instants, used: [...used], notes }
}

/** Finds the column of the files for a key of the mapping. */
function sourceOf({ columns, format }: OwnFiles, key: keyof SourceMapping, name: string): Source {
  const found = columns.find((column) => column.name === name)
  if (found?.unreadable) throw found.unreadable
  if (found) return { column: name, type: found.type, json: format === 'json' }
  const names = columns.map((column) => column.name)
  throw usage(`--${key.replace('_', '-')}`, {
    expected: `a column of the file (${names.join(', ')})`,
    got: name,
    next: hint(name, names) ?? 'pitlake import --guess FILE proposes a mapping',
  })
}

/** Adds to a column of values the text that means a missing one, which only a column of texts can contain. */
function valueSource(source: Source, { null_text: nullText }: SourceMapping): Source {
  if (nullText === undefined || source.json || source.type === 'VARCHAR') return { ...source, nullText }
  throw usage('--null', {
    expected: `texts in the column ${source.column}`,
    got: source.type,
    next: 'leave --null away: what is missing there is null already; or read the column as text by a SELECT',
  })
}

/** Builds the check that timestamps of one column are spelled in one way; none if its type allows only one. */
function readSpelling(t: Source, relation: Sql): ColumnReading[] {
  const spelling = spellingSql(t)
  if (spelling === null) return []
  const first = `(SELECT ${spelling} FROM ${relation} LIMIT 1)`
  const wanted = `CASE ${first} WHEN 0 THEN 'a time without a zone'
    WHEN 1 THEN 'a time with its zone' ELSE 'a number' END || ', as in the first row'`
  return [{ name: null, flag: 't', sql: '', raw: rawOf(t), bad: `(${spelling}) <> ${first}`, wanted }]
}

/**
 * SQL of the end of the day in the name of each row's file, in the mapped zone, in microseconds: the time from which
 * the row was known.
 */
function dayOf({ files }: OwnFiles): string {
  const days = files.map(({ path }) => {
    const day = exportDay(path)
    if (day === null)
      throw usage(path, { expected: 'a name with one date, as prices-2024-03-01.csv', got: 'none, or several' })
    return `WHEN ${quote(path)} THEN ${day}`
  })
  return `CAST(CASE ${fileColumn} ${days.join(' ')} END AS BIGINT)`
}
