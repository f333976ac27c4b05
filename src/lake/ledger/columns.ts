import {
  count,
  json,
  mapOf,
  maybe,
  oneOf,
  orNull,
  real,
  text,
  whole,
  type ValueCheck,
} from '../../base/value-checks.ts'

/** A column of a ledger table, declared here alone: journal, index, exported file and view follow from it. */
export interface LedgerColumn<T = unknown> {
  /** What the journal and the index hold under its name. */
  readonly check: ValueCheck<T>
  /** Type in the index. */
  readonly stored: 'TEXT' | 'INTEGER' | 'REAL'
  /** Type in the view. */
  readonly shown: 'VARCHAR' | 'BIGINT' | 'INTEGER' | 'DOUBLE' | 'TIMESTAMPTZ'
  /** SQL of its value in the view (timestamps in microseconds), if that is not the stored value. */
  readonly value?: string
  /** Comment of the column in the view. */
  readonly about: string
}

/** The columns of a ledger table, in their order. */
export type LedgerColumns = Readonly<Record<string, LedgerColumn>>

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
    value: 'since * 1000000',
    about: 'start of the requested range',
  },
  until: {
    check: orNull(real),
    stored: 'INTEGER',
    shown: 'TIMESTAMPTZ',
    value: 'until * 1000000',
    about: 'end of that range, exclusive',
  },
  status: {
    check: orNull(whole),
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
    value: `nullif(detail, 'null')`,
    about: 'reason, or words of the provider, JSON',
  },
  provider_date: {
    check: maybe(real),
    stored: 'REAL',
    shown: 'TIMESTAMPTZ',
    value: 'CAST(provider_date * 1000000 AS INTEGER)',
    about: 'time of the provider, from the Date of its answer; NULL if there was none',
  },
} as const satisfies LedgerColumns

/** A ledger table of which index, exported file and view are made from its columns. */
export interface LedgerTable {
  readonly columns: LedgerColumns
  /** The columns that tell its rows apart. */
  readonly key: readonly string[]
}

/** The declared ledger tables, by name. The others stand in `sql/`. */
export const ledgerTables = {
  requests: { columns: requestColumns, key: ['id'] },
} as const satisfies Readonly<Record<string, LedgerTable>>

/** The checks of columns by their names, as the journal and the index use them. */
export function checksOf<C extends LedgerColumns>(columns: C): { readonly [K in keyof C]: C[K]['check'] } {
  const checks = Object.entries(columns).map(([name, { check }]) => [name, check] as const)
  // The compiler does not follow the keys through Object.fromEntries.
  return Object.fromEntries(checks) as { readonly [K in keyof C]: C[K]['check'] }
}

/** The statement that makes a declared table in the index. */
export function createTableSql(name: string, { columns, key }: LedgerTable): string {
  const lines = Object.entries(columns).map(([column, { check, stored }]) => {
    const isNullable = check.optional === true || (check.nested !== true && check(null) === undefined)
    return `${column} ${stored}${isNullable ? '' : ' NOT NULL'}`
  })
  return `CREATE TABLE IF NOT EXISTS ${name} (${[...lines, `PRIMARY KEY (${key.join(', ')})`].join(', ')}) WITHOUT ROWID;`
}
