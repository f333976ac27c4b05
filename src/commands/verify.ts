import { resolve } from 'node:path'
import { usage } from '../errors.ts'
import { hint } from '../suggestion.ts'
import type { Damage } from '../upkeep/findings.ts'
import { isUnreadable, verify, verifyVerdict, withRegistryVerified } from '../upkeep/verify.ts'
import type { VerifyScope } from '../metrics/verify-plan.ts'
import { verifyRegistry } from '../registry/verify.ts'
import { outFile, putOut } from '../store/output.ts'
import { visibleLines } from '../visible.ts'
import { kinds } from '../kinds.ts'
import { isVerbose, rangeOf } from './context.ts'
import { fetchProgress } from './progress.ts'
import { registryProgress } from './registry.ts'
import { answering, type CommandContext, type Deps } from './spec.ts'
import { reportOf, toldOf } from './verify-report.ts'
import { askingWorld, providersOf, requireLake } from './world.ts'

/** The most credits that a verify spends unless it is told otherwise. */
export const usualBudget = 300
/** And the most requests that it sends to the registry. */
const usualRequests = 60

/** `verify`: proves the files and asks the provider again for history that the lake holds. */
export const verifyCommand = answering({
  name: 'verify',
  ends: [3, 4, 5, 6, 7],
  recorded: true,
  asks: true,
  options: {
    '--all': 'everything that the lake holds, whatever it costs',
    '--budget N': `the most credits to spend (default: ${usualBudget}), and requests to the registry (${usualRequests})`,
    '--paths LIST': { kind: kinds.list('metrics'), about: 'only these endpoints, by comma, `*` as a glob' },
    '--assets LIST': { kind: kinds.list('assets'), about: 'only these assets, by comma, `*` as a glob' },
    '--since TIME': { kind: kinds.instant, about: 'first t to compare, a date or an instant, UTC' },
    '--until TIME': { kind: kinds.instant, about: 'end of the range of t, exclusive' },
    '--resources LIST': {
      kind: kinds.list('resources'),
      about: "only the registry: these resources, by comma, or '*'",
    },
    '--max-requests N': 'stop after so many requests',
    '--report FILE': 'write a report for the provider, as Markdown',
  },
  details: `Windows come from all endpoints in turn, never verified or longest ago first. What differs is put on record and never
applied. Records of the registry are asked by their own addresses, its lists by their filters: what differs though the
feed has no word of it is a row of registry_findings. Flags of points alone leave the registry out, --resources the points.
Exit code 4: something differs or is damaged; 5: stopped early, the same command goes on; 6: windows failed.`,
  answer: async (input, { settings, catalogue }, deps) => {
    requireLake(settings.data)
    const { all, budget: given, report, maxRequests = null } = input.options
    if (all && given !== undefined) throw usage('--all', { expected: 'no --budget beside it', next: 'leave one out' })
    const wanted = wantedOf(input.options, deps, { settings, catalogue })
    // Said before anything is asked, not after it was paid for.
    if (report !== undefined) outFile(resolve(deps.cwd, report), settings.data, '--report').discard()
    const verbose = isVerbose(input, deps)
    const progress = fetchProgress(deps, verbose)
    deps.stderr('reading every file of the lake\n')
    const now = Math.floor(deps.now() / 1000)
    const common = { settings, catalogue, providerMoved: false }
    const world = askingWorld(deps, 'verify', catalogue)
    const points = await verify(
      { ...common, now, scope: wanted.scope, budget: all ? null : (given ?? usualBudget), maxRequests },
      { ...world, onEvent: progress.onEvent, detailedLog: verbose, onDamage: toldAtOnce(deps) },
    ).finally(progress.end)
    const summary =
      wanted.names === undefined || points.stopped_by !== null || isUnreadable(points)
        ? points
        : withRegistryVerified(
            points,
            await verifyRegistry(
              {
                ...common,
                acceptShrink: false,
                names: wanted.names,
                budget: all ? null : (given ?? usualRequests),
                maxRequests: maxRequests === null ? null : Math.max(0, maxRequests - points.requests),
              },
              { ...world, onEvent: registryProgress(deps, verbose) },
            ),
          )
    if (report !== undefined)
      await putOut(resolve(deps.cwd, report), visibleLines(reportOf(summary)), settings.data, '--report')
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

type Asked = Parameters<typeof rangeOf>[0] &
  Readonly<Partial<Record<'paths' | 'assets' | 'resources', readonly string[] | undefined>>>

/** What is asked again: points (null: none), and resources of the registry (null: all; undefined: none). */
interface Wanted {
  readonly scope: VerifyScope | null
  readonly names: readonly string[] | null | undefined
}

/** Flags of one API alone leave the other out; without any both are asked, as far as the lake holds them. */
function wantedOf(
  { paths, assets, resources: named, ...range }: Asked,
  deps: Deps,
  { settings, catalogue }: CommandContext,
): Wanted {
  const { since = null, until = null } = rangeOf(range)
  const scope = { paths: paths ?? null, assets: assets ?? null, since, until }
  const narrowed = Object.values(scope).some((value) => value !== null)
  const names = named === undefined ? undefined : namesOf(named, [...catalogue.resources.keys()])
  if (names !== undefined) return { scope: narrowed ? scope : null, names }
  if (narrowed) return { scope, names }
  const held = providersOf(settings.data)
  if (!held.has('registry')) return { scope, names }
  const { url, key } = settings.registry
  if (url === null || key === null) {
    deps.stderr(`note: the registry is not asked: PITLAKE_REGISTRY_${url === null ? 'URL' : 'KEY'} is not set\n`)
    return { scope, names }
  }
  const points = held.has('metrics') || settings.metrics.url !== null
  return { scope: points ? scope : null, names: null }
}

/** Names of resources as typed; null: all. */
export function namesOf(named: readonly string[], known: readonly string[]): readonly string[] | null {
  if (named.includes('*')) return null
  const unknown = named.find((name) => !known.includes(name))
  if (unknown === undefined) return named
  throw usage('--resources', { expected: known.join(', '), got: unknown, next: hint(unknown, known) })
}
