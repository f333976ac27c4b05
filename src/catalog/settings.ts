import { type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Rule } from './availability.ts'
import type { Catalogue, Endpoint, EndpointRules, Resource } from './catalogue.ts'
import type { EnvelopeKey, MetadataWire, QueryKeys } from './wire.ts'
import { globTest } from './globs.ts'
import { type PlacedRule, resolveRules } from './rules.ts'
import { utf8Text } from './document.ts'
import { readBounded, readSettingsFile } from './user-file.ts'
import { isTimed, timeOf } from './rule-kinds.ts'
import { noNames, withNames } from './names.ts'
import { pathNames, type Selection, seriesId } from './series.ts'
import { type Config, type Override, parseConfig } from './config.ts'
import { LakeError, unreadable, usage } from '../base/errors.ts'
import { type Check, checkLate, healthOf, type Hooks, refuseUnmatched } from './health.ts'
import { sizeText } from '../base/option-kinds.ts'
import { shortestKey } from '../base/secrets.ts'
import { hint } from '../base/suggestion.ts'
import { type Interval, intervals, type Weekday } from '../base/time.ts'

/** The origin of a setting, strongest first. */
type Origin = 'flag' | 'environment' | 'file' | 'default'

/** One effective setting, for `plan -v`. */
interface Setting {
  readonly name: string
  readonly value: string
  readonly origin: Origin
}

/** The settings for requests to one API. */
interface ApiSettings {
  /** The base address, without a trailing slash; null if none is set. */
  readonly url: string | null
  /** Key of the API; null if none is set. */
  readonly key: string | null
  /** Minimum transfer rate of a body, bytes per second; 0 for any rate. */
  readonly smallestRate: number
}

/** The settings for requests to the metrics API, with the names that the config file gives. */
export interface MetricsSettings extends ApiSettings {
  /** Requests a minute until the provider's headers report a limit. */
  readonly requestsPerMinute: number
  /** Requests under way at a time. */
  readonly concurrency: number
  /** The meaning of `t` at the provider; the lake always stores the start. */
  readonly timestamp: 'interval_start' | 'interval_end'
  /** The day on which the provider's weeks begin. */
  readonly weekStart: Weekday
  /** Credits of a request, by asset; `*` for the others. */
  readonly credits: Readonly<Record<string, number>>
  /** The provider's names of paths, by the catalogue's. */
  readonly paths: Readonly<Record<string, string>>
  /** The provider's names of exchanges, by the catalogue's. */
  readonly exchanges: Readonly<Record<string, string>>
  /** Query keys that differ from the catalogue's. */
  readonly queryKeys: Partial<QueryKeys>
  /** Deviations from the catalogue's `metadata`; false if metadata are not requested. */
  readonly metadata: false | Readonly<Partial<MetadataWire>>
  /** Availability rules that override the catalogue's, by glob of paths. */
  readonly availability: Readonly<Record<string, Override>>
}

/** The settings for requests to the registry, with the names that the config file gives. */
export interface RegistrySettings extends ApiSettings {
  /** Records or events a page. */
  readonly pageLimit: number
  /** Share of records that a snapshot may lose before pitlake holds it back. */
  readonly shrinkLimit: number
  /** Days for which received bodies are stored. */
  readonly rawDays: number
  /** The provider's names of envelope keys, by the usual ones. */
  readonly keys: Partial<Record<EnvelopeKey, string>>
  /** The provider's names of fields, by resource and field. */
  readonly fields: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** The settings of a command, from flags, environment and config file. */
export interface Settings {
  /** Absolute path of the lake. */
  readonly data: string
  readonly metrics: MetricsSettings
  readonly registry: RegistrySettings
  /** The most memory that the process may take, bytes; null if not set. */
  readonly memoryBytes: number | null
  readonly daily: {
    /** Whether the daily run removes superseded files. */
    readonly vacuum: boolean
    /** Credits, and requests to the registry, that its verify may spend; undefined means the usual number. */
    readonly verifyBudget?: number | undefined
  }
  readonly check: Check
  readonly hooks: Hooks
  /** The token that readers over HTTP have to send; null if only this machine may read. */
  readonly token: string | null
  /** Absolute paths of the user's catalogue files. */
  readonly catalogs: readonly string[]
  /** The selections that `fetch` uses without flags. */
  readonly select: readonly Selection[]
  /** Every key that this process was given, for any API; none of them may be written to output. */
  readonly secrets: readonly string[]
  /** Set variables that look like those of a provider, but that no command reads, such as `PITLAKE_KEY`. */
  readonly misnamedVariables: readonly string[]
  /** Returns the position of a key of the config file, for a complaint: `pitlake.yaml:12: metrics.paths`. */
  readonly where: (path: readonly string[]) => string
  /** Every setting with its origin, in the order of the documentation; no secrets. */
  readonly effective: readonly Setting[]
}

/** The sources of settings. */
interface Sources {
  readonly flags: {
    readonly config?: string | undefined
    readonly data?: string | undefined
    readonly memory?: number | undefined
  }
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Whether the config file is ignored. */
  readonly ignoreFile?: boolean
}

/** Copies a map to one without a prototype, so that provider names such as `constructor` can be looked up in it. */
function bare<T>(map: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null) as Record<string, T>, map)
}

/** Reads names and weekdays from the config file. */
function namesOf({
  credits,
  paths,
  exchanges,
  query_keys,
  metadata,
  availability,
  timestamp = 'interval_start',
  week_start: weekStart = 'monday',
}: NonNullable<Config['metrics']> = {}) {
  return {
    timestamp,
    weekStart,
    credits: bare(credits ?? { BTC: 1, '*': 2 }),
    paths: bare(paths ?? {}),
    exchanges: bare(exchanges ?? {}),
    queryKeys: query_keys ?? {},
    metadata: (metadata ?? {}) as false | Readonly<Partial<MetadataWire>>,
    availability: bare(availability ?? {}),
  }
}

/** Chooses the strongest of the values that a setting has in several places; null if it has none. */
type Choose = (name: string, candidates: readonly (readonly [Origin, string | undefined])[]) => string | null

/** Reads the most memory that the process may take, in bytes. */
function memoryOf(flag: number | undefined, file: number | undefined, choose: Choose) {
  const sizeOrNone = (bytes: number | undefined) => (bytes === undefined ? undefined : sizeText(bytes))
  choose('memory', [
    ['flag', sizeOrNone(flag)],
    ['file', sizeOrNone(file)],
  ])
  return { memoryBytes: flag ?? file ?? null }
}

/** Resolves flag > environment > file > default; every mistake is a LakeError of kind usage. */
export function resolveSettings({ flags, env, cwd, ignoreFile = false }: Sources): Settings {
  const file = ignoreFile ? undefined : readConfig(flags.config, cwd)
  const config: Partial<Config> = file?.config ?? {}
  const base = file === undefined ? cwd : dirname(file.path)
  const effective: Setting[] = []
  const choose: Choose = (name, candidates) => {
    const [origin, value] = candidates.find(([, v]) => v !== undefined && v !== '') ?? ['default', undefined]
    effective.push({ name, value: value ?? 'not set', origin })
    return value ?? null
  }
  const number = (name: string, fileValue: number | undefined, standard: number): number => {
    effective.push({ name, value: String(fileValue ?? standard), origin: fileValue === undefined ? 'default' : 'file' })
    return fileValue ?? standard
  }
  const data = choose('data', [
    ['flag', flags.data],
    ['environment', env['PITLAKE_DATA']],
    ['file', config.data && resolve(base, config.data)],
    ['default', 'data'],
  ])
  const where = (path: readonly string[]) => `${file ? `${file.yaml.where(path)}: ` : ''}${path.join('.')}`
  const secrets = givenKeys(env)
  const api = (name: 'metrics' | 'registry'): ApiSettings => {
    const variable = `PITLAKE_${name.toUpperCase()}`
    const url = choose(`${name}.url`, [
      ['environment', env[`${variable}_URL`]],
      ['file', config[name]?.url],
    ])
    const key = readKey(`${variable}_KEY`, env)
    const urlName = env[`${variable}_URL`] ? `${variable}_URL` : where([name, 'url'])
    choose(`${name}.key`, [['environment', key === null ? undefined : 'set']])
    const smallestRate = number(`${name}.smallest_rate`, config[name]?.smallest_rate, 1000)
    return { url: checkUrl(urlName, url, secrets), key, smallestRate }
  }
  choose('config', [[flags.config === undefined ? 'default' : 'flag', file?.path]])
  return {
    data: checkFolder(resolve(cwd, data ?? 'data'), effective.find((s) => s.name === 'data')?.origin ?? 'default'),
    metrics: {
      ...api('metrics'),
      requestsPerMinute: number('metrics.requests_per_minute', config.metrics?.requests_per_minute, 600),
      concurrency: number('metrics.concurrency', config.metrics?.concurrency, 8),
      ...namesOf(config.metrics),
    },
    registry: {
      ...api('registry'),
      pageLimit: number('registry.page_limit', config.registry?.page_limit, 500),
      shrinkLimit: number('registry.shrink_limit', config.registry?.shrink_limit, 0.2),
      rawDays: number('registry.raw_days', config.registry?.raw_days, 90),
      keys: config.registry?.keys ?? {},
      fields: config.registry?.fields ?? {},
    },
    ...memoryOf(flags.memory, config.memory, choose),
    daily: { vacuum: config.daily?.vacuum ?? false, verifyBudget: config.daily?.verify_budget },
    ...healthOf(config, file?.path ?? resolve(cwd, 'pitlake.yaml')),
    token: readKey('PITLAKE_TOKEN', env),
    catalogs: (config.catalogs ?? []).map((path) => resolve(base, path)),
    select: config.select ?? [],
    secrets,
    misnamedVariables: misnamedVariables(env),
    where,
    effective,
  }
}

/** Applies this configuration to the catalogue: query keys and availability overrides. */
export function applySettings(catalogue: Catalogue, settings: Settings): Catalogue {
  const overrides = Object.entries(settings.metrics.availability).flatMap(([pattern, row]): PlacedRule[] => {
    const where = settings.where(['metrics', 'availability', pattern])
    refuseUnmatched(pattern, catalogue, where)
    const test = globTest(pattern)
    const matches = (path: string): boolean => namesOfPath(catalogue, path).some(test)
    const text = [...catalogue.endpoints.values()].find(({ alias }) => alias === pattern)?.path ?? pattern
    const patterns = [{ text, matches }]
    const intervalRules = intervals.flatMap((interval): PlacedRule[] => {
      const rule = row[interval]
      return rule === undefined ? [] : [{ rule: overrideRule(rule), intervals: [interval], patterns, where }]
    })
    if (!isTimed(row)) return intervalRules
    return [{ rule: overrideRule(row), intervals: row.intervals ?? null, patterns, where }, ...intervalRules]
  })
  checkLate(settings.check, catalogue, settings.where)
  checkPaths(catalogue, settings)
  checkExchanges(catalogue, settings)
  const endpoints = new Map<string, Endpoint>()
  for (const [path, endpoint] of catalogue.endpoints)
    endpoints.set(path, { ...endpoint, rules: overridden(path, endpoint.rules, overrides) })
  const { metadata, queryKeys } = settings.metrics
  const wire = {
    ...catalogue.wire,
    queryKeys: { ...catalogue.wire.queryKeys, ...queryKeys },
    metadata:
      metadata === false || catalogue.wire.metadata === null ? null : { ...catalogue.wire.metadata, ...metadata },
  }
  const configured = { ...catalogue, endpoints, wire, resources: namedResources(catalogue, settings) }
  return withNames(configured, { ...noNames, paths: settings.metrics.paths, exchanges: settings.metrics.exchanges })
}

/** Lists the names of a path: the provider's, and the catalogue's that it replaced. */
function namesOfPath({ endpoints }: Catalogue, path: string): readonly string[] {
  const endpoint = endpoints.get(path)
  return endpoint === undefined ? [path] : pathNames(endpoint)
}

/** Whether the address is on this machine. */
export function isLoopback(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/**
 * Combines overrides with the catalogue's rules: the most precise override wins; where it ends early, the next one
 * applies, and then the catalogue's.
 */
function overridden(path: string, rules: EndpointRules, overrides: readonly PlacedRule[]): EndpointRules {
  const ownRules = resolveRules(path, overrides, ({ first, second, interval }) => {
    throw usage(second.where, {
      expected: `one pattern of its rank for ${path} at ${interval}`,
      got: `an overlap with ${first.where}`,
      next: 'remove one of them, or name the path itself',
    })
  })
  const merged = intervals.map((interval) => {
    const last = ownRules[interval].at(-1)
    const until = last === undefined ? Number.NEGATIVE_INFINITY : (last.until ?? Infinity)
    return [interval, [...ownRules[interval], ...rules[interval].filter((rule) => (rule.until ?? Infinity) > until)]]
  })
  return Object.fromEntries(merged) as Record<Interval, readonly Rule[]>
}

function overrideRule(row: Omit<Override, 'intervals' | Interval>): Rule {
  const frame = {
    basis: 'override' as const,
    quote: null,
    reason: 'set in the configuration',
    until: row.until ?? null,
    trust: row.trust ?? 'provider',
  }
  return { ...frame, ...timeOf(row) }
}

/** Renames the fields of resources to the provider's names; if a record has both names, the provider's own counts. */
function namedResources({ resources }: Catalogue, settings: Settings): Catalogue['resources'] {
  const { keys, fields } = settings.registry
  for (const [name, fieldNames] of Object.entries(fields)) {
    const knownFields = resources.get(name)?.fields
    if (!knownFields) throw unknownName(settings, ['registry', 'fields', name], 'a resource', [...resources.keys()])
    const strange = Object.keys(fieldNames).find((field) => !Object.hasOwn(knownFields, field))
    if (strange !== undefined)
      throw unknownName(settings, ['registry', 'fields', name, strange], `a field of ${name}`, Object.keys(knownFields))
  }
  const renamed = ({ name, fields: usual }: Resource): Resource['fields'] =>
    Object.fromEntries(
      Object.entries(usual).map(([field, spec]) => {
        const providerKey = fields[name]?.[field]
        return [field, providerKey === undefined ? spec : { ...spec, keys: [...new Set([providerKey, ...spec.keys])] }]
      }),
    )
  return new Map([...resources].map(([name, resource]) => [name, { ...resource, keys, fields: renamed(resource) }]))
}

/** Checks that mapped paths exist in the catalogue, and that no two of its endpoints request the same path. */
function checkPaths(catalogue: Catalogue, settings: Settings): void {
  const { paths } = settings.metrics
  const owners = new Map<string, string>()
  const nowhere = { asset: '', interval: null, currency: null, exchange: null, network: null }
  const request = (ask: string, params: Endpoint['params']) => seriesId({ ...nowhere, metric: ask, params })
  const all = [...catalogue.endpoints.values()]
  const endpointsByName = new Map(all.map((endpoint) => [endpoint.alias ?? endpoint.path, endpoint]))
  for (const [path, { ask, params }] of endpointsByName)
    if (paths[path] === undefined) owners.set(request(ask, params), path)
  for (const [name, real] of Object.entries(paths)) {
    const endpoint = endpointsByName.get(name)
    const place = ['metrics', 'paths', name]
    if (!endpoint) throw unknownName(settings, place, 'a path', [...endpointsByName.keys()])
    refuseTwin(settings, place, real, owners.get(request(real, endpoint.params)))
    owners.set(request(real, endpoint.params), name)
  }
}

/** Checks that mapped exchanges exist in the catalogue, and that no endpoint has two names for one exchange. */
function checkExchanges(catalogue: Catalogue, settings: Settings): void {
  const { exchanges } = settings.metrics
  const sets = new Set([...catalogue.endpoints.values()].map((endpoint) => endpoint.exchanges))
  const knownExchanges = [...new Set([...[...sets].flat(), ...catalogue.placeholderExchanges])]
  for (const name of Object.keys(exchanges))
    if (!knownExchanges.includes(name))
      throw unknownName(settings, ['metrics', 'exchanges', name], 'an exchange', knownExchanges)
  for (const set of sets) {
    const owners = new Map(set.filter((name) => exchanges[name] === undefined).map((name) => [name, name]))
    for (const name of set.filter((id) => exchanges[id] !== undefined)) {
      const real = exchanges[name] ?? ''
      refuseTwin(settings, ['metrics', 'exchanges', name], real, owners.get(real))
      owners.set(real, name)
    }
  }
}

function refuseTwin(settings: Settings, path: readonly string[], real: string, owner: string | undefined): void {
  if (owner === undefined) return
  const got = owner === real ? `${real}, a name of the catalogue` : `${real}, which ${owner} is mapped to already`
  throw usage(settings.where(path), { expected: 'a real name of its own', got })
}

function unknownName(
  settings: Settings,
  path: readonly string[],
  what: string,
  knownNames: readonly string[],
): LakeError {
  const name = path.at(-1) ?? ''
  const next = hint(name, knownNames)
  return usage(settings.where(path), { expected: `${what} of the catalogue`, got: name, next })
}

function readConfig(flag: string | undefined, cwd: string) {
  const path = resolve(cwd, flag ?? 'pitlake.yaml')
  const name = flag ?? 'pitlake.yaml'
  let bytes: Buffer
  try {
    bytes = readSettingsFile(path, name, 'a readable config file')
  } catch (error) {
    const { cause } = error as { readonly cause?: NodeJS.ErrnoException }
    if (flag === undefined && cause?.code === 'ENOENT') return undefined
    throw error
  }
  return { ...parseConfig(name, utf8Text(name, bytes)), path }
}

/** Checks a base address and returns it without a trailing slash; no message repeats the text, which may be a key. */
function checkUrl(name: string, text: string | null, secrets: readonly string[]): string | null {
  if (text === null) return null
  const url = text.trim()
  const expected = 'an https address'
  if (inQuotes(url)) throw usage(name, { expected, got: 'one in quotation marks', next: 'remove the quotation marks' })
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(url))
    throw usage(name, {
      expected,
      got: 'a text without https:// in front',
      next: 'write https:// in front of the host',
    })
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw usage(name, { expected, got: parsed ? parsed.protocol : 'no address' })
  const isWithKey = secrets.some(
    (key) => key.length >= shortestKey && spellings(key).some((form) => url.includes(form)),
  )
  if (isWithKey || parsed.username !== '' || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '')
    throw usage(name, {
      expected: 'a plain base address',
      got: isWithKey ? 'one that contains a key' : 'one with credentials or a query',
      next: 'keys go into the variable that ends in _KEY',
    })
  if (parsed.protocol === 'http:' && !isLoopback(url))
    throw usage(name, {
      expected: 'https (http only to loopback)',
      got: `http://${parsed.host}`,
      next: 'write https://: a key is never sent in the clear',
    })
  return url.replace(/\/+$/, '')
}

const spellings = (key: string): readonly string[] => [key, encodeURIComponent(key)]

/** Whether quotation marks enclose a text: `docker --env-file` and key files pass them on with the value. */
const inQuotes = (text: string): boolean => /^(["'`]).*\1$/.test(text)

function readKey(name: string, env: Sources['env']): string | null {
  const direct = env[name]?.trim()
  if (direct) return checkKey(name, direct)
  const file = env[`${name}_FILE`]
  if (!file) return null
  try {
    return checkKey(`${name}_FILE`, readBounded(file, longestKeyFile, `${name}_FILE`).trim())
  } catch (cause) {
    if (cause instanceof LakeError) throw cause
    const { complaints } = unreadable(`${name}_FILE`, 'a readable file', cause)
    const next = `name a file that contains the key; the key itself goes into ${name}`
    throw new LakeError(
      'usage',
      complaints.map((complaint) => ({ ...complaint, next })),
    )
  }
}

const providerVariables = ['METRICS', 'REGISTRY'].flatMap((api) =>
  ['URL', 'KEY', 'KEY_FILE'].map((part) => `PITLAKE_${api}_${part}`),
)

/** Lists the variables for `Settings.misnamedVariables`. */
function misnamedVariables(env: Sources['env']): readonly string[] {
  const readVariables = new Set([...providerVariables, 'PITLAKE_HEAD_KEY_FILE'])
  return Object.keys(env).filter(
    (name) => /^PITLAKE_(?:\w+_)?(?:URL|KEY|KEY_FILE)$/i.test(name) && !readVariables.has(name) && env[name] !== '',
  )
}

/**
 * Collects every key that the environment contains, directly or in a file that it names, so that output can redact
 * them; files that cannot be read are skipped.
 */
export function givenKeys(env: Sources['env']): string[] {
  const found = ['PITLAKE_METRICS_KEY', 'PITLAKE_REGISTRY_KEY', 'PITLAKE_TOKEN'].flatMap((name) => {
    const file = env[`${name}_FILE`]
    return [env[name]?.trim() ?? '', file ? readQuietly(file).trim() : '']
  })
  const aws = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'].map((name) => env[name]?.trim() ?? '')
  return [...new Set([...found, ...aws].filter((key) => key !== ''))]
}

/** Bytes of a file with a key. */
const longestKeyFile = 65_536

function readQuietly(file: string): string {
  try {
    return readBounded(file, longestKeyFile, 'a key')
  } catch {
    return ''
  }
}

/** Checks a key: it is sent as a header value, so only visible ASCII; a short one could occur in data by chance. */
function checkKey(name: string, key: string): string {
  if (key.length > 0 && key.length < shortestKey)
    throw usage(name, {
      expected: `a key of at least ${shortestKey} characters`,
      got: String(key.length),
      next: 'copy the whole key from your provider',
    })
  const next = 'write the key alone, without quotation marks, `Bearer` or the name of a header'
  if (!/^[\x21-\x7e]+$/.test(key))
    throw usage(name, {
      expected: 'a key of visible ASCII characters',
      got: strangeCharacter(key),
      next: key === '' ? undefined : next,
    })
  const wrapped = wrappingOf(key)
  if (wrapped !== null) throw usage(name, { expected: 'the key alone', got: wrapped, next })
  if (/^https?:\/\//i.test(key))
    throw usage(name, {
      expected: 'a key',
      got: 'an address',
      next: 'addresses go into the variable that ends in _URL',
    })
  return key
}

/** Names the first character that a header value cannot contain. */
function strangeCharacter(key: string): string {
  if (key === '') return 'nothing'
  const [character = ''] = /[^\x21-\x7e]/u.exec(key) ?? []
  if (/[\r\n]/.test(character)) return 'one with a line break in it'
  return character === ' ' || character === '\t' ? 'one with a space in it' : 'one with a different character'
}

/** Describes what was copied along with a key; null if the text looks like a key alone. */
function wrappingOf(key: string): string | null {
  if (inQuotes(key)) return 'a key in quotation marks'
  return /^(?:PITLAKE_\w+|x-api-key|authorization)[:=]/i.test(key) ? 'a name in front of it' : null
}

function checkFolder(path: string, origin: Origin): string {
  const names: Readonly<Record<Origin, string>> = {
    flag: '--data',
    environment: 'PITLAKE_DATA',
    file: 'data',
    default: 'data',
  }
  // DuckDB reads the text after `?` as options of its own.
  if (path.includes('?'))
    throw usage(names[origin], {
      expected: 'a folder without ? in its path',
      got: path,
      next: 'rename it, or name another',
    })
  for (let at = path; ; at = dirname(at)) {
    const stats = look(names[origin], at)
    if (stats && !stats.isDirectory())
      throw usage(names[origin], {
        expected: 'a folder',
        got: `the file ${at}`,
        next: 'name another folder with --data',
      })
    if (stats || dirname(at) === at) return path
  }
}

function look(name: string, path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (cause) {
    throw unreadable(name, 'a folder that can be read', cause)
  }
}
