import type { Complaint } from '../errors.ts'
import { type Interval, intervals, longestSeconds } from '../time.ts'
import { type Catalogue, type Defaults, type Endpoint, type Link, queryKeys, type Wire } from './catalogue.ts'
import { hint } from '../suggestion.ts'
import type { YamlText } from './document.ts'
import { resourcesOf } from './resources.ts'
import { type PlacedRule, placeRule, resolveRules } from './rules.ts'
import type { CatalogueFile, EndpointRow } from './schema.ts'

/** One parsed file and the means to point into it. */
export interface SourceFile {
  readonly yaml: YamlText
  readonly content: CatalogueFile
  /** The number of a list's row in the text, of which rows with problems may have been left out. */
  readonly row: (key: 'availability' | 'endpoints', index: number) => number
}

type SetKind = 'frequencies' | 'currencies' | 'exchanges' | 'networks'

/** The named value sets of all files, and which of them somebody refers to. */
interface Sets {
  readonly values: ReadonlyMap<string, { readonly list: readonly string[]; readonly where: string }>
  readonly used: Set<string>
}

interface Bench {
  readonly files: readonly SourceFile[]
  readonly sets: Sets
  readonly rules: readonly PlacedRule[]
  readonly defaults: Readonly<Record<keyof Defaults, readonly string[]>>
  readonly placeholderWords: readonly string[]
  readonly complain: (complaint: Complaint) => void
}

/** Puts the files together; every contradiction between them is added to `complaints`. */
export function assemble(files: readonly SourceFile[], digest: string, complaints: Complaint[]): Catalogue {
  const complain = (complaint: Complaint) => complaints.push(complaint)
  const only = <K extends keyof CatalogueFile>(key: K) =>
    files.find((file) => file.content[key] !== undefined)?.content[key]
  const defaults = only('default')
  const bench: Bench = {
    files,
    sets: gatherSets(files, complain),
    rules: files.flatMap((file) =>
      (file.content.availability ?? []).map((row, i) =>
        placeRule(row, file.yaml.where(['availability', file.row('availability', i)])),
      ),
    ),
    defaults: defaults ?? { interval: [], currency: [], exchange: [], network: [] },
    placeholderWords: files.flatMap((file) => file.content.placeholders?.words ?? []),
    complain,
  }
  const endpoints = gatherEndpoints(bench)
  if (complaints.length === 0) reportUnread(bench, endpoints)
  return {
    endpoints,
    resources: resourcesOf(files, complain),
    wire: wireOf(only('wire'), complain),
    links: files.flatMap((file) => file.content.links ?? []).map(linkOf),
    placeholderExchanges: new Set(files.flatMap((file) => file.content.placeholders?.exchanges ?? [])),
    digest,
  }
}

function gatherSets(files: readonly SourceFile[], complain: Bench['complain']): Sets {
  const values = new Map<string, { list: readonly string[]; where: string }>()
  for (const { yaml, content } of files) {
    for (const kind of ['frequencies', 'currencies', 'exchanges', 'networks'] as const) {
      for (const [name, list] of Object.entries(content[kind] ?? {})) {
        const key = `${kind}/${name}`
        const where = yaml.where([kind, name])
        const before = values.get(key)
        if (before)
          complain({
            subject: `${where}: ${kind}.${name}`,
            expected: 'a new name',
            got: `a value set already written at ${before.where}`,
          })
        if (new Set(list).size < list.length)
          complain({ subject: `${where}: ${kind}.${name}`, expected: 'each value once', got: list.join(', ') })
        values.set(key, { list, where })
      }
    }
  }
  return { values, used: new Set() }
}

function gatherEndpoints(bench: Bench): Map<string, Endpoint> {
  const endpoints = new Map<string, Endpoint>()
  for (const { yaml, content, row: place } of bench.files) {
    for (const [i, row] of (content.endpoints ?? []).entries()) {
      const index = place('endpoints', i)
      const where = yaml.where(['endpoints', index])
      const before = endpoints.get(row.path)
      if (before)
        bench.complain({
          subject: `${where}: endpoints[${index}].path`,
          expected: 'each path once',
          got: `${row.path}, already at ${before.source}`,
        })
      else
        endpoints.set(
          row.path,
          endpointOf(bench, row, where, (key) => yaml.where(['endpoints', index, key]), index),
        )
    }
  }
  return endpoints
}

function endpointOf(
  bench: Bench,
  row: EndpointRow,
  source: string,
  where: (key: string) => string,
  index: number,
): Endpoint {
  const values = (kind: SetKind, key: 'intervals' | 'currencies' | 'exchanges' | 'networks') =>
    valuesOf(bench, kind, row[key], `${where(key)}: endpoints[${index}].${key}`)
  const allowed = values('frequencies', 'intervals').filter((v): v is Interval => intervals.includes(v as Interval))
  const currencies = values('currencies', 'currencies')
  const exchanges = values('exchanges', 'exchanges')
  const networks = values('networks', 'networks')
  const takes = (parameter: 'since' | 'until' | 'format' | 'timestamp_format') =>
    row.takes === undefined || row.takes.includes(parameter)
  const wanted = row.default ?? {}
  const pick = <T extends string>(key: keyof Defaults, from: readonly T[]): T | null =>
    pickDefault(bench, key, wanted[key], from, `${where('default')}: endpoints[${index}].default.${key}`)
  return {
    path: row.path,
    ask: row.ask ?? row.path,
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
    placeholders: bench.placeholderWords.filter((word) => (row.ask ?? row.path).split(/[/_]/).includes(word)),
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
    rules: rulesOf(bench, row.path, source),
    extra: row.extra ?? {},
    source,
  }
}

function rulesOf(bench: Bench, path: string, source: string): Endpoint['rules'] {
  const seen = new Set<string>()
  const rules = resolveRules(path, bench.rules, (clash) => {
    const pair = `${clash.first.where} ${clash.second.where}`
    if (!seen.has(pair)) {
      bench.complain({
        subject: `${clash.second.where}: availability`,
        expected: `no second rule of the same weight for ${path} at ${clash.interval}`,
        got: `an overlap with the rule at ${clash.first.where}`,
      })
    }
    seen.add(pair)
  })
  if (intervals.some((interval) => rules[interval].at(-1)?.until !== null)) {
    bench.complain({
      subject: `${source}: ${path}`,
      expected: 'an availability rule without `until` for every interval',
      got: 'none that matches',
    })
  }
  return rules
}

function valuesOf(
  bench: Bench,
  kind: SetKind,
  given: string | readonly string[] | undefined,
  where: string,
): readonly string[] {
  if (given === undefined) return []
  if (typeof given !== 'string') {
    const wrong = kind === 'frequencies' ? given.filter((value) => !intervals.includes(value as Interval)) : []
    if (wrong.length > 0)
      bench.complain({ subject: where, expected: `intervals among ${intervals.join(', ')}`, got: wrong.join(', ') })
    if (new Set(given).size < given.length)
      bench.complain({ subject: where, expected: 'each value once', got: given.join(', ') })
    return given
  }
  const set = bench.sets.values.get(`${kind}/${given}`)
  bench.sets.used.add(`${kind}/${given}`)
  if (set) return set.list
  const names = [...bench.sets.values.keys()]
    .filter((key) => key.startsWith(`${kind}/`))
    .map((key) => key.slice(kind.length + 1))
  bench.complain({
    subject: where,
    expected: `a value set of ${kind} (${names.join(', ')}) or a list`,
    got: given,
    next: hint(given, names),
  })
  return []
}

function pickDefault<T extends string>(
  bench: Bench,
  key: keyof Defaults,
  wanted: string | undefined,
  from: readonly T[],
  where: string,
): T | null {
  const named = from.find((value) => value === wanted)
  if (wanted !== undefined && named === undefined)
    bench.complain({
      subject: where,
      expected: `one of ${from.join(', ') || 'none, the endpoint takes none'}`,
      got: wanted,
    })
  return named ?? bench.defaults[key].flatMap((value) => from.filter((v) => v === value))[0] ?? from[0] ?? null
}

/** What no endpoint, resource or rule reads is a mistake in the making. */
function reportUnread(bench: Bench, endpoints: ReadonlyMap<string, Endpoint>): void {
  const { sets, files, complain } = bench
  for (const [key, { where }] of sets.values) {
    if (!sets.used.has(key))
      complain({
        subject: `${where}: ${key.replace('/', '.')}`,
        expected: 'a value set that an endpoint refers to',
        got: 'one that nobody reads',
      })
  }
  const paths = [...endpoints.keys()]
  for (const rule of bench.rules) {
    for (const pattern of rule.patterns.filter((p) => !paths.some((path) => p.matches(path)))) {
      complain({
        subject: `${rule.where}: availability`,
        expected: 'a pattern that matches an endpoint',
        got: pattern.text,
      })
    }
  }
  const exchanges = new Set([...endpoints.values()].flatMap((endpoint) => endpoint.exchanges))
  const words = new Set([...endpoints.values()].flatMap((endpoint) => endpoint.placeholders))
  for (const { yaml, content } of files) {
    for (const [key, read] of [
      ['words', words],
      ['exchanges', exchanges],
    ] as const) {
      for (const [index, name] of (content.placeholders?.[key] ?? []).entries()) {
        if (!read.has(name))
          complain({
            subject: `${yaml.where(['placeholders', key, index])}: placeholders.${key}`,
            expected: 'a name that an endpoint uses',
            got: name,
          })
      }
    }
  }
}

function wireOf(wire: CatalogueFile['wire'], complain: Bench['complain']): Wire {
  if (!wire) {
    complain({ subject: 'catalog/wire.yaml', expected: 'the key `wire`', got: 'none' })
    return {
      metricsPrefix: '',
      assetsPath: '',
      metadata: null,
      queryKeys: Object.fromEntries(queryKeys.map((key) => [key, key])) as Wire['queryKeys'],
    }
  }
  const { metrics_prefix: metricsPrefix, assets_path: assetsPath, query_keys: keys, metadata } = wire
  return { metricsPrefix, assetsPath, metadata, queryKeys: keys }
}

function linkOf(link: NonNullable<CatalogueFile['links']>[number]): Link {
  const {
    metric_asset: metricAsset,
    product_id: productId = null,
    chain_id: chainId = null,
    address = null,
    from = null,
    until = null,
  } = link
  return { metricAsset, productId, chainId, address, from, until }
}
