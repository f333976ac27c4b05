import { resolve } from 'node:path'
import { usage } from '../errors.ts'
import { hint } from '../suggestion.ts'
import type { Damage } from '../upkeep/findings.ts'
import { isUnreadable, verify, verifyVerdict, withRegistryVerified } from '../upkeep/verify.ts'
import type { VerifyScope } from '../metrics/verify-plan.ts'
import { verifyRegistry } from '../registry/verify.ts'
import { outFile, putOut } from '../store/output.ts'
import { visibleLines } from '../visible.ts'
import { instantNow, isVerbose, rangeOf } from './context.ts'
import { fetchProgress } from './progress.ts'
import { registryProgress } from './registry.ts'
import { answering, type Call, type Deps } from './spec.ts'
import { reportOf, toldOf } from './verify-report.ts'
import { askingWorld, providersOf, requireLake } from './world.ts'

/** The most credits that a verify spends unless it is told otherwise. */
export const usualBudget = 300
/** And the most requests that it sends to the registry. */
const usualRequests = 60

const verifyOptions = {
  '--all': 'everything that the lake holds, whatever it costs',
  '--budget N': `the most credits to spend (default: ${usualBudget}), and requests to the registry (${usualRequests})`,
  '--paths LIST': 'only these endpoints, by comma, `*` as a glob',
  '--assets LIST': 'only these assets, by comma, `*` as a glob',
  '--since TIME': 'first t to compare, a date or an instant, UTC',
  '--until TIME': 'end of the range of t, exclusive',
  '--resources LIST': "only the registry: these resources, by comma, or '*'",
  '--max-requests N': 'stop after so many requests',
  '--report FILE': 'write a report for the provider, as Markdown',
} as const

/** `verify`: proves the files and asks the provider again for history that the lake holds. */
export const verifyCommand = answering({
  recorded: true,
  asks: true,
  options: verifyOptions,
  details: `Windows come from all endpoints in turn, never verified or longest ago first. What differs is put on record and never
applied. Records of the registry are asked by their own addresses, its lists by their filters: what differs though the
feed has no word of it is a row of registry_findings. Flags of points alone leave the registry out, --resources the points.
Exit code 4: something differs or is damaged; 5: stopped early, the same command goes on; 6: windows failed.`,
  answer: async (call) => {
    const { settings, catalogue, options, cwd, stderr } = call
    const { data } = settings
    requireLake(data)
    const { all, budget: given, report, maxRequests = null } = options
    if (all && given !== undefined) throw usage('--all', { expected: 'no --budget beside it', next: 'leave one out' })
    const { scope, names } = wantedOf(call)
    // Said before anything is asked, not after it was paid for.
    if (report !== undefined) outFile(resolve(cwd, report), data, '--report').discard()
    const { onEvent, end } = fetchProgress(call, isVerbose(call))
    stderr('reading every file of the lake\n')
    const common = { settings, catalogue, providerMoved: false }
    const world = askingWorld(call, 'verify')
    const within = (usual: number): number | null => (all ? null : (given ?? usual))
    const points = await verify(
      { ...common, now: instantNow(call), scope, budget: within(usualBudget), maxRequests },
      { ...world, onEvent, detailedLog: isVerbose(call), onDamage: toldAtOnce(call) },
    ).finally(end)
    const left = maxRequests === null ? null : Math.max(0, maxRequests - points.requests)
    const registry = { ...common, acceptShrink: false, budget: within(usualRequests), maxRequests: left }
    const summary =
      names === undefined || points.stopped_by !== null || isUnreadable(points)
        ? points
        : withRegistryVerified(
            points,
            await verifyRegistry({ ...registry, names }, { ...world, onEvent: registryProgress(call) }),
          )
    if (report !== undefined) await putOut(resolve(cwd, report), visibleLines(reportOf(summary)), data, '--report')
    return { document: summary, words: () => toldOf(summary), error: verifyVerdict(summary) }
  },
})

/** Damage is told while the provider is still to be asked, which may take long. */
function toldAtOnce({ stderr }: Deps): (damage: readonly Damage[]) => void {
  return (damage) => {
    for (const { path, found, remedy } of damage.slice(0, 10)) stderr(`damage: ${path}: ${found}; ${remedy}\n`)
    if (damage.length > 10) stderr(`damage: ${damage.length - 10} more\n`)
  }
}

/** What is asked again: points (null: none), and resources of the registry (null: all; undefined: none). */
interface Wanted {
  readonly scope: VerifyScope | null
  readonly names: readonly string[] | null | undefined
}

/** Flags of one API alone leave the other out; without any both are asked, as far as the lake holds them. */
function wantedOf({ options, settings, catalogue, stderr }: Call<typeof verifyOptions>): Wanted {
  const { since = null, until = null } = rangeOf(options)
  const { paths = null, assets = null, resources } = options
  const scope = { paths, assets, since, until }
  const narrowed = Object.values(scope).some((value) => value !== null)
  const names = resources && namesOf(resources, [...catalogue.resources.keys()])
  if (names !== undefined) return { scope: narrowed ? scope : null, names }
  const held = providersOf(settings.data)
  if (narrowed || !held.has('registry')) return { scope, names }
  const { url, key } = settings.registry
  if (url === null || key === null) {
    stderr(`note: the registry is not asked: PITLAKE_REGISTRY_${url === null ? 'URL' : 'KEY'} is not set\n`)
    return { scope, names }
  }
  return { scope: held.has('metrics') || settings.metrics.url !== null ? scope : null, names: null }
}

/** Names of resources as typed; null: all. */
export function namesOf(named: readonly string[], known: readonly string[]): readonly string[] | null {
  if (named.includes('*')) return null
  const unknown = named.find((name) => !known.includes(name))
  if (unknown === undefined) return named
  throw usage('--resources', { expected: known.join(', '), got: unknown, next: hint(unknown, known) })
}
