import { stringify } from 'yaml'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { Settings } from '../../catalog/settings.ts'
import { type ErrorKind, gravestOf, LakeError } from '../../base/errors.ts'
import { accessTo, type BesideDeps } from '../http/connection.ts'
import { describeOutcome, type Outcome } from '../http/outcome.ts'
import { redact } from '../../base/secrets.ts'
import { type Judges, mergeYaml, unknown } from './finding.ts'
import type { Budget } from './answers.ts'
import { hearMetrics } from './metrics.ts'
import { metricsJudges } from './metrics-rows.ts'
import { hearRegistry, registryJudges, registryRequests } from './registry.ts'

type Api = 'metrics' | 'registry'

/** What is asked at most, over both APIs together. */
const mostRequests = 10

/** Asks both APIs as far as they are set, and judges every assumption by what they say; stores nothing. */
export async function checkProvider(
  provider: { readonly settings: Settings; readonly catalogue: Catalogue },
  deps: BesideDeps,
) {
  const { settings } = provider
  const set = (api: Api): boolean => settings[api].url !== null
  if (!set('metrics') && !set('registry')) accessTo('metrics', settings)
  for (const api of ['metrics', 'registry'] as const) if (set(api)) accessTo(api, settings)
  const budget: Budget = { left: mostRequests, kept: set('registry') ? registryRequests : 0 }
  const metrics = set('metrics') ? await hearMetrics(provider, deps, budget) : null
  budget.kept = 0
  const registry = set('registry') ? await hearRegistry(provider, deps, budget) : null
  const judged = [...judge('metrics', metricsJudges, metrics), ...judge('registry', registryJudges, registry)]
  const parts = judged.map(({ yaml }) => yaml).filter((yaml) => yaml !== null)
  const show = (text: string): string => redact(text, settings.secrets)
  return {
    requests: mostRequests - budget.left,
    /** Each assumption of docs/assumptions.md, and what this provider says of it. */
    rows: judged.map(({ yaml, evidence, ...row }) => ({
      ...row,
      evidence: show(evidence),
      /** What to put into `pitlake.yaml`; null where nothing helps, or nothing is wrong. */
      yaml: yaml === null ? null : show(stringify(yaml)),
    })),
    /** All of that together. */
    yaml: parts.length === 0 ? null : show(stringify(mergeYaml(parts))),
    /** Why the rest could not be asked, gravest first; null where all was. */
    error: gravestOf([endOf('metrics', metrics?.ended ?? null), endOf('registry', registry?.ended ?? null)]),
  }
}

function judge<Seen>(api: Api, judges: Judges<Seen>, seen: Seen | null) {
  return Object.entries(judges).map(([assumption, of]) => ({
    api,
    assumption,
    ...(seen === null ? unknown(`PITLAKE_${api.toUpperCase()}_URL is not set`) : of(seen)),
  }))
}

function endOf(api: Api, ended: Outcome | null): LakeError | null {
  if (ended === null) return null
  const variable = `PITLAKE_${api.toUpperCase()}`
  const got = describeOutcome(ended)
  const name = api === 'metrics' ? 'the provider' : 'the registry'
  const refused = ['unauthorised', `${name} refuses the key`, `check ${variable}_KEY`] as const
  const ends: Readonly<Record<string, readonly [ErrorKind, string, string]>> = {
    unauthorised: refused,
    forbidden: refused,
    again: ['incomplete', `${name} cannot be reached`, `see that ${variable}_URL is right and the network is up`],
  }
  const [kind, subject, next] = ends[ended.kind] ?? [
    'stopped',
    `${name} was not asked to the end`,
    'run the same command again later',
  ]
  return new LakeError(kind, { subject, got, next })
}
