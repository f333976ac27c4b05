import {
  type EndpointRules,
  type Catalogue,
  type Defaults,
  type Dimension,
  dimensions,
  type Endpoint,
  type Placed,
} from './catalogue.ts'
import type { Complain, Complaint } from '../base/errors.ts'
import { intervals, isOffered, longestSeconds, offeredIntervals } from '../base/time.ts'
import { hint } from '../base/suggestion.ts'
import { noNames } from './names.ts'
import { resourcesOf } from './resources.ts'
import { type PlacedRule, placeRule, resolveRules } from './rules.ts'
import type { EndpointRow, SourceFile } from './schema.ts'
import { type TradingCalendar, tradingCalendars, type TradingRows } from './sessions.ts'

/** A named value set, with where it is written (`file:line`). */
interface ValueSet {
  readonly list: readonly string[]
  readonly where: string
}

/** The named value sets of all files. */
interface ValueSets {
  /** Value sets by `kind.name`. */
  readonly values: ReadonlyMap<string, ValueSet>
  /** The sets to which some endpoint refers, by `kind.name`. */
  readonly used: Set<string>
}

/** The facts of all files that every endpoint needs. */
interface Common {
  readonly sets: ValueSets
  readonly rules: readonly PlacedRule[]
  readonly defaults: Readonly<Record<keyof Defaults, readonly string[]>> | undefined
  readonly placeholderWords: readonly string[]
  readonly complain: Complain
}

/** Puts the files together; every contradiction between them is added to `complaints`. */
export function assemble(files: readonly SourceFile[], complaints: Complaint[]): Omit<Catalogue, 'wire' | 'digest'> {
  const complain: Complain = (subject, expected, got, next) => complaints.push({ subject, expected, got, next })
  const common: Common = {
    sets: gatherSets(files, complain),
    rules: files.flatMap((file) =>
      (file.content.availability ?? []).map((row, i) =>
        placeRule(row, file.yaml.where(['availability', file.row('availability', i)])),
      ),
    ),
    defaults: files.find(({ content }) => content.default)?.content.default,
    placeholderWords: files.flatMap((file) => file.content.placeholders?.words ?? []),
    complain,
  }
  const endpoints = gatherEndpoints(files, common)
  if (complaints.length === 0) reportUnread(files, common, endpoints)
  return {
    endpoints,
    resources: resourcesOf(files, complain),
    links: files.flatMap((file) => file.content.links ?? []),
    symbolVariants: files.flatMap((file) => file.content.symbol_variants ?? []),
    chains: chainsOf(files),
    sessions: sessionsOf(files, complain),
    sources: placed(files, ({ content }) => content.sources, 'sources', complain),
    features: placed(files, ({ content }) => content.features, 'features', complain),
    placeholderExchanges: new Set(files.flatMap((file) => file.content.placeholders?.exchanges ?? [])),
    names: noNames,
  }
}

/**
 * Collects registry chain ids by the metrics API's name of a chain in lower case; a later file overrides an earlier
 * one.
 */
function chainsOf(files: readonly SourceFile[]): ReadonlyMap<string, string> {
  const rows = files.flatMap(({ content }) => Object.entries(content.chains ?? {}))
  return new Map(rows.map(([name, id]) => [name.toLowerCase(), id]))
}

/** Collects trading calendars by the code of the exchange; a later file overrides an earlier one. */
function sessionsOf(files: readonly SourceFile[], complain: Complain): ReadonlyMap<string, TradingCalendar> {
  const rows = Object.assign({}, ...files.map(({ content }) => content.sessions ?? {})) as TradingRows
  const all = tradingCalendars(rows)
  const complete = [...all].flatMap(([code, calendar]) => (calendar ? [[code, calendar] as const] : []))
  for (const [code, calendar] of all)
    if (calendar === undefined)
      complain(`sessions.${code}.same_as`, `one of ${complete.map(([code]) => code).join(', ')}`, 'another')
  return new Map(complete)
}

/** Returns the key of the value sets of a dimension; that of intervals has a different name. */
function setsOf(many: Dimension['plural']): 'frequencies' | Exclude<Dimension['plural'], 'intervals'> {
  return many === 'intervals' ? 'frequencies' : many
}

function gatherSets(files: readonly SourceFile[], complain: Complain): ValueSets {
  const values = new Map<string, ValueSet>()
  for (const { yaml, content } of files) {
    for (const kind of dimensions.map(({ plural }) => setsOf(plural))) {
      for (const [name, list] of Object.entries(content[kind] ?? {})) {
        const key = `${kind}.${name}`
        const where = yaml.where([kind, name])
        const before = values.get(key)
        if (before) complain(`${where}: ${key}`, 'a new name', `a value set already written at ${before.where}`)
        if (new Set(list).size < list.length) complain(`${where}: ${key}`, 'each value once', list.join(', '))
        values.set(key, { list, where })
      }
    }
  }
  return { values, used: new Set<string>() }
}

function gatherEndpoints(files: readonly SourceFile[], common: Common): Map<string, Endpoint> {
  const endpoints = new Map<string, Endpoint>()
  for (const { yaml, content, row: place } of files) {
    for (const [i, row] of (content.endpoints ?? []).entries()) {
      const index = place('endpoints', i)
      const at: Place = (...keys) =>
        `${yaml.where(['endpoints', index, ...keys])}: ${[`endpoints[${index}]`, ...keys].join('.')}`
      const before = endpoints.get(row.path)
      if (before) common.complain(at('path'), 'each path once', `${row.path}, already at ${before.source}`)
      else endpoints.set(row.path, endpointOf(common, row, yaml.where(['endpoints', index]), at))
    }
  }
  return endpoints
}

/** Collects the rows under one key of all files by name; a name that occurs twice is a mistake. */
function placed<Row>(
  files: readonly SourceFile[],
  rowsIn: (file: SourceFile) => Readonly<Record<string, Row>> | undefined,
  key: string,
  complain: Complain,
): Map<string, Placed<Row>> {
  const all = new Map<string, Placed<Row>>()
  for (const file of files)
    for (const [name, row] of Object.entries(rowsIn(file) ?? {})) {
      const where = file.yaml.where([key, name])
      const before = all.get(name)
      if (before) complain(`${where}: ${key}.${name}`, 'each name once', `${name}, already at ${before.where}`)
      else all.set(name, { row, where })
    }
  return all
}

/** Returns the position of a key of a row as `file:line: path`. */
type Place = (...keys: readonly string[]) => string

function endpointOf(common: Common, row: EndpointRow, source: string, at: Place): Endpoint {
  const values = (many: Dimension['plural']) => valuesOf(common, many, row[many], () => at(many))
  const allowed = values('intervals').filter(isOffered)
  const currencies = values('currencies')
  const exchanges = values('exchanges')
  const networks = values('networks')
  const takes = (parameter: 'since' | 'until' | 'format' | 'timestamp_format') =>
    row.takes === undefined || row.takes.includes(parameter)
  const pick = <T extends string>(key: keyof Defaults, from: readonly T[]): T | null =>
    pickDefault(common, key, row.default?.[key], from, () => at('default', key))
  const ask = row.ask ?? row.path
  return {
    path: row.path,
    ask,
    about: row.about ?? '',
    intervals: allowed,
    currencies,
    exchanges,
    networks,
    since: takes('since'),
    until: takes('until'),
    format: takes('format'),
    timestampFormat: takes('timestamp_format'),
    params: row.params ?? {},
    placeholders: common.placeholderWords.filter((word) => ask.split(/[/_]/).includes(word)),
    defaults: {
      interval: pick(
        'interval',
        allowed.toSorted((a, b) => longestSeconds(b) - longestSeconds(a)),
      ),
      currency: pick('currency', currencies),
      exchange: pick('exchange', exchanges),
      network: pick('network', networks),
    },
    tolerance: row.tolerance ?? null,
    overlap: row.overlap ?? 'exact',
    revisable: row.revisable ?? false,
    rules: rulesOf(common, row.path, source),
    extra: row.extra ?? {},
    source,
  }
}

function rulesOf({ rules: placed, complain }: Common, path: string, source: string): EndpointRules {
  const seenPaths = new Set<string>()
  const rules = resolveRules(path, placed, ({ first, second, interval }) => {
    const pair = `${first.where} ${second.where}`
    if (!seenPaths.has(pair))
      complain(
        `${second.where}: availability`,
        `no second rule of the same weight for ${path} at ${interval}`,
        `an overlap with the rule at ${first.where}`,
      )
    seenPaths.add(pair)
  })
  if (intervals.some((interval) => rules[interval].at(-1)?.until !== null))
    complain(`${source}: ${path}`, 'an availability rule without `until` for every interval', 'none that matches')
  return rules
}

function valuesOf(
  { sets, complain }: Common,
  many: Dimension['plural'],
  listed: string | readonly string[] | undefined,
  subject: () => string,
): readonly string[] {
  if (listed === undefined) return []
  if (typeof listed !== 'string') {
    const wrong = many === 'intervals' ? listed.filter((value) => !isOffered(value)) : []
    if (wrong.length > 0) complain(subject(), `intervals among ${offeredIntervals.join(', ')}`, wrong.join(', '))
    if (new Set(listed).size < listed.length) complain(subject(), 'each value once', listed.join(', '))
    return listed
  }
  const kind = `${setsOf(many)}.`
  const set = sets.values.get(`${kind}${listed}`)
  sets.used.add(`${kind}${listed}`)
  if (set) return set.list
  const names = [...sets.values.keys()].filter((key) => key.startsWith(kind)).map((key) => key.slice(kind.length))
  complain(subject(), `a value set of ${setsOf(many)} (${names.join(', ')}) or a list`, listed, hint(listed, names))
  return []
}

function pickDefault<T extends string>(
  { defaults, complain }: Common,
  key: keyof Defaults,
  wanted: string | undefined,
  from: readonly T[],
  subject: () => string,
): T | null {
  const named = from.find((value) => value === wanted)
  if (wanted !== undefined && named === undefined)
    complain(subject(), `one of ${from.join(', ') || 'none, the endpoint takes none'}`, wanted)
  return named ?? defaults?.[key].flatMap((value) => from.filter((v) => v === value))[0] ?? from[0] ?? null
}

/** Reports value sets, rules and other entries that no endpoint or resource uses: they are probably mistakes. */
function reportUnread(
  files: readonly SourceFile[],
  { sets, rules, complain }: Common,
  endpoints: ReadonlyMap<string, Endpoint>,
): void {
  for (const [key, { where }] of sets.values)
    if (!sets.used.has(key))
      complain(`${where}: ${key}`, 'a value set that an endpoint refers to', 'a set that no endpoint uses')
  const paths = [...endpoints.keys()]
  for (const { patterns, where } of rules)
    for (const { text } of patterns.filter((pattern) => !paths.some((path) => pattern.matches(path))))
      complain(`${where}: availability`, 'a pattern that matches an endpoint', text)
  const all = [...endpoints.values()]
  const read = {
    words: new Set(all.flatMap((endpoint) => endpoint.placeholders)),
    exchanges: new Set(all.flatMap((endpoint) => endpoint.exchanges)),
  }
  for (const { yaml, content } of files)
    for (const key of ['words', 'exchanges'] as const)
      for (const [index, name] of (content.placeholders?.[key] ?? []).entries())
        if (!read[key].has(name)) {
          const where = yaml.where(['placeholders', key, index])
          complain(`${where}: placeholders.${key}`, 'a name that an endpoint uses', name)
        }
}
