import { intervals, measureOf } from '../../time.ts'
import { quote } from '../../store/engine.ts'
import { textsIn } from '../../store/sql.ts'
import { arrivalsSql } from '../../views/joins-grid.ts'
import { type ObjectText, readObjects, fillIn, utcSql } from '../../views/template.ts'
import { clickhouse, type Dialect, duckdb, spark, trino } from './dialects.ts'

/** A text that is published beside the tables. */
export interface ReaderText {
  /** Relative to the destination. */
  readonly path: string
  readonly text: string
}

/**
 * The texts by which other engines ask the published tables as our views ask the lake. The SQL ones are made of the
 * very text of the view `points` and of two queries that every dialect understands.
 */
export function readerTexts(uri: string): readonly ReaderText[] {
  const one = (name: string, dialect?: Dialect): ReaderText => ({
    path: `readers/${name}`,
    text: fillIn(name, own(name), (word, argument) => {
      const plain = { uri, uri_text: JSON.stringify(uri), lengths: lengths(), columns: columns() }[word]
      return plain ?? (dialect && words(dialect)(word, argument))
    }),
  })
  return [
    one('duckdb.sql', duckdb(uri, utcSql)),
    one('clickhouse.sql', clickhouse(uri)),
    one('spark.sql', spark(uri, false)),
    one('trino.sql', trino()),
    one('pitlake_pyspark.py', spark(uri, true)),
    one('pitlake_polars.py'),
  ]
}

/** Of each interval of a constant length its seconds, as Python says a dictionary. */
function lengths(): string {
  const all = intervals.map((interval): [string, number] => [interval, measureOf(interval).seconds])
  return JSON.stringify(Object.fromEntries(all.filter(([, seconds]) => seconds > 0)))
}

/** The columns of the view `points`, as its header tells them and as Python says a list. */
function columns(): string {
  const [, names = ''] = /^-- columns: ([\w, ]+)\.$/m.exec(pointsView().header) ?? []
  return JSON.stringify(names.split(', '))
}

function pointsView(): ObjectText {
  const view = readObjects([]).find(({ name }) => name === 'points')
  if (view === undefined) throw new RangeError('there is no view points')
  return view
}

/** What the placeholders of the texts stand for in a dialect. */
function words(dialect: Dialect): (word: string, argument: string) => string | undefined {
  const seconds = (option: string): string => dialect.whole(`${dialect.number(option)} * 1000000`)
  const known: Readonly<Record<string, (...parts: string[]) => string>> = {
    table: (name = '') => dialect.table(name),
    decisions: () => dialect.decisions,
    option: (name = '') => dialect.text(name),
    flag: (name = '') => dialect.flag(name),
    micros: (instant = '') => dialect.micros(instant),
    seconds: (option = '') => `coalesce(${seconds(option)}, 0)`,
    intervals: () => intervals.map(quote).join(', '),
    end: (t = '') => endSql(dialect, t),
    taken: (dimension = '') => takenSql(dialect, dimension),
    newest: (keys = '') => arrivalsSql(keys).newest,
    following: (keys = '') => arrivalsSql(keys).following,
    fresh: (x = '') =>
      `CASE WHEN ${dialect.number('max_age')} IS NULL OR ${dialect.micros('d.ts')} - f.end_us <= ${seconds('max_age')} THEN ${x} END`,
    refuse: (condition = '', message = '') => dialect.refuse(condition, message),
    lacks: (parts = '') => lacksSql(dialect, parts),
    known: (resource = '') => versionsSql(dialect, resource),
    view: () => indented(pointsSql(dialect)),
    points: () => pointsSql(dialect),
    text: (name = '') => bodyOf(name, dialect),
    rest: (name = '') => bodyOf(name, dialect).replace(/^WITH /, ''),
    strange: () => dialect.strange ?? '0',
  }
  return (word, argument) =>
    Object.hasOwn(known, word) ? known[word]?.(...argument.split('|').map((part) => part.trim())) : undefined
}

/** One of the shared queries in a dialect, without its header. */
function bodyOf(name: string, dialect: Dialect): string {
  const body = own(`${name}.sql`)
    .replace(/^(?:--[^\n]*\n)+/, '')
    .trimEnd()
  return named(fillIn(name, body, words(dialect)), dialect)
}

/** The body of the view `points` over the published table. */
function pointsSql(dialect: Dialect): string {
  const view = pointsView()
  const clocks: Readonly<Record<string, string>> = {
    files: dialect.table('points'),
    as_of: dialect.instant('as_of'),
    observed_as_of: dialect.instant('observed_as_of'),
    backfill: `(coalesce(${dialect.text('backfill')}, 'strict') = 'rule')`,
    ruled: 'stored.available_rule_at',
    computed: 'stored.computed_at',
    proved: 'true',
  }
  const unset = (option: string): string => `${dialect.instant(option)} IS NULL`
  const body = fillIn(view.file, view.body, (word, argument) => (word === 'unset' ? unset(argument) : clocks[word]))
  return named(body.replaceAll(/\n\s+AND true/g, ''), dialect)
}

/** The versions of a resource that are known at `as_of`, by what the lake held at `observed_as_of`. */
function versionsSql(dialect: Dialect, resource: string): string {
  const cut = (option: string): string => {
    const at = dialect.instant(option)
    return `(${at} IS NULL OR h.valid_from <= ${at})`
  }
  const open = ['as_of', 'observed_as_of'].map((option) => `coalesce(${dialect.instant(option)} < h.valid_to, false)`)
  return `SELECT h.* FROM ${dialect.table(`history_${resource}`)} AS h
  WHERE ${cut('as_of')} AND ${cut('observed_as_of')} AND (h.valid_to IS NULL OR ${open.join(' OR ')})`
}

/** The end of the option `interval` that starts at an instant, both in microseconds, free of any calendar of the session. */
function endSql(dialect: Dialect, t: string): string {
  const day = 86_400_000_000
  const branches = intervals.map((interval) => {
    const { seconds, months } = measureOf(interval)
    if (months === 0) return `WHEN '${interval}' THEN ${t} + ${seconds * 1_000_000}`
    if (months > 1) throw new RangeError(`no reader knows the end of ${interval}`)
    // Months begin at midnight of their first day: 31 days later is one of the first four days of the next.
    const later = `(${dialect.quotient(t, day)} + 31)`
    return `WHEN '${interval}' THEN (${later} - ${dialect.monthDay(later)} + 1) * ${day}`
  })
  return `CASE ${dialect.text('interval')} ${branches.join(' ')} END`
}

/** The value of a dimension that a metric is joined on: the option, else the catalogue's; none where it takes none. */
function takenSql(dialect: Dialect, dimension: string): string {
  const standard = `max(e.default_${dimension})`
  return `CASE WHEN ${standard} IS NOT NULL THEN coalesce(${dialect.text(dimension)}, ${standard}) END`
}

/** Whether a value is asked for that the metric does not take, though it takes others: `currency currencies`. */
function lacksSql(dialect: Dialect, parts: string): string {
  const [dimension = '', values = ''] = parts.split(' ')
  const wanted = dialect.text(dimension)
  return `${wanted} IS NOT NULL AND max(e.default_${dimension}) IS NOT NULL
        AND max(CASE WHEN ${dialect.has(`e.${values}`, wanted)} THEN 1 ELSE 0 END) = 0`
}

const folder = new URL('./', import.meta.url)

function own(name: string): string {
  const found = ['.sql', '.py'].flatMap((ending) => textsIn(folder, ending)).find(([file]) => file === name)
  if (found === undefined) throw new RangeError(`no text of readers is named ${name}`)
  return found[1]
}

/** Names that are words of the language as the dialect quotes them. */
function named(sql: string, { quote }: Dialect): string {
  return sql.replaceAll(/"(\w+)"/g, `${quote}$1${quote}`)
}

function indented(sql: string): string {
  return sql.replaceAll(/^/gm, '    ')
}
