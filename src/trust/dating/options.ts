import { type JoinOptions, joinOptions, type Moment, type Options, type ReadOptions } from '../../query/options.ts'

/** Kinds of tables that can be dated. */
export const tableKinds = ['panel', 'points', 'vintages', 'universe'] as const
/** Kind of a table; derived, so that `tableKinds` is the one list of them. */
export type TableKind = (typeof tableKinds)[number]

const { interval, currency, exchange, network, component, latency, max_age, skip_nulls, unresolved, vintage } =
  joinOptions
const { follow_renames } = joinOptions

/** What a caller may say about a table: a claimed time, what its columns are, and how it was made. */
export const datingOptions = {
  claimed: { kind: 'instant', flag: 'TIME', about: 'as_of that the table is said to have' },
  claimed_observed: { kind: 'instant', flag: 'TIME', about: 'observed_as_of that the table is said to have' },
  kind: { kind: 'choice', choices: tableKinds, flag: 'WORD', about: 'kind of the table (default: by its columns)' },
  ts: { kind: 'text', flag: 'COLUMN', about: 'column with the time of each decision (default: by its name)' },
  t: { kind: 'text', flag: 'COLUMN', about: 'column with the start of each interval (default: by its name)' },
  asset: {
    kind: 'text',
    flag: 'COLUMN',
    about: 'column with the asset, or the asset of a table without one (default: by its name)',
  },
  metrics: {
    kind: 'metrics',
    flag: 'LIST',
    about: 'metrics of columns, column=path (default: by name, then by value); one path if columns are assets',
  },
  value: { kind: 'text', flag: 'COLUMN', about: 'column with the values of a table with a metric in each row' },
  interval: { ...interval, about: 'interval of the metrics (default: 24h, else that of the catalogue)' },
  currency,
  exchange,
  network,
  component,
  latency: { ...latency, about: 'latency with which a panel was made: 15m' },
  max_age: { ...max_age, about: 'age above which values of a panel were NULL: 3d' },
  skip_nulls: { ...skip_nulls, about: 'the panel was made without points whose value is null' },
  unresolved,
  vintage: { ...vintage, about: 'value of revised points in the table (default: last)' },
  follow_renames,
} as const satisfies Options

/** What a caller says about a table, read. */
export type DatingOptions = ReadOptions<typeof datingOptions>

/** What you may say about a table that `when` dates. */
export interface WhenOptions
  extends Pick<
    JoinOptions,
    | 'interval'
    | 'currency'
    | 'exchange'
    | 'network'
    | 'component'
    | 'latency'
    | 'maxAge'
    | 'skipNulls'
    | 'unresolved'
    | 'vintage'
    | 'followRenames'
  > {
  /** `as_of` that the table is said to have. */
  readonly claimed?: Moment | undefined
  /** `observed_as_of` that the table is said to have. */
  readonly claimedObserved?: Moment | undefined
  /** Kind of the table: `panel`, `points`, `vintages` or `universe`. Default: by its columns. */
  readonly kind?: TableKind | undefined
  /** Column with the time of each decision. Default: by its name. */
  readonly ts?: string | undefined
  /** Column with the start of each interval. Default: by its name. */
  readonly t?: string | undefined
  /** Column with the asset, or the asset of a table without one. Default: by its name. */
  readonly asset?: string | undefined
  /** Metrics of columns, such as `{ price: 'price_usd' }`. Default: by name, then by value. */
  readonly metrics?: readonly string[] | Readonly<Record<string, string>> | undefined
  /** Column with the values of a table with a metric in each row. Default: `value` or `v`. */
  readonly value?: string | undefined
}
