import { intervals } from '../base/time.ts'
import type { CalendarGrid } from './panel-calendar.ts'

/** Time: a text such as `2024-06-01` or `2024-06-01T12:00:00Z`, or a `Date`. Without a zone it is UTC. */
export type Moment = string | Date

/** Values that a caller may pass, by kind of option. */
interface Given<Choice extends string> {
  readonly instant: Moment
  /** A length of time with its unit; 0 needs none. */
  readonly span: string | 0
  /** A length of time that may be given in months; 0 needs no unit. */
  readonly calendarSpan: string | 0
  readonly text: string
  readonly list: string | readonly string[]
  readonly switch: boolean
  readonly choice: Choice
  readonly choices: readonly Choice[]
  /** Paths, or columns with the metric of each. */
  readonly metrics: readonly string[] | Readonly<Record<string, string>>
  readonly count: number
  readonly grid: { readonly since: string; readonly until: string; readonly step: string }
  readonly records: readonly Instant[]
}

/** Values after reading: instants are texts, spans seconds or the text of an SQL interval, metrics pairs of a column and its metric. */
interface Read<Choice extends string>
  extends Omit<Given<Choice>, 'instant' | 'span' | 'calendarSpan' | 'list' | 'metrics' | 'grid'> {
  readonly instant: string
  readonly span: number
  readonly calendarSpan: string
  readonly list: readonly string[]
  readonly metrics: readonly PanelColumn[]
  readonly grid: CalendarGrid
}

/** Time at which something is decided. Its further fields come back next to the answer. */
export interface Instant {
  /** Time of the decision. */
  readonly ts: Moment | null
  readonly [field: string]: string | number | boolean | null | Date
}

/** Decision about `asset` at `ts`. */
export interface Decision extends Instant {
  /** Asset that is decided about. */
  readonly asset: string | null
}

/** Column of a panel, and its metric. */
interface PanelColumn {
  readonly name: string
  /** A path, with a JSON pointer behind `#` where one leaf of an object is meant. */
  readonly metric: string
}

/** Kind of an option's value; derived, so that `Given` is the one list of kinds. */
export type OptionKind = keyof Given<string>

/** Option of a question. */
export interface OptionFact {
  readonly kind: OptionKind
  readonly about: string
  /** The words that a choice lets through. */
  readonly choices?: readonly string[]
  /** Name of the value on a command line; without one the option is a switch there. */
  readonly flag?: string
  /** A command line names it as a session variable, with `--set`. */
  readonly set?: true
  readonly required?: true
  readonly most?: number
}

/** Options by their names in snake case: their flags, fields, schemas and types all come from such a table. */
export type Options = Readonly<Record<string, OptionFact>>

/** A state of knowledge. */
export const knowledgeOptions = {
  as_of: { kind: 'instant', flag: 'TIME', about: 'only what was knowable at this instant' },
  observed_as_of: { kind: 'instant', flag: 'TIME', about: 'only what this lake contained then' },
  backfill: {
    kind: 'choice',
    choices: ['rule', 'strict'],
    set: true,
    about: 'rule: the availability rule dates backfilled points',
  },
  registry_backfill: {
    kind: 'switch',
    set: true,
    about: 'lets the earliest known state of the registry also answer for the time before it',
  },
} as const satisfies Options

/** Fields that a panel can show of the point behind a cell. */
const panelFields = ['v', 'o', 't', 'available_at', 'age'] as const
/** A field of a point in a panel; derived, so that `panelFields` is the one list of them. */
export type PanelField = (typeof panelFields)[number]

const intervalNames: readonly string[] = intervals

/** The columns of the view `universe`, which a panel can have of the asset or product of each decision. */
const universeColumns = [
  ...(['product_id', 'name', 'symbol', 'isin', 'status', 'issuer_id', 'issuer_name', 'issuer_status'] as const),
  ...(['jurisdiction', 'asset_id', 'asset_name', 'asset_class', 'ticker', 'deployments', 'valid_from'] as const),
  ...(['first_seen', 'assumed', 'chains'] as const),
] as const
/** A column of the view `universe`; derived, so that `universeColumns` is the one list of them. */
export type UniverseColumn = (typeof universeColumns)[number]

/** Options of panels and joins: which series, and how old its points may be. */
export const joinOptions = {
  interval: {
    kind: 'choice',
    choices: intervalNames,
    flag: 'NAME',
    about: 'interval of the metrics; 24h where none is named',
  },
  latency: { kind: 'span', flag: 'TIME', about: 'time needed to act: 15m' },
  max_age: { kind: 'span', flag: 'TIME', about: 'older points give NULL: 3d' },
  back: {
    kind: 'calendarSpan',
    flag: 'SPAN',
    about: 'instead of the newest known point the one that ended this long before it: 90d, 3month',
  },
  currency: { kind: 'text', flag: 'NAME', about: 'native or usd (default: the catalogue’s)' },
  exchange: { kind: 'text', flag: 'NAME', about: 'exchange of the metrics (default: the catalogue’s)' },
  network: { kind: 'text', flag: 'NAME', about: 'network of the metrics (default: the catalogue’s)' },
  component: {
    kind: 'text',
    flag: 'POINTER',
    about: 'JSON pointer into objects, for metrics without a #/pointer of their own',
  },
  skip_nulls: { kind: 'switch', about: 'points whose value is null do not count' },
  unresolved: {
    kind: 'choice',
    choices: ['value', 'null'],
    flag: 'WORD',
    about: 'null: NULL if a newer point should be known by its rule, but is unresolved',
  },
  vintage: {
    kind: 'choice',
    choices: ['last', 'first'],
    flag: 'WORD',
    about: 'first: the first value of points that were revised, for studies of revisions',
  },
  follow_renames: {
    kind: 'switch',
    about: 'also use the points of the assets before and after a rename, from when the rename was known',
  },
} as const satisfies Options

/** Options of a panel; each interface adds its own option for the source of the decisions. */
export const panelOptions = {
  universe: {
    kind: 'text',
    flag: 'CONDITION',
    about: "instead of assets the products known at each ts: asset_class = 'stablecoins' AND status = 'active'",
  },
  metrics: {
    kind: 'metrics',
    flag: 'LIST',
    about: 'paths, or column=path; path#/pointer takes one leaf of an object',
    required: true,
  },
  fields: {
    kind: 'choices',
    choices: panelFields,
    flag: 'LIST',
    about: `fields of each point: ${panelFields.join(', ')} (default: v)`,
  },
  with: {
    kind: 'choices',
    choices: universeColumns,
    flag: 'LIST',
    about:
      'columns of the registry as known at each ts: status, issuer_status, asset_class, chains, … of view universe',
  },
  ...joinOptions,
} as const satisfies Options

/** A grid of decisions. */
export const gridOptions = {
  calendar: {
    kind: 'grid',
    flag: 'SINCE,UNTIL,STEP',
    about:
      'a grid of decisions: 2024-01-01,2025-01-01,1d (or 15m, 1w, 1month; XNYS: closes of its sessions, ' +
      'XNYS:open; or a local time: daily at 09:30 America/New_York); needs assets or a universe',
  },
  assets: { kind: 'list', flag: 'LIST', about: 'assets of the grid' },
} as const satisfies Options

/** Options of decisions: instants and what is decided at them, as records. */
export const decisionOptions = {
  decisions: { kind: 'records', about: 'instead of a calendar: ts and asset of each; further fields come back' },
} as const satisfies Options

/**
 * Options that select points. Without an option nothing is restricted, but an interval or dimension is the catalogue's
 * default; `*` means all.
 */
export const pointsOptions = {
  metrics: { kind: 'list', about: 'paths' },
  assets: { kind: 'list', about: 'assets' },
  interval: { kind: 'text', about: 'of the series' },
  currency: joinOptions.currency,
  exchange: joinOptions.exchange,
  network: joinOptions.network,
  since: { kind: 'instant', about: 'first t' },
  until: { kind: 'instant', about: 'end of the range of t, exclusive' },
} as const satisfies Options

type Camel<Name extends string> = Name extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<Camel<Rest>>}`
  : Name
type ChoiceOf<Fact> = Fact extends { readonly choices: readonly (infer Choice extends string)[] } ? Choice : string
type RequiredIn<Table extends Options> = {
  [Name in keyof Table]: Table[Name] extends { readonly required: true } ? Name : never
}[keyof Table]

/** The options of a table as a caller of the library names them. */
export type GivenOptions<Table extends Options> = {
  readonly [Name in keyof Table & string as Camel<Name>]?: Given<ChoiceOf<Table[Name]>>[Table[Name]['kind']] | undefined
} & {
  readonly [Name in RequiredIn<Table> & string as Camel<Name>]: Given<ChoiceOf<Table[Name]>>[Table[Name]['kind']]
}

/** State of knowledge of a lake. */
export interface KnowledgeOptions {
  /** Answers contain only what was knowable by then. */
  readonly asOf?: Moment | undefined
  /** Answers contain only what this lake had stored by then. */
  readonly observedAsOf?: Moment | undefined
  /** `rule` lets the availability rule date backfilled points. Default: `strict`. */
  readonly backfill?: 'rule' | 'strict' | undefined
  /** Lets the earliest known registry state also answer for the time before it. */
  readonly registryBackfill?: boolean | undefined
}

/** Options of joins and panels: which series, and how old its points may be. */
export interface JoinOptions {
  /** Interval of the metric. Default: `24h`. */
  readonly interval?: string | undefined
  /** Dimension of the series. Default: the catalogue's. Ignored if the metric has no such dimension. */
  readonly currency?: string | undefined
  /** Dimension of the series, as `currency`. */
  readonly exchange?: string | undefined
  /** Dimension of the series, as `currency`. */
  readonly network?: string | undefined
  /** JSON pointer into an object or array value, such as `/open`. You can also write `path#/pointer` as the metric. */
  readonly component?: string | undefined
  /** Time that you need to act, such as `15m`: the answer is what was known that long before `ts`. Default: 0. */
  readonly latency?: string | 0 | undefined
  /** A point that is older than this, such as `3d`, gives NULL. Default: no limit. */
  readonly maxAge?: string | 0 | undefined
  /**
   * Answers with an earlier point: of those known at `ts` the newest that ended at least this long before the newest one,
   * such as `90d` or `3 months`. Default: the newest.
   */
  readonly back?: string | 0 | undefined
  /** Ignores points whose value is null. Default: a null is the latest knowledge. */
  readonly skipNulls?: boolean | undefined
  /** Value of an unresolved decision: `value` (default) is the newest known value, `null` is NULL. */
  readonly unresolved?: 'value' | 'null' | undefined
  /** Value of a revised point: the `last` one known at `ts` (default), or the `first`. */
  readonly vintage?: 'last' | 'first' | undefined
  /** Also uses points of the predecessors and successors of the asset, after a rename or migration. */
  readonly followRenames?: boolean | undefined
}

/**
 * Values of a table of options, as `readOptions` returns them. Derived, so that the table is the one list of options.
 */
export type ReadOptions<Table extends Options> = {
  readonly [Name in keyof Table & string as Camel<Name>]?: Read<ChoiceOf<Table[Name]>>[Table[Name]['kind']] | undefined
} & {
  readonly [Name in RequiredIn<Table> & string as Camel<Name>]: Read<ChoiceOf<Table[Name]>>[Table[Name]['kind']]
}

/** Converts an option's name to its spelling in TypeScript programs. */
export function camel<Name extends string>(name: Name): Camel<Name> {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) as Camel<Name>
}
