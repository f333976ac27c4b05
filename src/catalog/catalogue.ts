import { type Interval, unshownInterval } from '../base/time.ts'
import { type Rule, ruleFor } from './availability.ts'
import type { DeclaredFeature } from './features.ts'
import type { Link, SymbolVariant } from './schema.ts'
import type { EnvelopeKey, Wire } from './wire.ts'
import type { TradingCalendar } from './sessions.ts'
import type { SourceMapping } from './sources.ts'

/** The dimensions of a series in addition to its asset, with the words for one value and for several. */
export const dimensions = [
  { singular: 'interval', plural: 'intervals' },
  { singular: 'currency', plural: 'currencies' },
  { singular: 'exchange', plural: 'exchanges' },
  { singular: 'network', plural: 'networks' },
] as const
export type Dimension = (typeof dimensions)[number]

/** A value of each dimension, null if there is none; for an endpoint, the values used if a request names none. */
export type Defaults = {
  readonly [One in Dimension['singular']]: (One extends 'interval' ? Interval : string) | null
}

/** The availability rules of an endpoint by interval, each list sorted by `until`, the open rule last. */
export type EndpointRules = Readonly<Record<Interval, readonly Rule[]>>

/** The exchanges that one path of a provider takes. */
export interface NamedExchanges {
  /** Exchanges under the provider's own names. */
  readonly exchanges: readonly string[]
  /** The exchange used if a request names none; chosen once for a lake. */
  readonly exchange: string
}

/** The provider's names for everything that the catalogue names by placeholder. */
export interface ProviderNames {
  /** Real paths by the catalogue's path. */
  readonly paths: Readonly<Record<string, string>>
  /** Real exchanges by placeholder, as a configuration maps them. */
  readonly exchanges: Readonly<Record<string, string>>
  /** Exchanges by real path, as the provider's metadata list them. */
  readonly endpoints: Readonly<Record<string, NamedExchanges>>
  /** Real paths that fit a path of the catalogue without a known name: none, or several. */
  readonly candidates: Readonly<Record<string, readonly string[]>>
}

/** An endpoint under the catalogue's names, before the provider's names are known. */
export interface UnnamedEndpoint extends Pick<Endpoint, 'path' | 'ask' | 'placeholders' | 'exchanges'> {
  /** The default exchange. */
  readonly exchange: string | null
}

/** One metric path with all parameters that a request may use. An empty list means that it takes no such parameter. */
export interface Endpoint {
  /** The metric's name everywhere in the lake. */
  readonly path: string
  /** The path in requests; differs from `path` only if two rows request one path with different `params`. */
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
  /** Words of the path that stand for an unknown real name; pitlake never requests such a path from a real provider. */
  readonly placeholders: readonly string[]
  /** The catalogue's name of the path, if `path` or `ask` is the provider's own. */
  readonly alias?: string
  /** Paths of the provider's listing that fit one with placeholders: none, or several. */
  readonly candidates?: readonly string[]
  /** Names in the catalogue; set once the provider's names are known. */
  readonly unnamed?: UnnamedEndpoint
  readonly defaults: Defaults
  /** Time for which a missing tail stays `pending`, in seconds; null for the larger of 2 days and 3 intervals. */
  readonly tolerance: number | null
  /** Comparison of an answer with stored points in their overlap. */
  readonly overlap: 'exact' | 'fixed_range' | 'off'
  /** Whether a value other than the stored one is a further vintage of its point and not a violation. */
  readonly revisable: boolean
  /** Rules for every interval, even if the endpoint takes no interval. */
  readonly rules: EndpointRules
  /** Unknown keys of an imported listing, stored unchanged. */
  readonly extra: Readonly<Record<string, unknown>>
  /** Position of the row, such as `catalog/metrics.yaml:12`; `imported` for user data. */
  readonly source: string
  /** Rules, by JSON pointer, for parts of the values that are known before the whole; user data only. */
  readonly clocks?: Readonly<Record<string, EndpointRules>>
}

/** Position of a row of user data, which the lake itself stores. */
export const imported = 'imported'

/** Whether the endpoint is user data, for which pitlake contacts no provider. */
export const isOwn = ({ source }: Pick<Endpoint, 'source'>): boolean => source === imported

/** Whether words of the path stand for an unknown real name. */
export function isNameless({ placeholders }: Endpoint): boolean {
  return placeholders.length > 0
}

/** Returns the rule in force today for the default interval. */
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
  /** Embedded arrays of the record that contain records of another resource: record key -> resource. */
  readonly holds: Readonly<Record<string, string>>
  readonly filters: readonly string[]
  /** Names of its envelope keys that differ from the usual ones. */
  readonly keys?: Readonly<Partial<Record<EnvelopeKey, string>>>
  /** Position in the catalogue, such as `catalog/registry.yaml:16`. */
  readonly source: string
}

/** A named field: the record keys to read it from, of which the first one present counts, and its kind. */
export interface RegistryField {
  readonly keys: readonly string[]
  readonly kind: 'text' | 'answer' | 'reference'
  /** Known values; `open` lists are expected to grow. */
  readonly values: readonly string[]
  readonly open: boolean
  /** The resource that a reference names; null for other kinds. */
  readonly to: string | null
  readonly source: string
}

/** A row of a catalogue and its position (`file:line`). */
export interface Placed<Row> {
  readonly row: Row
  readonly where: string
}

/** The whole catalogue: the program's only source of truth on endpoints and resources. */
export interface Catalogue {
  /** Endpoints by path, in the catalogue's order. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
  readonly resources: ReadonlyMap<string, Resource>
  readonly wire: Wire
  readonly links: readonly Link[]
  /** Endings by which the symbols of the two APIs differ. */
  readonly symbolVariants: readonly SymbolVariant[]
  /** Registry chain ids by the metrics API's name of a chain, in lower case. */
  readonly chains: ReadonlyMap<string, string>
  /** Trading calendars by the code of the exchange. */
  readonly sessions: ReadonlyMap<string, TradingCalendar>
  /** User files that the catalogues map, by the name of the resulting series. */
  readonly sources: ReadonlyMap<string, Placed<SourceMapping & { readonly files: readonly string[] }>>
  /** Queries that the catalogues declare as features, by the name of the resulting series. */
  readonly features: ReadonlyMap<string, Placed<DeclaredFeature>>
  /** Exchange ids that are placeholders for a real one. */
  readonly placeholderExchanges: ReadonlySet<string>
  /** The provider's own names, as far as they are known; endpoints use these names. */
  readonly names: ProviderNames
  /** SHA-256 over the content of all files, hex. */
  readonly digest: string
}
