import { stringify } from 'yaml'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { Settings } from '../../catalog/settings.ts'
import { type ErrorKind, gravestOf, LakeError } from '../../base/errors.ts'
import { accessTo, type BesideDeps } from '../http/connection.ts'
import { describeOutcome, type Outcome } from '../http/outcome.ts'
import { redact } from '../../base/secrets.ts'
import { type AssessmentVerdict, type Judges, mergeYaml, unknown } from './finding.ts'
import type { Budget, NeededAnswer } from './answers.ts'
import { hearMetrics } from './metrics.ts'
import { metricsJudges } from './metrics-rows.ts'
import { hearRegistry, registryJudges, registryRequests } from './registry.ts'

type Api = 'metrics' | 'registry'

/** The most requests, over both APIs together. */
const mostRequests = 10

/** An assumption of docs/how-to/another-provider.md, with the evidence from this provider. */
export type CheckedAssumption = {
  readonly api: Api
  /** Words of the row in docs/how-to/another-provider.md. */
  readonly assumption: string
  readonly verdict: AssessmentVerdict
  /** Reason in words. */
  readonly evidence: string
  /** Addition to `pitlake.yaml`; null if nothing helps, or nothing is wrong. */
  readonly yaml: string | null
}

/** Every assumption, checked against one provider. */
export interface ProviderCheck {
  /** Requests that were sent. */
  readonly requests: number
  readonly rows: readonly CheckedAssumption[]
  /** Additions to `pitlake.yaml` for all assumptions together; null if there are none. */
  readonly yaml: string | null
  /** Reason for leaving requests out, gravest first; null if none were left out. */
  readonly error: LakeError | null
}

/** Requests both APIs as far as they are set, and judges every assumption by their answers; stores nothing. */
export async function checkProvider(
  provider: { readonly settings: Settings; readonly catalogue: Catalogue },
  deps: BesideDeps,
): Promise<ProviderCheck> {
  const { settings } = provider
  const set = (api: Api): boolean => settings[api].url !== null
  if (!set('metrics') && !set('registry')) accessTo('metrics', settings)
  for (const api of ['metrics', 'registry'] as const) if (set(api)) accessTo(api, settings)
  const budget: Budget = { requestsLeft: mostRequests, requestsReserved: set('registry') ? registryRequests : 0 }
  const metrics = set('metrics') ? await hearMetrics(provider, deps, budget) : null
  budget.requestsReserved = 0
  const registry = set('registry') ? await hearRegistry(provider, deps, budget) : null
  const judged = [...judge('metrics', metricsJudges, metrics), ...judge('registry', registryJudges, registry)]
  const parts = judged.map(({ yaml }) => yaml).filter((yaml) => yaml !== null)
  const show = (text: string): string => redact(text, settings.secrets)
  return {
    requests: mostRequests - budget.requestsLeft,
    rows: judged.map(({ yaml, evidence, ...row }) => ({
      ...row,
      evidence: show(evidence),
      yaml: yaml === null ? null : show(stringify(yaml)),
    })),
    yaml: parts.length === 0 ? null : show(stringify(mergeYaml(parts))),
    error: gravestOf([endOf('metrics', metrics), endOf('registry', registry)]),
  }
}

function judge<Seen>(api: Api, judges: Judges<Seen>, seen: Seen | null) {
  return Object.entries(judges).map(([assumption, of]) => ({
    api,
    assumption,
    ...(seen === null ? unknown(`PITLAKE_${api.toUpperCase()}_URL is not set`) : of(seen)),
  }))
}

/** The end of the conversation with an API. */
interface SeenEnd {
  readonly ended: Outcome | null
  readonly needed: readonly NeededAnswer[]
}

function endOf(api: Api, seen: SeenEnd | null): LakeError | null {
  if (seen === null) return null
  const { needed } = seen
  const ended = seen.ended ?? needed.find(({ outcome }) => outcome.kind === 'again')?.outcome ?? null
  if (ended === null) return lackOf(api, needed)
  const variable = `PITLAKE_${api.toUpperCase()}`
  const got = describeOutcome(ended)
  const name = api === 'metrics' ? 'the provider' : 'the registry'
  const refusal = ['unauthorised', `${name} refuses the key`, `check ${variable}_KEY`] as const
  const ends: Readonly<Record<string, readonly [ErrorKind, string, string]>> = {
    unauthorised: refusal,
    forbidden: refusal,
    again: ['incomplete', `${name} cannot be reached`, `see that ${variable}_URL is right and the network is up`],
  }
  const [kind, subject, next] = ends[ended.kind] ?? [
    'stopped',
    `${name} was not read to the end`,
    'run the same command again later',
  ]
  return new LakeError(kind, { subject, got, next })
}

/** The subject if an API answers 404 to all, and the next step if it does to a part. */
const remedies: Readonly<Record<Api, readonly [nothing: string, one: string]>> = {
  metrics: [
    'the provider has no points at this address',
    'name another path under `wire.probes` in a file of `catalogs`',
  ],
  registry: [
    'the registry is not at this address',
    '`registry snapshot` and `registry sync` need it: see docs/how-to/another-provider.md',
  ],
}

/** Builds the error for a provider that answers needed requests with 404 or 410; null if it answers none so. */
function lackOf(api: Api, needed: readonly NeededAnswer[]): LakeError | null {
  const gone = needed.filter(({ outcome }) => outcome.kind === 'gone')
  const [first] = gone
  if (first === undefined) return null
  const [nothing, next] = remedies[api]
  const got = describeOutcome(first.outcome)
  if (gone.length === needed.length)
    return new LakeError('incomplete', {
      subject: nothing,
      got,
      next: `see that PITLAKE_${api.toUpperCase()}_URL is right, then run the same command again`,
    })
  const name = api === 'metrics' ? 'the provider' : 'the registry'
  const paths = [...new Set(gone.map(({ path }) => path))]
  return new LakeError('incomplete', { subject: `${name} does not have ${paths.join(', ')}`, got, next })
}
