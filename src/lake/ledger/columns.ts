import {
  count,
  flag,
  json,
  mapOf,
  maybe,
  oneOf,
  orNull,
  real,
  shape,
  text,
  wholeNumber,
  type ValueCheck,
} from '../../base/value-checks.ts'
import { intervals } from '../../base/time.ts'

/** A column of a ledger table, declared here alone: journal, index, exported file and view follow from it. */
export interface LedgerColumn<T = unknown> {
  /**
   * Check of the value that the journal and the index store under its name; left out for a column that is computed for
   * the views.
   */
  readonly check?: ValueCheck<T>
  /** Type in the index; left out if the index does not have the column. */
  readonly stored?: 'TEXT' | 'INTEGER' | 'REAL'
  /** Type in the exported file, from which the view reads; left out if the file does not have the column. */
  readonly shown?: 'VARCHAR' | 'BIGINT' | 'INTEGER' | 'DOUBLE' | 'BOOLEAN' | 'TIMESTAMPTZ'
  /**
   * SQL of its value in the exported file (timestamps in microseconds), from that in the index; left out if it is the
   * same.
   */
  readonly value?: (stored: string) => string
  /** SQL of its value in the view, with the placeholders of the view's file; left out if it is the exported value. */
  readonly viewed?: string
  /** Comment of the column in the view; left out if the view does not have the column. */
  readonly about?: string
}

/** The columns of a ledger table, in the order of the view. */
export type LedgerColumns = Readonly<Record<string, LedgerColumn>>

/** Checks of the columns that have one, by name. */
export type ColumnChecks<C extends LedgerColumns> = {
  readonly [K in keyof C as C[K] extends { readonly check: unknown } ? K : never]: C[K] extends {
    readonly check: infer Check
  }
    ? Check
    : never
}

/** SQL of a time that is stored in seconds, in microseconds. */
const seconds = (stored: string): string => `${stored} * 1000000`

/** The identity of one provider per API, and whether the data is synthetic. */
export const providerFields = { metrics: maybe(text), registry: maybe(text), synthetic: flag }

/** The short number of a series, in the index only; the journal uses its id. */
const seriesNumber = { series: { check: wholeNumber, stored: 'INTEGER' } } as const satisfies LedgerColumns

/** The six dimensions of a series, which the exported file contains instead of its number. */
export const seriesColumns = {
  metric: { shown: 'VARCHAR', about: 'path of the endpoint' },
  asset: { shown: 'VARCHAR', about: 'asset id of the metrics API' },
  interval: { shown: 'VARCHAR', about: `interval of the points: ${intervals.join(', ')}, by the UTC calendar` },
  currency: { shown: 'VARCHAR', about: 'native or usd; NULL if the endpoint has none' },
  exchange: { shown: 'VARCHAR', about: 'exchange id; NULL if the endpoint has none' },
  network: { shown: 'VARCHAR', about: 'network; NULL if the endpoint has none' },
} as const satisfies LedgerColumns

/** The version that added a row, and the time of its commit. */
const addedVersion = { added_version: { check: count, stored: 'INTEGER' } } as const satisfies LedgerColumns
const addedAt = { added_at: { shown: 'TIMESTAMPTZ' } } as const satisfies LedgerColumns

/** The version that ended a row, NULL while the row is valid, and the time of its commit. */
const removedVersion = { removed_version: { check: orNull(count), stored: 'INTEGER' } } as const satisfies LedgerColumns
const removedAt = { removed_at: { shown: 'TIMESTAMPTZ' } } as const satisfies LedgerColumns

/** Columns of an answer about a half-open window of a series; times in seconds. */
export const windowColumns = {
  since: { check: wholeNumber, stored: 'INTEGER', shown: 'TIMESTAMPTZ', value: seconds, about: 'start of the range' },
  until: {
    check: wholeNumber,
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    value: seconds,
    about: 'end of the range, exclusive',
  },
  state: {
    check: oneOf('covered', 'empty', 'unsupported', 'failed', 'not requested'),
    stored: 'TEXT',
    shown: 'VARCHAR',
    about:
      'covered, empty, unsupported, failed or not requested (planned by a run that ended before it could request it)',
  },
  reason: {
    check: orNull(text),
    stored: 'TEXT',
    shown: 'VARCHAR',
    about: 'why: gap or pending if points are missing in a covered range; NULL if there is no reason to give',
  },
  asked_at: {
    check: real,
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    value: seconds,
    viewed: 'CASE WHEN {{by_then asked_at}} THEN asked_at END',
    about:
      'time of the last request. If state is not requested: time at which that state was first recorded. NULL ' +
      'if later than observed_as_of',
  },
  request: { check: orNull(text), stored: 'TEXT', shown: 'VARCHAR' },
} as const satisfies LedgerColumns

/** The state of every requested window, now and in every earlier version. Live rows of one series are disjoint. */
const coverageColumns = {
  ...seriesNumber,
  ...seriesColumns,
  ...windowColumns,
  ...addedVersion,
  ...removedVersion,
  ...addedAt,
  ...removedAt,
  verified_at: {
    shown: 'TIMESTAMPTZ',
    viewed: 'CASE WHEN {{by_then verified_at}} THEN verified_at END',
    about: 'when verify last requested a part of it again; NULL if never, or only after observed_as_of',
  },
} as const satisfies LedgerColumns

/** An upstream value that contradicts a stored one: `t` in seconds, both values as JSON text, times in microseconds. */
export const violationColumns = {
  t: {
    check: real,
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    value: seconds,
    about: 'start of the interval. If the violation covers a range (until is set): start of its first interval',
  },
  kind: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'what differs' },
  stored: {
    check: orNull(text),
    stored: 'TEXT',
    shown: 'VARCHAR',
    about: 'the stored value, JSON; NULL if the violation covers a range',
  },
  offered: {
    check: orNull(text),
    stored: 'TEXT',
    shown: 'VARCHAR',
    about: 'the value that came instead, JSON; NULL if the point was gone',
  },
  stored_at: {
    check: orNull(real),
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    about: 'when the stored value was observed; NULL if the violation covers a range',
  },
  offered_at: { check: real, stored: 'INTEGER', shown: 'TIMESTAMPTZ', about: 'when the offered value was observed' },
  request: {
    check: orNull(text),
    stored: 'TEXT',
    shown: 'VARCHAR',
    about: 'id of the request that returned it; see requests',
  },
} as const satisfies LedgerColumns

/** Violations and their outcome: one row per series, t, kind and offered value, and per incident the same. */
const allViolationColumns = {
  ...seriesNumber,
  ...seriesColumns,
  ...violationColumns,
  /** The offered value, or '' if there is none; part of the key. */
  offered_key: { check: text, stored: 'TEXT' },
  ...addedVersion,
  ...addedAt,
  ...removedAt,
  acknowledged_at: {
    shown: 'TIMESTAMPTZ',
    viewed: 'CASE WHEN {{by_then acknowledged_at}} THEN acknowledged_at END',
    about: 'when a person acknowledged it (violations acknowledge); NULL if not acknowledged',
  },
  why: {
    shown: 'VARCHAR',
    viewed: 'CASE WHEN {{by_then acknowledged_at}} THEN why END',
    about: 'the reason that the person gave',
  },
  reverted_at: {
    shown: 'TIMESTAMPTZ',
    about:
      "time from which the provider's answers agree with the stored value again; NULL while the latest answer " +
      'still differs',
  },
  status: {
    viewed: `CASE WHEN acknowledged_at IS NOT NULL AND ({{by_then acknowledged_at}}) THEN 'acknowledged'
    WHEN reverted_at IS NOT NULL THEN 'reverted' ELSE 'open' END`,
    about: 'open, acknowledged or reverted',
  },
  /** Id of the incident; '' in the index if the violation belongs to none. */
  incident: {
    check: text,
    stored: 'TEXT',
    shown: 'VARCHAR',
    value: (stored) => `nullif(${stored}, '')`,
    about: 'id of the incident to which the violation belongs; NULL if it belongs to none',
  },
  /** End of the window; 0 in the index for a single point. */
  until: {
    check: count,
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    value: (stored) => `nullif(${stored}, 0) * 1000000`,
    about: 'end of the range in which all stored points were missing, exclusive; NULL for a single point',
  },
  points: { check: count, stored: 'INTEGER', shown: 'BIGINT', about: 'number of points that it concerns' },
} as const satisfies LedgerColumns

/**
 * Kinds of clock findings: `before_end` and `before_stated` (computed before the end of the interval, or before the
 * time of a stated rule), `convention` (`t` seems to be the other edge of the interval), `vanished` (an answer lacks
 * stored points of a revisable series), `clock_ahead` (stored while a clock was ahead).
 */
export const clockFindingKinds = ['before_end', 'before_stated', 'convention', 'vanished', 'clock_ahead'] as const
export type ClockFindingKind = (typeof clockFindingKinds)[number]

/**
 * Columns of a contradiction of an availability rule or of the timestamp convention: `t` in seconds, `at` in
 * microseconds.
 */
export const clockFindingColumns = {
  t: {
    check: real,
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    value: seconds,
    about: 'start of the interval; if the finding concerns a whole answer, of its first point',
  },
  kind: {
    check: oneOf(...clockFindingKinds),
    stored: 'TEXT',
    shown: 'VARCHAR',
    about:
      'before_end: computed before the end of its interval. before_stated: computed before the time that a ' +
      'stated rule gives. convention: t seems to be the end of the interval instead of its start. vanished: an ' +
      'answer lacks stored points of a revisable series. clock_ahead: stored while a clock was ahead, and given ' +
      'a new date by doctor --repair',
  },
  detail: {
    check: json,
    stored: 'TEXT',
    shown: 'VARCHAR',
    about: 'what was found, JSON; times in microseconds',
  },
  at: { check: real, stored: 'INTEGER' },
} as const satisfies LedgerColumns

/** Clock findings, one row per series, t and kind. */
const allClockFindingColumns = {
  ...seriesNumber,
  ...seriesColumns,
  ...clockFindingColumns,
  found_at: { shown: 'TIMESTAMPTZ', about: 'when it was found' },
  ...addedVersion,
  ...addedAt,
} as const satisfies LedgerColumns

/** Columns of the journal for a type that values of a metric have; times in microseconds. */
export const valueTypeColumns = {
  metric: { check: text, stored: 'TEXT', shown: 'VARCHAR' },
  /** Position in the value: `$` is the value itself, `$.a[*].b` a member of the objects in a list. */
  path: { check: text, stored: 'TEXT', shown: 'VARCHAR' },
  /** Position of the containing object or list; null for the value itself. */
  parent: { check: orNull(text), stored: 'TEXT', shown: 'VARCHAR' },
  type: { check: oneOf('null', 'boolean', 'number', 'string', 'object', 'array'), stored: 'TEXT', shown: 'VARCHAR' },
  available_at: { check: orNull(wholeNumber), stored: 'INTEGER', shown: 'TIMESTAMPTZ' },
  /** Alternative to `available_at` for the case that the rule dates backfilled points. */
  ruled_at: { check: orNull(wholeNumber), stored: 'INTEGER', shown: 'TIMESTAMPTZ' },
} as const satisfies LedgerColumns

const { metric, path, parent, type, available_at, ruled_at } = valueTypeColumns

/** Types of values: one row per position and type, and one more for each time that a type reappeared. */
const allValueTypeColumns = {
  metric,
  path,
  parent,
  type,
  /** The type after which it reappeared; '' at its first appearance. */
  after_type: { check: text, stored: 'TEXT', shown: 'VARCHAR' },
  available_at,
  ruled_at,
  ...addedVersion,
  ...removedVersion,
  ...addedAt,
  ...removedAt,
} as const satisfies LedgerColumns

/**
 * A run from its beginning to its end, in microseconds; facts that are not known yet are left out and added by a later
 * line.
 */
export const runColumns = {
  id: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'id of the run' },
  job: { check: maybe(text), stored: 'TEXT', shown: 'VARCHAR', about: 'what it did: fetch, registry …' },
  command: { check: maybe(text), stored: 'TEXT', shown: 'VARCHAR', about: 'the command as typed' },
  started_at: { check: maybe(real), stored: 'INTEGER', shown: 'TIMESTAMPTZ', about: 'when it began' },
  ended_at: {
    check: maybe(real),
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    viewed: 'CASE WHEN {{by_then ended_at}} THEN ended_at END',
    about: 'when it ended; NULL while it runs, or if it was killed',
  },
  stopped_by: {
    check: maybe(orNull(text)),
    stored: 'TEXT',
    shown: 'VARCHAR',
    viewed: 'CASE WHEN {{by_then ended_at}} THEN stopped_by END',
    about: 'what stopped it early; NULL if it finished',
  },
  exit_code: {
    check: maybe(wholeNumber),
    stored: 'INTEGER',
    shown: 'INTEGER',
    viewed: 'CASE WHEN {{by_then ended_at}} THEN exit_code END',
    about: 'its exit code',
  },
  plan: {
    check: maybe(json),
    stored: 'TEXT',
    shown: 'VARCHAR',
    about: 'requests, credits, points and seconds that were planned, JSON',
  },
  actual: {
    check: maybe(json),
    stored: 'TEXT',
    shown: 'VARCHAR',
    viewed: 'CASE WHEN {{by_then ended_at}} THEN actual END',
    about: 'what it did, JSON',
  },
} as const satisfies LedgerColumns

/** A commit. `committed_at` is in microseconds and strictly increasing. */
export const versionColumns = {
  version: {
    check: count,
    stored: 'INTEGER',
    shown: 'BIGINT',
    about: 'number of the commit; covers all tables at once',
  },
  committed_at: {
    check: count,
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    about:
      'time of the commit, equal to the observed_at of the points that it added. Times increase from version ' +
      'to version, except after doctor --repair of a wrong clock',
  },
  job: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'what made it' },
  run: { check: orNull(text), stored: 'TEXT', shown: 'VARCHAR', about: 'run that made it' },
  program: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'name and version of the program' },
  provider: { check: shape(providerFields), stored: 'TEXT' },
  metrics_provider: { shown: 'VARCHAR', about: 'provider of the metrics API' },
  registry_provider: { shown: 'VARCHAR', about: 'provider of the registry' },
  synthetic: { shown: 'BOOLEAN', about: 'true if the data comes from the sandbox' },
  files_added: { check: count, stored: 'INTEGER', shown: 'BIGINT', about: 'files that it added' },
  files_removed: {
    check: count,
    stored: 'INTEGER',
    shown: 'BIGINT',
    about: 'files that this version replaced; the views no longer read them',
  },
  files_dropped: { check: count, stored: 'INTEGER', shown: 'BIGINT', about: 'files that vacuum deleted from the disk' },
  points_added: { check: wholeNumber, stored: 'INTEGER', shown: 'BIGINT', about: 'points that it added' },
  digest: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'SHA-256 of its journal entry' },
} as const satisfies LedgerColumns

/** One request to an API: the facts, never the key. Ranges in seconds, `asked_at` in microseconds. */
export const requestColumns = {
  id: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'id of the request' },
  run: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'run that sent it; see runs' },
  api: { check: oneOf('metrics', 'registry'), stored: 'TEXT', shown: 'VARCHAR', about: 'metrics or registry' },
  path: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'requested path' },
  query: { check: mapOf(text), stored: 'TEXT', shown: 'VARCHAR', about: 'query parameters, JSON' },
  series: {
    check: orNull(text),
    stored: 'TEXT',
    shown: 'VARCHAR',
    about: 'id of the series; NULL for the registry',
  },
  since: {
    check: orNull(real),
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    value: seconds,
    about: 'start of the requested range',
  },
  until: {
    check: orNull(real),
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    value: seconds,
    about: 'end of that range, exclusive',
  },
  status: {
    check: orNull(wholeNumber),
    stored: 'INTEGER',
    shown: 'INTEGER',
    about: 'HTTP status; NULL if there was no answer',
  },
  outcome: { check: text, stored: 'TEXT', shown: 'VARCHAR', about: 'how pitlake classified the answer' },
  points: {
    check: orNull(count),
    stored: 'INTEGER',
    shown: 'BIGINT',
    about: 'points in the answer, known ones included',
  },
  bytes: { check: orNull(count), stored: 'INTEGER', shown: 'BIGINT', about: 'bytes of the body' },
  credits: { check: orNull(real), stored: 'REAL', shown: 'DOUBLE', about: 'what it cost' },
  attempts: { check: count, stored: 'INTEGER', shown: 'INTEGER', about: 'how often it was sent' },
  asked_at: { check: real, stored: 'INTEGER', shown: 'TIMESTAMPTZ', about: 'when it was first sent' },
  seconds: { check: orNull(real), stored: 'REAL', shown: 'DOUBLE', about: 'how long it took' },
  detail: {
    check: json,
    stored: 'TEXT',
    shown: 'VARCHAR',
    value: (stored) => `nullif(${stored}, 'null')`,
    about: 'reason, or words of the provider, JSON',
  },
  provider_date: {
    check: maybe(real),
    stored: 'REAL',
    shown: 'TIMESTAMPTZ',
    value: (stored) => `CAST(${stored} * 1000000 AS INTEGER)`,
    about: 'time of the provider, from the Date of its answer; NULL if there was none',
  },
} as const satisfies LedgerColumns

/** A ledger table; index, exported file and view are derived from its columns. */
export interface LedgerTable {
  readonly columns: LedgerColumns
  /** Columns of the index that identify a row. */
  readonly key: readonly string[]
  /** A further column with unique values. */
  readonly unique?: string
}

/** The declared ledger tables, by name. `sql/` contains the tables without a view, and the indexes. */
export const ledgerTables = {
  requests: { columns: requestColumns, key: ['id'] },
  coverage: { columns: coverageColumns, key: ['series', 'since', 'added_version'] },
  violations: {
    columns: allViolationColumns,
    key: ['series', 't', 'kind', 'offered_key', 'incident', 'until'],
  },
  clock_findings: { columns: allClockFindingColumns, key: ['series', 't', 'kind'] },
  value_types: { columns: allValueTypeColumns, key: ['metric', 'path', 'type', 'after_type', 'added_version'] },
  runs: { columns: runColumns, key: ['id'] },
  versions: {
    /**
     * Columns of `versions`. `leaf` stores the fields of the log of versions other than version and digest (log.ts); it
     * outlives the entry.
     */
    columns: { ...versionColumns, leaf: { check: text, stored: 'TEXT' } },
    key: ['version'],
    unique: 'committed_at',
  },
} as const satisfies Readonly<Record<string, LedgerTable>>

/** Returns the checks of columns by their names, for the journal and the index. */
export function checksOf<C extends LedgerColumns>(columns: C): ColumnChecks<C> {
  const checks = Object.entries(columns).flatMap(([name, { check }]) => (check === undefined ? [] : [[name, check]]))
  // The compiler does not infer the keys through Object.fromEntries.
  return Object.fromEntries(checks) as ColumnChecks<C>
}

/** Builds the statement that creates a declared table in the index. */
export function createTableSql(name: string, { columns, key, unique }: LedgerTable): string {
  const lines = Object.entries(columns).flatMap(([column, { check, stored }]) => {
    if (stored === undefined) return []
    const isNullable = check?.optional === true || (check?.nested !== true && check?.(null) === undefined)
    const constraint = `${isNullable ? '' : ' NOT NULL'}${column === unique ? ' UNIQUE' : ''}`
    return [`${column} ${stored}${constraint}`]
  })
  return (
    `CREATE TABLE IF NOT EXISTS ${name} (${[...lines, `PRIMARY KEY (${key.join(', ')})`].join(', ')}) ` +
    'WITHOUT ROWID;'
  )
}
