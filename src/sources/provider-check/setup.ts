import type { Catalogue, Endpoint } from '../../catalog/catalogue.ts'
import { isNameless } from '../../catalog/catalogue.ts'
import { seriesId, type Selection } from '../../catalog/series.ts'
import { LakeError } from '../../base/errors.ts'
import { day, floor, type Instant } from '../../base/time.ts'
import type { CommitDeps } from '../../lake/ledger/commit.ts'
import { askBeside, type BesideDeps } from '../http/connection.ts'
import { describeOutcome, type Outcome } from '../http/outcome.ts'
import { metricsAccess, type MetricsProvider, metricsUrl } from '../metrics/api.ts'
import type { DatedMetadata } from '../metrics/metadata-readings.ts'
import { priceOf, type PlanTotals } from '../metrics/plan.ts'
import { planWith, preparePlan } from '../metrics/prepare.ts'

/** A path of the catalogue that the provider may have under several names. */
export interface AmbiguousPath {
  readonly path: string
  /** Real paths that fit; none if the provider lists none. */
  readonly candidates: readonly string[]
}

/** The facts that a provider shows before anything is configured, enough for a working configuration. */
export interface ProviderSetup {
  /** The catalogue in the provider's own names. */
  readonly catalogue: Catalogue
  /** Paths that the plan of this key does not include. */
  readonly refused: readonly string[]
  /** Paths of the catalogue that the provider does not know. */
  readonly missing: readonly string[]
  readonly ambiguous: readonly AmbiguousPath[]
  /** Number of assets that the metadata of allowed paths list. */
  readonly assets: number
  /** Selections that fit into the credits, with their plan. */
  readonly selection: Selection & { readonly paths: readonly string[] }
  readonly totals: PlanTotals
  /** Requests for metadata, and requests that cost credits. */
  readonly requests: { readonly free: number; readonly paid: number }
}

/** The facts on which a setup depends in addition to the provider. */
interface SetupInput extends MetricsProvider {
  readonly now: Instant
  /** The most credits that the proposed selection may cost. */
  readonly maxCredits: number
}

/** One request that shows whether the plan of the key includes the paths of a tier. */
interface TierProbe {
  readonly tier: number | null
  readonly endpoint: Endpoint
}

/** The most requests that cost credits. */
const mostProbes = 10

/**
 * Requests a provider's metadata (free) and, with one request for each tier, whether the key's plan includes it. Calls
 * `announce` before it sends requests that cost credits.
 */
export async function exploreProvider(
  input: SetupInput,
  deps: BesideDeps & CommitDeps,
  announce: (requests: number, credits: number) => void,
): Promise<ProviderSetup> {
  const { settings, maxCredits } = input
  const { asset } = input.catalogue.wire.probes
  const planInput = { ...input, gapsOnly: false, selections: [{ assets: [asset], paths: ['*'] }] }
  const prepared = await preparePlan(planInput, deps)
  const { catalogue, storedMetadata } = prepared
  const endpoints = [...catalogue.endpoints.values()].filter((endpoint) => !isNameless(endpoint))
  const probes = probesOf(catalogue, endpoints, storedMetadata)
  announce(probes.length, probes.length * priceOf(settings.metrics.credits, asset))
  const refusedTiers = await askTiers({ ...input, catalogue }, probes, deps, storedMetadata.size === 0)
  const isRefused = ({ ask }: Endpoint): boolean => refusedTiers.has(storedMetadata.get(ask)?.tier ?? null)
  const isMissing = ({ ask }: Endpoint): boolean => storedMetadata.size > 0 && !storedMetadata.has(ask)
  const allowed = endpoints.filter((endpoint) => !isRefused(endpoint) && !isMissing(endpoint))
  const paths = globsOf(catalogue, allowed)
  const since = Date.UTC(2019, 0, 1) / 1000
  const proposals = [[asset, 'ETH'], [asset]].map((assets) => ({ assets, paths, since }))
  let chosen: { readonly selection: ProviderSetup['selection']; readonly totals: PlanTotals } | null = null
  for (const selection of proposals) {
    const { totals } = await planWith({ ...input, catalogue, gapsOnly: false, selections: [selection] }, prepared)
    chosen = { selection, totals }
    if (totals.credits <= maxCredits) break
  }
  if (chosen === null) throw new Error('nothing was proposed')
  return {
    ...chosen,
    catalogue,
    refused: endpoints.filter((endpoint) => !isMissing(endpoint) && isRefused(endpoint)).map(({ path }) => path),
    missing: endpoints.filter(isMissing).map(({ path }) => path),
    ambiguous: [...catalogue.endpoints.values()]
      .filter(isNameless)
      .map(({ path, candidates = [] }) => ({ path, candidates })),
    assets: assetsOf(catalogue, allowed, storedMetadata).size,
    requests: { free: prepared.metadata.asked, paid: probes.length },
  }
}

type Known = ReadonlyMap<string, DatedMetadata>

/** Chooses a path of each tier that takes the probe's asset; without metadata the plain path of the catalogue. */
function probesOf({ wire, endpoints }: Catalogue, named: readonly Endpoint[], facts: Known): TierProbe[] {
  const plain = endpoints.get(wire.probes.plain)
  if (facts.size === 0) return plain === undefined ? [] : [{ tier: null, endpoint: plain }]
  const tiers = new Map<number | null, Endpoint>()
  for (const endpoint of [...(plain === undefined ? [] : [plain]), ...named]) {
    const dated = facts.get(endpoint.ask)
    if (
      dated === undefined ||
      !endpoint.since ||
      dated.parameters[wire.queryKeys.asset]?.includes(wire.probes.asset) === false
    )
      continue
    const tier = dated.tier ?? null
    if (!tiers.has(tier)) tiers.set(tier, endpoint)
  }
  return [...tiers].map(([tier, endpoint]) => ({ tier, endpoint })).slice(0, mostProbes)
}

/**
 * Requests one path of each tier, and returns the tiers that the provider refuses to this key. A 404 ends the setup if
 * the provider `isUnknown`: if it has no metadata either, no answer shows that there is an API at this address.
 */
async function askTiers(
  { settings, catalogue, now }: SetupInput,
  probes: readonly TierProbe[],
  deps: BesideDeps,
  isUnknown: boolean,
): Promise<ReadonlySet<number | null>> {
  const { asset } = catalogue.wire.probes
  const until = floor(now, '24h')
  const refusedTiers = new Set<number | null>()
  const how = { perMinute: settings.metrics.requestsPerMinute }
  await askBeside(metricsAccess({ settings, catalogue }), deps, how, async ({ ask, base, file }) => {
    for (const [at, { tier, endpoint }] of probes.entries()) {
      const { path: metric, params, defaults } = endpoint
      const place = { metric, asset, ...defaults, params }
      const series = { ...place, id: seriesId(place) }
      const window = { since: until - 3 * day, until }
      const url = metricsUrl(base, catalogue.wire, { endpoint, series, window })
      const { outcome } = await ask({ id: `tier-${at}`, url, file: file(`${at}.json`) })
      refuseUnusable(outcome)
      if (isUnknown && outcome.kind === 'gone')
        throw new LakeError('incomplete', {
          subject: `PITLAKE_METRICS_URL`,
          expected: `the address before ${catalogue.wire.metricsPrefix}`,
          got: `one with neither metadata nor ${endpoint.path}: ${describeOutcome(outcome)}`,
          next: 'correct it, then run pitlake init again; without PITLAKE_METRICS_KEY, init writes a template',
        })
      if (outcome.kind === 'forbidden') refusedTiers.add(tier)
    }
  })
  if (probes.length > 0 && refusedTiers.size === probes.length)
    throw new LakeError('unauthorised', {
      subject: 'the provider refuses every path to this key',
      next: 'check PITLAKE_METRICS_KEY',
    })
  return refusedTiers
}

/** Ends if an answer shows that nothing can be learnt now. */
function refuseUnusable(outcome: Outcome): void {
  const got = describeOutcome(outcome)
  if (outcome.kind === 'unauthorised')
    throw new LakeError('unauthorised', {
      subject: 'the provider refuses the key',
      got,
      next: 'check PITLAKE_METRICS_KEY',
    })
  if (outcome.kind === 'again')
    throw new LakeError('incomplete', {
      subject: 'the provider cannot be reached',
      got,
      next: 'see that PITLAKE_METRICS_URL is right and the network is up',
    })
  if (outcome.kind === 'stopped' || outcome.kind === 'parked' || outcome.kind === 'limited')
    throw new LakeError('stopped', {
      subject: 'the provider was not read to the end',
      got,
      next: 'run the same command again later',
    })
}

/** Formats paths as globs of whole groups if all paths of a group are allowed, otherwise by name. */
function globsOf({ endpoints }: Catalogue, allowed: readonly Endpoint[]): string[] {
  const groupOf = ({ path }: Endpoint): string => path.slice(0, path.indexOf('/'))
  const all = Map.groupBy(endpoints.values(), groupOf)
  const endpointsByGroup = Map.groupBy(allowed, groupOf)
  return [...endpointsByGroup].flatMap(([group, some]) =>
    all.get(group)?.length === some.length ? [`${group}/*`] : some.map(({ path }) => path),
  )
}

/** Returns the assets that metadata list for these paths. */
function assetsOf({ wire }: Catalogue, endpoints: readonly Endpoint[], known: Known): ReadonlySet<string> {
  return new Set(endpoints.flatMap(({ ask }) => known.get(ask)?.parameters[wire.queryKeys.asset] ?? []))
}
