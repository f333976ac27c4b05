import type { QueryKeys, Wire } from '../../catalog/wire.ts'
import type { MetricsSettings } from '../../catalog/settings.ts'
import type { Outcome } from '../http/outcome.ts'
import { type Catalogue, type Endpoint, isNameless } from '../../catalog/catalogue.ts'
import { isOpenExchange } from '../../catalog/names.ts'
import { seriesId } from '../../catalog/series.ts'
import { readMetadata } from '../metrics/metadata-readings.ts'
import { usage } from '../../base/errors.ts'
import type { BesideDeps } from '../http/connection.ts'
import {
  assetsUrl,
  knownParameters,
  metadataUrl,
  metricsAccess,
  type MetricsProvider,
  metricsUrl,
} from '../metrics/api.ts'
import { day, floor, type Instant, type Interval } from '../../base/time.ts'
import type { Window } from '../../base/windows.ts'
import { type Budget, type HeardAnswer, type Listener, listening, type NeededAnswer } from './answers.ts'
import { keysFrom, listsIn, nextKeys, spelling, wrongKeys } from './keys.ts'
import { pointsIn, isUnfinished } from './timestamp.ts'

/** The answers to one question with different query keys. */
interface KeyTrial {
  /** The answer with the configured keys; null if none was requested. */
  readonly first: HeardAnswer | null
  /** The answer with the last keys that were tried; null if none was requested. */
  readonly days: HeardAnswer | null
  /** Query keys with which `days` was requested. */
  readonly keys: QueryKeys
  /** Whether the provider takes them and they have effect. */
  readonly taken: boolean
}

/** The windows to request: up to a time after the present, to include the newest point, and whole days of hours. */
interface ProbeWindows {
  readonly days: Window
  readonly hours: Window
  readonly weeks: Window
}

/** The answers of the metrics API; null for each that was not requested. */
export interface MetricsSeen extends KeyTrial {
  readonly metadata: HeardAnswer | null
  readonly weeks: HeardAnswer | null
  readonly hours: HeardAnswer | null
  readonly assets: HeardAnswer | null
  /** The days once more, to see whether the newest one is finished. */
  readonly again: HeardAnswer | null
  readonly settings: MetricsSettings
  readonly wire: Wire
  /** The endpoint of the days and weeks. */
  readonly endpoint: Endpoint
  readonly asset: string
  readonly windows: ProbeWindows
  /** Endpoints that a selection of everything misses until their names are known. */
  readonly nameless: NamelessEndpoints
  /** The answer that ended the listening; null if none did. */
  readonly ended: Outcome | null
  /** The answers to requests for points. */
  readonly needed: readonly NeededAnswer[]
}

/** Sends a few cheap requests to the metrics API, each for several judges. */
export async function hearMetrics(provider: MetricsProvider, deps: BesideDeps, budget: Budget): Promise<MetricsSeen> {
  const access = metricsAccess(provider)
  return await listening(access, deps, budget, async (listener) => await conversation(provider, listener, deps.now()))
}

async function conversation(
  { settings: all, catalogue }: MetricsProvider,
  listener: Listener,
  now: number,
): Promise<MetricsSeen> {
  const { wire } = catalogue
  const { metrics: settings } = all
  const { base, hear } = listener
  const { asset } = wire.probes
  const plain = probe(catalogue, wire.probes.plain)
  const nested = probe(catalogue, wire.probes.nested)
  const ask: AskPoints = async (endpoint, interval, window, keys) => {
    const spelt = { ...wire, queryKeys: keys }
    const { currency, exchange, network } = endpoint.defaults
    const place = { metric: endpoint.path, asset, interval, currency, exchange, network, params: endpoint.params }
    const series = { ...place, id: seriesId(place) }
    const url = metricsUrl(base, spelt, { endpoint, series, window })
    return await hear(url, { parameters: knownParameters(spelt), needed: endpoint.path })
  }
  const template = wire.metadata?.template
  const metadata = template === undefined ? null : await hear(metadataUrl(base, template, plain.ask))
  const windows = windowsOf(metadata?.at ?? Math.floor(now / 1000))
  const lists = listsIn(metadata?.body, wire, asset)?.lists ?? {}
  const askWith = async (keys: QueryKeys): Promise<HeardAnswer | null> => await ask(plain, '24h', windows.days, keys)
  const foundKeys = await keysOf(askWith, keysFrom(lists, plain, asset, wire.queryKeys), windows.days, listener)
  const { days, keys, taken } = foundKeys
  // The assumption with the most expensive mistake comes first.
  const open = days !== null && isUnfinished(pointsIn(days.body) ?? [], days.at)
  // The same request again, if only that shows whether an interval is finished.
  const again = open ? await askWith(keys) : null
  const weeks = taken ? await ask(plain, '1w', windows.weeks, keys) : null
  const real = taken ? await withRealExchange(catalogue, nested, template, listener) : null
  const hours = real === null ? null : await ask(real, '1h', windows.hours, keys)
  const assets = await hear(assetsUrl(base, wire))
  const answers = { ...foundKeys, metadata, weeks, hours, assets, again }
  return {
    settings,
    wire,
    endpoint: plain,
    asset,
    windows,
    nameless: namelessIn(catalogue),
    ended: listener.ended(),
    needed: listener.needed(),
    ...answers,
  }
}

/** Counts of endpoints with placeholder names, by the reason why the real ones are not known. */
export interface NamelessEndpoints {
  /** Several paths of the provider fit: a person has to choose. */
  readonly ambiguous: number
  /** No path that the provider lists fits. */
  readonly unlisted: number
  /** The provider's listing was not looked up yet. */
  readonly paths: number
  /** The metadata that list their exchanges were not looked up yet. */
  readonly exchanges: number
}

function namelessIn(catalogue: Catalogue): NamelessEndpoints {
  const all = [...catalogue.endpoints.values()]
  const nameless = all.filter(isNameless)
  return {
    ambiguous: nameless.filter(({ candidates = [] }) => candidates.length > 0).length,
    unlisted: nameless.filter(({ candidates }) => candidates?.length === 0).length,
    paths: nameless.filter(({ candidates }) => candidates === undefined).length,
    exchanges: all.filter(({ exchanges }) => exchanges.some((name) => isOpenExchange(catalogue, name))).length,
  }
}

/**
 * Returns the endpoint with an exchange that the provider takes; null if only a placeholder is known, which is never
 * sent.
 */
async function withRealExchange(
  catalogue: Catalogue,
  endpoint: Endpoint,
  template: string | undefined,
  { base, hear }: Listener,
): Promise<Endpoint | null> {
  const { exchange } = endpoint.defaults
  if (exchange === null || !isOpenExchange(catalogue, exchange)) return endpoint
  const heard = template === undefined ? null : await hear(metadataUrl(base, template, endpoint.ask))
  const read =
    heard?.bytes && catalogue.wire.metadata
      ? readMetadata(new TextDecoder().decode(heard.bytes), catalogue.wire.metadata)
      : null
  const key = catalogue.wire.queryKeys.exchange
  const [listed] = [...(read?.defaults?.[key] ?? []), ...(read?.parameters[key] ?? [])]
  return listed === undefined ? null : { ...endpoint, defaults: { ...endpoint.defaults, exchange: listed } }
}

type AskPoints = (
  endpoint: Endpoint,
  interval: Interval,
  window: Window,
  keys: QueryKeys,
) => Promise<HeardAnswer | null>

function windowsOf(now: Instant): ProbeWindows {
  const today = floor(now, '24h')
  return {
    days: { since: today - 10 * day, until: today + day },
    hours: { since: today - day, until: today },
    weeks: { since: today - 42 * day, until: today + day },
  }
}

/**
 * Requests days with these keys and then with other usual ones, until an answer shows no wrong key. Returns the first
 * answer, the last one with its keys, and whether these were accepted and had effect.
 */
async function keysOf(
  ask: (keys: QueryKeys) => Promise<HeardAnswer | null>,
  startingKeys: QueryKeys,
  window: Window,
  { requestsLeft }: Listener,
): Promise<KeyTrial> {
  const tried = new Set([spelling(startingKeys)])
  const first = await ask(startingKeys)
  let days = first
  let keys = startingKeys
  while (days !== null && requestsLeft() > 0) {
    const next = nextKeys(keys, days, window, tried)
    if (next === null) break
    keys = next
    tried.add(spelling(keys))
    days = await ask(keys)
  }
  const areKeysTaken = days !== null && days.outcome.kind === 'body' && wrongKeys(days, window).length === 0
  return { first, days, keys, taken: areKeysTaken }
}

function probe({ endpoints }: Catalogue, path: string): Endpoint {
  const endpoint = endpoints.get(path)
  if (endpoint !== undefined) return endpoint
  throw usage('wire.probes', {
    expected: 'paths of the catalogue',
    got: path,
    next: 'name others in a file of `catalogs`',
  })
}
