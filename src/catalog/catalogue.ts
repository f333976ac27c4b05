import { type Interval, unshownInterval } from '../base/time.ts'
import { type Rule, ruleFor } from './availability.ts'
import type { DeclaredFeature } from './features.ts'
import type { Link, SymbolVariant } from './schema.ts'
import type { EnvelopeKey, Wire } from './wire.ts'
import type { TradingCalendar } from './sessions.ts'
import type { SourceMapping } from './sources.ts'

/**
 * The dimensions of a series beside its asset, in the words for one value of them and for the values that there are.
 */
export const dimensions = [
  { singular: 'interval', plural: 'intervals' },
  { singular: 'currency', plural: 'currencies' },
  { singular: 'exchange', plural: 'exchanges' },
  { singular: 'network', plural: 'networks' },
] as const
export type Dimension = (typeof dimensions)[number]

/** A value of each dimension, null where there is none; of an endpoint those that stand in where nobody names any. */
export type Defaults = {
  readonly [One in Dimension['singular']]: (One extends 'interval' ? Interval : string) | null
}

/** The availability rules of an endpoint by interval, each list sorted by `until`, the open rule last. */
export type EndpointRules = Readonly<Record<Interval, readonly Rule[]>>

/** The exchanges that one path of a provider takes. */
export interface NamedExchanges {
  /** In the provider's own names. */
  readonly exchanges: readonly string[]
  /** The one that stands in where nobody names any: chosen once for a lake. */
  readonly exchange: string
}

/** The names that a provider has for everything that the catalogue names by placeholder. */
export interface ProviderNames {
  /** Real paths, by the catalogue's. */
  readonly paths: Readonly<Record<string, string>>
  /** Real exchanges by placeholder, as a configuration maps them. */
  readonly exchanges: Readonly<Record<string, string>>
  /** By real path: exchanges as the provider's metadata list them. */
  readonly endpoints: Readonly<Record<string, NamedExchanges>>
  /** Real paths that fit a path of the catalogue that still has no name: none or several of them. */
  readonly candidates: Readonly<Record<string, readonly string[]>>
}

/** What a catalogue calls an endpoint before a provider's names are known. */
export interface UnnamedEndpoint extends Pick<Endpoint, 'path' | 'ask' | 'placeholders' | 'exchanges'> {
  /** The default exchange. */
  readonly exchange: string | null
}

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
  /** Words of the path that stand for a real name which is not known: a real provider is never requested for it. */
  readonly placeholders: readonly string[]
  /** The catalogue's name of the path, where `path` or `ask` is the provider's own. */
  readonly alias?: string
  /** Paths of the provider's listing that fit one with placeholders: none, or several. */
  readonly candidates?: readonly string[]
  /** Names in the catalogue, once a provider's names are known. */
  readonly unnamed?: UnnamedEndpoint
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

/** Whether words of a path stand for a real name that is not known. */
export function isNameless({ placeholders }: Endpoint): boolean {
  return placeholders.length > 0
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
  /** Endings by which the symbols of the two APIs differ. */
  readonly symbolVariants: readonly SymbolVariant[]
  /** Registry chain ids by the metrics API's name of a chain, in lower case. */
  readonly chains: ReadonlyMap<string, string>
  /** Trading calendars by the code of the exchange. */
  readonly sessions: ReadonlyMap<string, TradingCalendar>
  /** Files of one's own that the catalogues map, by the name of what they become. */
  readonly sources: ReadonlyMap<string, Placed<SourceMapping & { readonly files: readonly string[] }>>
  /** Queries that the catalogues declare to be series, by the name of what they become. */
  readonly features: ReadonlyMap<string, Placed<DeclaredFeature>>
  /** Exchange ids that stand for a real one. */
  readonly placeholderExchanges: ReadonlySet<string>
  /** The provider's own names, as far as they are known: endpoints are in these names. */
  readonly names: ProviderNames
  /** SHA-256 over the content of all files, hex. */
  readonly digest: string
}
