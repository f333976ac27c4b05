import { resolve } from 'node:path'
import { usage } from '../../base/errors.ts'
import { isOwn } from '../../catalog/catalogue.ts'
import { globTest } from '../../catalog/globs.ts'
import { hint } from '../../base/suggestion.ts'
import type { Damage } from '../../maintenance/upkeep/findings.ts'
import {
  isUnreadable,
  verify,
  type VerifySummary,
  verifyVerdict,
  withRegistryVerified,
} from '../../maintenance/upkeep/verify.ts'
import { type OwnVerified, verifyOwn } from '../../sources/user-files/verify.ts'
import { type RegistryVerified, verifyRegistry } from '../../sources/registry/verify.ts'
import { outFile, putOut } from '../../lake/store/output.ts'
import { visibleLines } from '../../base/visible-text.ts'
import { instantNow, isVerbose, rangeOf } from '../cli/context.ts'
import { fetchProgress } from './fetch.ts'
import { headFlags, headVerified } from './head-check.ts'
import { registryProgress } from './registry.ts'
import { answering, type Call, type Deps } from '../cli/spec.ts'
import { askingWorld, providersOf, requireLake } from '../cli/world.ts'
import type { Difference } from '../../sources/metrics/verify-findings.ts'
import { observedAgainLines } from './doctor.ts'
import { bytes, formatCounts, cut, several, type LabelledRow, formatCount, wrapLine } from '../../base/figures.ts'

/** Number of files of user data that are compared, unless all are requested. */
const usualFiles = 20
/** Maximum credits that a verify spends by default. */
export const usualBudget = 300
/** Maximum requests that a verify sends to the registry by default. */
const usualRequests = 60

const verifyOptions = {
  '--all': 'everything that the lake has, without a limit',
  '--budget N':
    `one number for two limits: credits for points (default: ${usualBudget}) and requests to the registry ` +
    `(${usualRequests})`,
  '--spread-days N': 'spend less: what daily runs need to compare everything in N days',
  '--paths LIST': 'only these endpoints, by comma, `*` as a glob',
  '--assets LIST': 'only these assets, by comma, `*` as a glob',
  '--since TIME': 'first t to compare: a date or a timestamp, UTC',
  '--until TIME': 'end of the range of t, exclusive',
  '--resources LIST': "only the registry: these resources, by comma, or '*'",
  '--max-requests N': 'stop after N requests',
  '--report FILE': 'write a report for the provider, as Markdown',
  ...headFlags,
} as const

export const verifyCommand = answering({
  viewsAfter: true,
  recorded: true,
  asks: true,
  options: verifyOptions,
  details: `verify first reads every file of the lake. Then it requests a part of the history again and compares it. Windows that were never
verified come first, then those whose last check is longest ago. Refused windows share a tenth of the budget. Different values are
recorded and never applied; points that the provider added are stored. Series that \`select\` no longer names are compared like
all others that the lake has.

In the registry, verify compares records and lists. A difference that the change feed lacks becomes a row of registry_findings.
--paths, --assets, --since and --until leave the registry out; --resources leaves the points out. User data is compared with the
files that it came from: ${usualFiles} files in each run, with --all every file. --assets and --since leave user data out.

Exit 4: something differs or is damaged. Exit 5: stopped early; the same command continues. Exit 6: windows failed.`,
  answer: async (call) => {
    const { settings, catalogue, options, cwd, stderr } = call
    const { data } = settings
    requireLake(data)
    if (options.head !== undefined) return await headVerified(call)
    const { all, budget, spreadDays = null, report, maxRequests = null } = options
    if (all && budget !== undefined) throw usage('--all', { expected: 'no --budget with it', next: 'leave one out' })
    const { scope, names } = wantedOf(call)
    // Refused before any request, not after it was paid for.
    if (report !== undefined) outFile(resolve(cwd, report), data, '--report').discard()
    const { onEvent, end } = fetchProgress(call, isVerbose(call))
    stderr('reading every file of the lake\n')
    const common = { settings, catalogue, providerMoved: false }
    const world = askingWorld(call, 'verify')
    const within = (usual: number): number | null => (all ? null : (budget ?? usual))
    const points = await verify(
      { ...common, now: instantNow(call), scope, budget: within(usualBudget), spreadDays, maxRequests },
      { ...world, onEvent, detailedLog: isVerbose(call), onDamage: reportAtOnce(call) },
    ).finally(end)
    const requestsLeft = maxRequests === null ? null : Math.max(0, maxRequests - points.requests)
    const limits = { budget: within(usualRequests), spreadDays, maxRequests: requestsLeft }
    const registry = { ...common, acceptShrink: false, ...limits }
    const summary =
      names === undefined || points.stopped_by !== null || isUnreadable(points)
        ? points
        : withRegistryVerified(
            points,
            await verifyRegistry({ ...registry, names }, { ...world, onEvent: registryProgress(call) }),
          )
    if (report !== undefined) await putOut(resolve(cwd, report), visibleLines(reportOf(summary)), data, '--report')
    const isLeft = options.resources !== undefined || options.assets !== undefined || options.since !== undefined
    const whole = isLeft || isUnreadable(summary) ? summary : await withFiles(call, summary)
    return { document: whole, words: () => verdictText(whole), error: verifyVerdict(whole) }
  },
})

const ownMetrics = ({ endpoints }: Call<typeof verifyOptions>['catalogue']): readonly string[] =>
  [...endpoints.values()].filter(isOwn).map(({ path }) => path)

/** Returns the summary of a verify with the comparison of the files from which user data were imported. */
async function withFiles(call: Call<typeof verifyOptions>, summary: VerifySummary): Promise<VerifySummary> {
  const { options, settings, catalogue, cwd } = call
  const tests = options.paths?.map(globTest)
  const isWanted = (metric: string): boolean => tests?.some((test) => test(metric)) ?? true
  if (!ownMetrics(catalogue).some(isWanted)) return summary
  const most = options.all ? null : usualFiles
  const damaged = new Set(summary.damage.map(({ path }) => path))
  const input = { root: settings.data, catalogue, isWanted, most, cwd, damaged }
  const verifiedFiles = await verifyOwn(input, askingWorld(call, 'verify'))
  const ok = summary.ok && verifiedFiles.differences.length === 0 && verifiedFiles.incidents === 0
  return { ...summary, own: verifiedFiles, version: verifiedFiles.version, ok }
}

/** Reports damage before the provider is contacted, which may take long. */
function reportAtOnce({ stderr }: Deps): (damage: readonly Damage[]) => void {
  return (damage) => {
    for (const { path, found, remedy } of damage.slice(0, 10)) stderr(`damage: ${path}: ${found}; ${remedy}\n`)
    if (damage.length > 10) stderr(`damage: ${damage.length - 10} more\n`)
  }
}

/**
 * Selects what is requested again: points (null: none), and resources of the registry (null: all; undefined: none).
 * Flags of one API alone leave the other out; without any both are requested, as far as the lake has their data.
 */
function wantedOf({ options, settings, catalogue, stderr }: Call<typeof verifyOptions>) {
  const { since = null, until = null } = rangeOf(options)
  const { paths = null, assets = null, resources } = options
  const scope = { paths, assets, since, until }
  const narrowed = Object.values(scope).some((value) => value !== null)
  const names = resources && namesOf(resources, [...catalogue.resources.keys()])
  if (names !== undefined) return { scope: narrowed ? scope : null, names }
  const providers = providersOf(settings.data)
  const isAskable = providers.has('metrics') || settings.metrics.url !== null || ownMetrics(catalogue).length === 0
  if (narrowed || !providers.has('registry')) return { scope: isAskable ? scope : null, names }
  const { url, key } = settings.registry
  if (url === null || key === null) {
    stderr(`note: the registry is not requested: PITLAKE_REGISTRY_${url === null ? 'URL' : 'KEY'} is not set\n`)
    return { scope, names }
  }
  return { scope: isAskable ? scope : null, names: null }
}

/** Names of resources as typed; null: all. */
export function namesOf(named: readonly string[], knownNames: readonly string[]): readonly string[] | null {
  if (named.includes('*')) return null
  const unknown = named.find((name) => !knownNames.includes(name))
  if (unknown === undefined) return named
  throw usage('--resources', { expected: knownNames.join(', '), got: unknown, next: hint(unknown, knownNames) })
}

const mostShown = 10

/** Formats the verdict for a terminal, at most 80 columns. */
export function verdictText(summary: VerifySummary): string {
  const { checked, damage, windows, differences, failures, requests, credits, gaps, registry, results } = summary
  const { incidents, acknowledged, points_added: added } = summary
  const sound = damage.length === 0 ? 'all sound' : `${damage.length} findings`
  const lists = [damage, differences, failures, registry?.findings ?? [], registry?.failures ?? []]
  const more = lists.reduce((sum, list) => sum + Math.max(0, list.length - mostShown), 0)
  const lines = [
    ...labels([
      ['files', `${formatCount(checked.files)} read in full, ${bytes(checked.bytes)}, ${sound}`],
      [
        'contents',
        `${several(checked.points, 'point')} of ${formatCount(checked.series)} series, ${formatCount(gaps)} known gaps`,
      ],
      ['windows', compared(windows, '')],
      formatCounts(results) !== '' && ['results', formatCounts(results)],
      formatCounts(results) !== '' && added > 0 && ['appended', several(added, 'point')],
      ['requested', `${several(requests, 'request')}, ${several(credits, 'credit')}`],
      incidents > 0 && [
        'incidents',
        `${formatCount(incidents)}, of very many points at once: see pitlake violations list`,
      ],
      acknowledged > 0 && ['known', `${several(acknowledged, 'acknowledged difference')}, not reported again`],
      windows.refused > 0 && ['refused', `${several(windows.refused, 'window')}, as before: pitlake violations list`],
      windows.failed > 0 && ['failed', `${several(windows.failed, 'window')} without a usable answer`],
      windows.left > 0 && ['left', `${several(windows.left, 'window')} for the next run`],
    ]),
    ...each(damage, ({ path, found, remedy }) => [`damage     ${path}: ${found}`, `           remedy: ${remedy}`]),
    ...each(differences, differenceLines),
    ...each(failures, ({ series, reason }) => [`failed     ${series}: ${reason}`]),
    ...observedAgainLines(summary.observed_again).flatMap((line) => ['', ...wrapLine(line)]),
    ...(registry === null ? [] : ['', ...registryLines(registry)]),
    ...(summary.own === null ? [] : ['', ...ownLines(summary.own)]),
    ...(more > 0 ? ['', `and ${formatCount(more)} more: see --json or --report FILE`] : []),
  ]
  return `${lines.join('\n')}\n`
}

function compared(all: Readonly<Record<'verified' | 'chosen' | 'held', number>>, what: string): string {
  return `${formatCount(all.verified)} of ${formatCount(all.chosen)}${what} compared, ${formatCount(all.held)} stored`
}

/** Formats the first of a list, each below an empty line. */
function each<T>(list: readonly T[], lines: (element: T) => readonly string[]): string[] {
  return list.slice(0, mostShown).flatMap((element) => ['', ...lines(element).flatMap((line) => wrapLine(line))])
}

function labels(rows: readonly LabelledRow[]): string[] {
  return rows.flatMap((row) => (row === false ? [] : wrapLine(`${row[0].padEnd(11)}${row[1]}`)))
}

/** Formats the findings of the registry, and the first ones with both records cut short. */
function registryLines({
  checks,
  results,
  ignored,
  findings,
  acknowledged,
  failures,
  requests,
}: RegistryVerified): string[] {
  return [
    ...labels([
      ['registry', compared(checks, ' addresses')],
      ['results', formatCounts(results)],
      ['requested', several(requests, 'request')],
      ignored.length > 0 && ['filters', `ignored by the provider: ${ignored.join(', ')}`],
      acknowledged > 0 && ['known', `${several(acknowledged, 'acknowledged contradiction')}, not reported again`],
      checks.left > 0 && ['left', `${several(checks.left, 'address', 'addresses')} for the next run`],
    ]),
    ...each(findings, ({ kind, resource, id, detail, held, offered }) => [
      `${kind.replaceAll('_', ' ')}: ${resource} ${id}`,
      `           ${detail}`,
      `           stored ${cut(held ?? 'nothing', beginning)}`,
      `           offered ${cut(offered ?? 'nothing', beginning)}`,
    ]),
    ...each(failures, ({ address, reason }) => [`failed     ${address}: ${reason}`]),
  ]
}

/** Formats the results of the files of user data. */
function ownLines({ files, left, differences }: OwnVerified): string[] {
  const states = Object.fromEntries(
    Object.entries(Object.groupBy(files, ({ state }) => state)).map(([state, all]) => [state, all.length]),
  )
  const news = files.filter((file) => file.news > 0)
  const lostFiles = files.filter(({ state }) => state === 'gone' || state === 'unreadable')
  return [
    ...labels([
      ['own data', `${several(files.length, 'file')} from which it came: ${formatCounts(states)}`],
      left > 0 && ['left', `${several(left, 'file')} for another day (--all: now)`],
    ]),
    ...each(differences, differenceLines),
    ...each(lostFiles, ({ state, metric, file, reason }) => [`${state.padEnd(10)} ${metric}: ${reason ?? file}`]),
    ...each(news, ({ metric, file, news: rows }) => [`news       ${metric}: ${file} has ${several(rows, 'row')} more`]),
  ]
}

const beginning = 59

function differenceLines(difference: Difference): string[] {
  const { result, t, stored, offered, stored_at, offered_at, offered_request } = difference
  return [
    `${result.padEnd(10)} ${seriesName(difference)}, t ${t}`,
    `           stored ${stored ?? 'nothing'} at ${stored_at ?? 'an unknown time'}`,
    `           offered ${offered ?? 'nothing'} at ${offered_at}`,
    `           request ${offered_request ?? 'unknown'}`,
  ]
}

function seriesName({ metric, asset, interval, currency, exchange, network }: Difference): string {
  return [metric, asset, interval, currency, exchange, network].filter((part) => part !== null).join(' ')
}

/** Formats the report that a person can send to the provider: Markdown, no key in it. */
export function reportOf(summary: VerifySummary): string {
  const { run, version, provider, differences, damage, failures, windows, results, registry } = summary
  const findingCount = differences.length + failures.length + damage.length + (registry?.findings.length ?? 0)
  const failed = failures.map(({ series, since, until, reason }) => `- \`${series}\`, ${since} to ${until}: ${reason}`)
  const damages = damage.map(({ path, found, remedy }) => `- \`${path}\`: ${found}; ${remedy}`)
  const lines = [
    '# Verification of stored history',
    '',
    `- provider: ${provider ?? 'unknown'}`,
    `- run: ${run ?? 'none'}, lake version ${version}`,
    `- windows compared: ${windows.verified} of ${windows.chosen}`,
    ...Object.entries(results).map(([name, count]) => `- ${name}: ${count}`),
    '',
    'All times are UTC. Values are compared bit for bit. `stored` is the value of an earlier answer, `offered` is',
    'the value that the same address returns now. No stored value was changed.',
    '',
    ...differenceSections(differences),
    ...(registry === null ? [] : registrySections(registry)),
    ...(failed.length > 0 ? ['## Windows without a usable answer', '', ...failed, ''] : []),
    ...(damages.length > 0 ? ['## Damage in this lake (not for the provider)', '', ...damages] : []),
    ...(findingCount === 0 ? ['Nothing differs.'] : []),
  ]
  return `${lines.join('\n').trimEnd()}\n`
}

function registrySections({ checks, findings }: RegistryVerified): string[] {
  const rows = findings.map(({ kind, resource, id, address, detail, held, offered }) => {
    return [`${resource} ${id}`, kind, address, detail, cell(held), cell(offered)]
  })
  const lines = ['## Registry', '', `Addresses compared: ${checks.verified} of ${checks.chosen}.`, '']
  return [...lines, ...markdown(['record', 'what', 'address', 'detail', 'stored', 'offered'], rows)]
}

/** Formats one section for each request, its differences as a table. */
function differenceSections(differences: readonly Difference[]): string[] {
  const requests = [...Map.groupBy(differences, ({ offered_request }) => offered_request)]
  return requests.flatMap(([request, all]) =>
    all.slice(0, 1).flatMap((first) => [
      `## ${seriesName(first)}`,
      '',
      `- address: \`${first.address ?? 'unknown'}\``,
      `- requested at ${first.offered_at}, request ` +
        `\`${request ?? 'unknown'}\`${first.provider_request === null ? '' : `, the provider's id \`${first.provider_request}\``}`,
      '',
      ...markdown(
        ['t', 'what', 'stored', 'offered', 'stored at', 'stored by request'],
        all.map(({ t, result, stored, offered, stored_at, stored_request }) => {
          return [t, result, cell(stored), cell(offered), stored_at ?? '', stored_request ?? '']
        }),
      ),
    ]),
  )
}

/** Formats a table of Markdown with an empty line below; none without rows. */
function markdown(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return []
  return [...[header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`), '']
}

function cell(value: string | null): string {
  return value === null ? 'nothing' : `\`${value.replaceAll('|', '\\|').replaceAll(/[`\r\n]/g, ' ')}\``
}
