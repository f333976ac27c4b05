import { type Interval, unshownInterval } from '../base/time.ts'
import { type Rule, ruleFor } from './availability.ts'
import type { DeclaredFeature } from './features.ts'
import type { Link } from './schema.ts'
import type { EnvelopeKey, Wire } from './wire.ts'
import type { SourceMapping } from './sources.ts'

/** The dimensions of a series beside its asset, in the words for one value of them and for the values that there are. */
export const dimensions = [
  { one: 'interval', many: 'intervals' },
  { one: 'currency', many: 'currencies' },
  { one: 'exchange', many: 'exchanges' },
  { one: 'network', many: 'networks' },
] as const
export type Dimension = (typeof dimensions)[number]

/** A value of each dimension, null where there is none; of an endpoint those that stand in where nobody names any. */
export type Defaults = {
  readonly [One in Dimension['one']]: (One extends 'interval' ? Interval : string) | null
}

/** The availability rules of an endpoint by interval, each list sorted by `until`, the open rule last. */
export type EndpointRules = Readonly<Record<Interval, readonly Rule[]>>

/** One metric path with everything that may be asked of it. Empty lists: it takes no such parameter. */
export interface Endpoint {
  /** The metric's name everywhere in the lake. */
  readonly path: string
  /** The path that is asked for; differs from `path` only where two rows ask one path with different `params`. */
  readonly ask: string
  readonly about: string
  readonly intervals: readonly Interval[]
  readonly currencies: readonly string[]
  readonly exchanges: readonly string[]
  readonly networks: readonly string[]
  readonly since: boolean
  readonly until: boolean
  readonly format: boolean
  readonly timestampFormat: boolean
  /** Further fixed query parameters; part of the identity of its series. */
  readonly params: Readonly<Record<string, string>>
  /** Words of the path that stand for a real name and must be mapped before a real provider is asked. */
  readonly placeholders: readonly string[]
  readonly defaults: Defaults
  /** How long a missing tail stays `pending`, in seconds; null: the larger of 2 days and 3 intervals. */
  readonly tolerance: number | null
  /** How the overlap with stored points is compared. */
  readonly overlap: 'exact' | 'fixed_range' | 'off'
  /** Whether another value than the stored one is a further vintage of its point, no violation. */
  readonly revisable: boolean
  /** For every interval, also if the endpoint takes none. */
  readonly rules: EndpointRules
  /** Unknown keys of an imported listing, kept as they came. */
  readonly extra: Readonly<Record<string, unknown>>
  /** Where the row stands: `catalog/metrics.yaml:12`; of own data `imported`. */
  readonly source: string
  /** For user data: parts of the values that are known before the whole, by JSON pointer, each with its rules. */
  readonly clocks?: Readonly<Record<string, EndpointRules>>
}

/** Where the row of own data stands: in the lake itself. */
export const imported = 'imported'

/** Whether it is own data: nobody is asked for it. */
export const isOwn = ({ source }: Pick<Endpoint, 'source'>): boolean => source === imported

/** Whether words of a path stand for a real name that nobody has told, `paths`: real names by path. */
export function isNameless({ path, placeholders }: Endpoint, paths: Readonly<Record<string, string>>): boolean {
  return placeholders.length > 0 && paths[path] === undefined
}

/** The rule in force today for the interval that is asked for unless another is named. */
export function standardRule({ rules, defaults }: Endpoint): Rule {
  return ruleFor(rules[defaults.interval ?? unshownInterval], Infinity)
}

/** One registry resource: its wire names and its typed fields. */
export interface Resource {
  /** Plural, as in paths and views: `issuers`. */
  readonly name: string
  /** Singular, as in events: `issuer`. */
  readonly entity: string
  readonly path: string
  readonly detail: boolean
  readonly fields: Readonly<Record<string, RegistryField>>
  /** Embedded arrays of the record that become tables of their own: record key -> table. */
  readonly embeds: Readonly<Record<string, string>>
  /** Embedded arrays of the record that are records of another resource: record key -> resource. */
  readonly holds: Readonly<Record<string, string>>
  readonly filters: readonly string[]
  /** Names around its records where they are not the usual ones. */
  readonly keys?: Readonly<Partial<Record<EnvelopeKey, string>>>
  /** Where it stands: `catalog/registry.yaml:16`. */
  readonly source: string
}

/** A named field: the keys of the record that may hold it, first one present wins, and its kind. */
export interface RegistryField {
  readonly keys: readonly string[]
  readonly kind: 'text' | 'answer' | 'reference'
  /** Known values; `open` lists are expected to grow. */
  readonly values: readonly string[]
  readonly open: boolean
  /** For references: the resource named. */
  readonly to: string | null
  readonly source: string
}

/** A row of a catalogue, and where it stands. */
export interface Placed<Row> {
  readonly row: Row
  readonly where: string
}

/** The whole catalogue: the program's only source of truth on endpoints and resources. */
export interface Catalogue {
  /** By path, in the catalogue's order. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
  readonly resources: ReadonlyMap<string, Resource>
  readonly wire: Wire
  readonly links: readonly Link[]
  /** Registry chain ids by the metrics API's name of a chain, in lower case. */
  readonly chains: ReadonlyMap<string, string>
  /** Files of one's own that the catalogues map, by the name of what they become. */
  readonly sources: ReadonlyMap<string, Placed<SourceMapping & { readonly files: readonly string[] }>>
  /** Queries that the catalogues declare to be series, by the name of what they become. */
  readonly features: ReadonlyMap<string, Placed<DeclaredFeature>>
  /** Exchange ids that stand for a real one. */
  readonly placeholderExchanges: ReadonlySet<string>
  /** SHA-256 over the content of all files, hex. */
  readonly digest: string
}
