import { readFileSync, statSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { Rule } from './catalog/availability.ts'
import { type Catalogue, type Endpoint, type QueryKey } from './catalog/catalogue.ts'
import { globTest } from './catalog/globs.ts'
import { ruleTime } from './catalog/rules.ts'
import type { Selection } from './catalog/series.ts'
import { type Config, type Override, parseConfig } from './config.ts'
import { LakeError, usage } from './errors.ts'
import { type Interval, intervals } from './time.ts'

/** Where a setting came from, strongest first. */
export type Origin = 'flag' | 'environment' | 'file' | 'default'

/** One effective setting, for `plan -v`. */
export interface Setting {
  readonly name: string
  readonly value: string
  readonly origin: Origin
}

/** One API as it will be asked. */
export interface ApiSettings {
  /** Base address without a trailing slash; null while none is set. */
  readonly url: string | null
  readonly key: string | null
}

/** Everything that a command needs to know of flags, environment and config file together. */
export interface Settings {
  readonly data: string
  readonly metrics: ApiSettings & {
    readonly timestamp: 'interval_start' | 'interval_end'
    readonly requestsPerMinute: number
    readonly concurrency: number
    readonly credits: Readonly<Record<string, number>>
    readonly paths: Readonly<Record<string, string>>
    readonly exchanges: Readonly<Record<string, string>>
    readonly queryKeys: Partial<Readonly<Record<QueryKey, string>>>
    readonly availability: Readonly<Record<string, Override>>
  }
  readonly registry: ApiSettings & {
    readonly pageLimit: number
    readonly shrinkLimit: number
    readonly rawDays: number
  }
  /** Absolute paths of the user's catalogue files. */
  readonly catalogs: readonly string[]
  readonly select: readonly Selection[]
  /** In the order of the documentation, with their origins; no secrets. */
  readonly effective: readonly Setting[]
}

interface Sources {
  readonly flags: { readonly config?: string | undefined; readonly data?: string | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}

/** Resolves flag > environment > file > default; every mistake is a LakeError of kind usage. */
export function resolveSettings({ flags, env, cwd }: Sources): Settings {
  const file = readConfig(flags.config, cwd)
  const config: Partial<Config> = file?.config ?? {}
  const base = file === undefined ? cwd : dirname(file.path)
  const effective: Setting[] = []
  const choose = (name: string, candidates: readonly (readonly [Origin, string | undefined])[]): string | null => {
    const [origin, value] = candidates.find(([, v]) => v !== undefined && v !== '') ?? ['default', undefined]
    effective.push({ name, value: value ?? 'not set', origin })
    return value ?? null
  }
  const number = (name: string, given: number | undefined, standard: number): number => {
    effective.push({ name, value: String(given ?? standard), origin: given === undefined ? 'default' : 'file' })
    return given ?? standard
  }
  const data = choose('data', [
    ['flag', flags.data],
    ['environment', env['PITLAKE_DATA']],
    ['file', config.data && resolve(base, config.data)],
    ['default', 'data'],
  ])
  const metricsUrl = choose('metrics.url', [
    ['environment', env['PITLAKE_METRICS_URL']],
    ['file', config.metrics?.url],
  ])
  const registryUrl = choose('registry.url', [
    ['environment', env['PITLAKE_REGISTRY_URL']],
    ['file', config.registry?.url],
  ])
  effective.push({
    name: 'config',
    value: file?.path ?? 'none',
    origin: flags.config === undefined ? 'default' : 'flag',
  })
  return {
    data: checkFolder(resolve(cwd, data ?? 'data'), effective.find((s) => s.name === 'data')?.origin ?? 'default'),
    metrics: {
      url: checkUrl('PITLAKE_METRICS_URL', metricsUrl),
      key: readKey('PITLAKE_METRICS_KEY', env),
      timestamp: config.metrics?.timestamp ?? 'interval_start',
      requestsPerMinute: number('metrics.requests_per_minute', config.metrics?.requests_per_minute, 600),
      concurrency: number('metrics.concurrency', config.metrics?.concurrency, 8),
      credits: config.metrics?.credits ?? { BTC: 1, '*': 2 },
      paths: config.metrics?.paths ?? {},
      exchanges: config.metrics?.exchanges ?? {},
      queryKeys: config.metrics?.query_keys ?? {},
      availability: config.metrics?.availability ?? {},
    },
    registry: {
      url: checkUrl('PITLAKE_REGISTRY_URL', registryUrl),
      key: readKey('PITLAKE_REGISTRY_KEY', env),
      pageLimit: number('registry.page_limit', config.registry?.page_limit, 500),
      shrinkLimit: number('registry.shrink_limit', config.registry?.shrink_limit, 0.2),
      rawDays: number('registry.raw_days', config.registry?.raw_days, 90),
    },
    catalogs: (config.catalogs ?? []).map((path) => resolve(base, path)),
    select: config.select ?? [],
    effective,
  }
}

/** The catalogue as this configuration changes it: query keys and availability overrides. */
export function applySettings(catalogue: Catalogue, settings: Settings): Catalogue {
  const overrides = Object.entries(settings.metrics.availability).map(([pattern, row]) => ({
    pattern,
    row,
    matches: globTest(pattern),
  }))
  for (const { pattern, matches } of overrides) {
    if (![...catalogue.endpoints.keys()].some(matches)) {
      throw usage(`metrics.availability.${pattern}`, {
        expected: 'a pattern that matches an endpoint',
        got: 'no match',
      })
    }
  }
  for (const kind of ['paths', 'exchanges'] as const) checkMapping(catalogue, kind, Object.keys(settings.metrics[kind]))
  const endpoints = new Map<string, Endpoint>()
  for (const [path, endpoint] of catalogue.endpoints) {
    const mine = overrides.filter((override) => override.matches(path))
    endpoints.set(
      path,
      mine.length === 0
        ? endpoint
        : {
            ...endpoint,
            rules: overridden(
              endpoint.rules,
              mine.map((m) => m.row),
            ),
          },
    )
  }
  return {
    ...catalogue,
    endpoints,
    wire: { ...catalogue.wire, queryKeys: { ...catalogue.wire.queryKeys, ...settings.metrics.queryKeys } },
  }
}

/** Whether the address is on this machine. */
export function isLoopback(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

function overridden(rules: Endpoint['rules'], rows: readonly Override[]): Endpoint['rules'] {
  const merged = intervals.map((interval) => {
    const mine = rows.filter((row) => row.intervals === undefined || row.intervals.includes(interval)).map(overrideRule)
    const until = Math.max(...mine.map((rule) => rule.until ?? Infinity), Number.NEGATIVE_INFINITY)
    const rest = rules[interval].filter((rule) => until !== Infinity && (rule.until ?? Infinity) > until)
    return [interval, [...mine.toSorted((a, b) => (a.until ?? Infinity) - (b.until ?? Infinity)), ...rest]] as const
  })
  return Object.fromEntries(merged) as unknown as Record<Interval, readonly Rule[]>
}

function overrideRule(row: Override): Rule {
  const frame = {
    basis: 'override' as const,
    quote: null,
    reason: 'set in the configuration',
    until: row.until ?? null,
    trust: row.trust ?? 'provider',
  }
  return { ...frame, ...ruleTime(row) }
}

function checkMapping(catalogue: Catalogue, kind: 'paths' | 'exchanges', names: readonly string[]): void {
  const all = [...catalogue.endpoints.values()]
  const known = new Set(kind === 'paths' ? all.map((e) => e.path) : all.flatMap((e) => e.exchanges))
  for (const name of names) {
    if (!known.has(name))
      throw usage(`metrics.${kind}.${name}`, {
        expected: `a ${kind === 'paths' ? 'path' : 'exchange'} of the catalogue`,
        got: 'an unknown one',
      })
  }
}

function readConfig(flag: string | undefined, cwd: string): { config: Config; path: string } | undefined {
  const path = resolve(cwd, flag ?? 'pitlake.yaml')
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (flag === undefined && code === 'ENOENT') return undefined
    throw usage(flag ?? 'pitlake.yaml', { expected: 'a readable config file', got: code ?? String(cause), cause })
  }
  return { config: parseConfig(flag ?? 'pitlake.yaml', text).config, path }
}

function checkUrl(name: string, url: string | null): string | null {
  if (url === null) return null
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw usage(name, { expected: 'an https address', got: parsed ? parsed.protocol : 'no address' })
  if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '')
    throw usage(name, {
      expected: 'a plain base address',
      got: 'one with credentials or a query',
      next: 'keys go into the variable that ends in _KEY',
    })
  if (parsed.protocol === 'http:' && !isLoopback(url))
    throw usage(name, { expected: 'https (http only to loopback)', got: `http://${parsed.host}` })
  return url.replace(/\/+$/, '')
}

function readKey(name: string, env: Sources['env']): string | null {
  const direct = env[name]?.trim()
  if (direct) return checkKey(name, direct)
  const file = env[`${name}_FILE`]
  if (!file) return null
  try {
    return checkKey(`${name}_FILE`, readFileSync(file, 'utf8').trim())
  } catch (cause) {
    if (cause instanceof LakeError) throw cause
    throw usage(`${name}_FILE`, {
      expected: 'a readable file',
      got: (cause as NodeJS.ErrnoException).code ?? String(cause),
      cause,
    })
  }
}

/** A key is sent as a header value: visible ASCII only. */
function checkKey(name: string, key: string): string {
  if (!/^[\x21-\x7e]+$/.test(key))
    throw usage(name, {
      expected: 'a key of visible ASCII characters',
      got: key === '' ? 'nothing' : 'other characters',
    })
  return key
}

function checkFolder(path: string, origin: Origin): string {
  const names: Readonly<Record<Origin, string>> = {
    flag: '--data',
    environment: 'PITLAKE_DATA',
    file: 'data',
    default: 'data',
  }
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats && !stats.isDirectory()) throw usage(names[origin], { expected: 'a folder', got: `the file ${path}` })
  return isAbsolute(path) ? path : resolve(path)
}
