import { readableSeries } from '../../catalog/series.ts'
import { usage } from '../../base/errors.ts'
import { acceptViolations, listViolations } from '../../lake/ledger/violations.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { acceptedPrefix } from '../../sources/registry/columns.ts'
import { listFindings } from '../../sources/registry/verify.ts'
import type { UpstreamDifference } from '../report/alarms.ts'
import { formatInstant, formatMillis, type Micros } from '../../base/time.ts'
import { formatCounts, table, formatCount, several } from '../../base/figures.ts'
import { answering, type Call } from '../cli/spec.ts'
import { namesOf } from './verify.ts'
import { lakeWorld, requireLake } from '../cli/world.ts'

const filterOptions = {
  '--resources LIST': "only contradictions of these registry resources, by comma, or '*'",
  '--paths LIST': 'only these endpoints, by comma, `*` as a glob',
  '--assets LIST': 'only these assets, by comma, `*` as a glob',
  '--kinds LIST': 'only these kinds, by comma: changed, vanished, incident, refused …',
  '--days LIST': 'only those found on these days (UTC), by comma: 2026-03-02',
} as const
const filterNames = ['paths', 'assets', 'resources', 'kinds', 'days'] as const

export const violationsListCommand = answering({
  options: { '--all': 'also list acknowledged, reverted and resolved ones', ...filterOptions },
  details: `The stored value stays. Until you acknowledge a violation, each run that sees it ends with exit code 4 (a refusal: 6). If a later
answer no longer shows the difference, it is reverted. A third value is a new violation with a new id. Very many violations at once
are one incident.

Differences of registry records come from \`pitlake verify\`. They leave the list once the lake has adopted the provider's record.`,
  answer: async (call) => {
    using ledger = await Ledger.openToRead(call.settings.data)
    const all = await differing(call, ledger)
    const shown = call.options.all ? all : all.filter(isOpen)
    const states = Map.groupBy(all, statusOf)
    const count = (status: Status): number => states.get(status)?.length ?? 0
    const ended = (['reverted', 'resolved'] as const).filter((status) => count(status) > 0)
    const rest = (['acknowledged', ...ended] as const)
      .map((status) => `, ${formatCount(count(status))} ${status}`)
      .join('')
    const list = (): string => (shown.length > 0 ? table(header, shown.map(line)) : '')
    const words = () => `${list()}${formatCount(count('open'))} open${rest}\n`
    return { document: { violations: shown.map(differenceDocument) }, words }
  },
})

export const violationsAcknowledgeCommand = answering({
  viewsAfter: true,
  args: { '[id...]': 'ids of `pitlake violations list`' },
  options: {
    '--why TEXT': 'the reason, stored with it',
    ...filterOptions,
    '--yes': 'acknowledge what the other options select, not only count it',
  },
  details: `Name ids, or select open violations with --paths, --assets, --resources, --kinds and --days. Without --yes a selection is only
counted, by kind and day. If it has several kinds or days, name them with --kinds and --days.

Acknowledged violations are counted, and change no exit code. An acknowledged series that the provider refuses becomes unsupported.

Example: pitlake violations acknowledge 3f2a9c0d11e4 --why "restated by the exchange"`,
  answer: async (call) => {
    const { args, options, settings } = call
    requireLake(settings.data)
    const why = options.why?.trim() ?? ''
    if (why === '') throw usage('--why', { expected: 'the reason', got: 'nothing' })
    using ledger = await Ledger.open(settings.data)
    const chosen = await chosenBy(call, ledger)
    const groups = groupsOf(chosen ?? [])
    if (chosen !== null && !options.yes) {
      const none = { version: ledger.head().version, made: false, acknowledged: [], known: [], chosen: groups }
      const rows = groups.map((group) => [group.day, group.kind, formatCount(group.count)])
      const counted = rows.length === 0 ? '' : table(['day', 'kind', 'count'], rows)
      return { document: none, words: () => `${counted}nothing was acknowledged: run the same command with --yes\n` }
    }
    if (chosen !== null) refuseMixed(call, groups)
    const ids = chosen?.map(({ id }) => id) ?? args
    const deps = lakeWorld(call, 'violations acknowledge')
    const findings = await listFindings(ledger, null)
    const acknowledged = findings.map(
      ({ id, acknowledged_at }) => [id, { state: `${acceptedPrefix}${id}`, acknowledged_at }] as const,
    )
    const done = await acceptViolations(ledger, { ids, why }, deps, new Map(acknowledged))
    const before = done.known.length === 0 ? '' : `, ${done.known.length} had been before`
    return {
      document: done,
      words: () => `${done.acknowledged.length} acknowledged (version ${done.version})${before}\n`,
    }
  },
})

type Filtering = Call<typeof filterOptions>

/**
 * Lists the upstream differences that the flags select: flags of points alone leave the registry out, and the reverse.
 */
async function differing(call: Filtering, ledger: Ledger, whole = false): Promise<UpstreamDifference[]> {
  const { options, catalogue } = call
  const { paths = null, assets = null, resources: named, kinds: ofKinds, days } = options
  const ofPoints = paths !== null || assets !== null
  const points = named !== undefined && !ofPoints ? [] : listViolations(ledger, { paths, assets, whole })
  const names = named === undefined ? null : namesOf(named, [...catalogue.resources.keys()])
  const findings = named === undefined && ofPoints ? [] : await listFindings(ledger, names)
  return [...points, ...findings].filter(
    (difference) =>
      (ofKinds?.includes(difference.kind) ?? true) && (days?.includes(dayOf(difference.found_at)) ?? true),
  )
}

const dayOf = (at: Micros): string => formatMillis(at).slice(0, 10)

type Status = 'open' | 'acknowledged' | 'reverted' | 'resolved'

function statusOf(difference: UpstreamDifference): Status {
  if (difference.acknowledged_at !== null) return 'acknowledged'
  if ('resolved' in difference) return difference.resolved ? 'resolved' : 'open'
  return difference.reverted_at === null ? 'open' : 'reverted'
}

const isOpen = (difference: UpstreamDifference): boolean => statusOf(difference) === 'open'

/** Lists the differences that the filters select; null if ids are typed: one without the other. */
async function chosenBy(call: Filtering, ledger: Ledger): Promise<readonly UpstreamDifference[] | null> {
  const filtered = filterNames.some((name) => call.options[name] !== undefined)
  if (filtered !== call.args.length > 0) return filtered ? (await differing(call, ledger, true)).filter(isOpen) : null
  const expected = 'ids, or --paths, --assets, --resources, --kinds and --days'
  const got = filtered ? 'both' : 'neither'
  throw usage('pitlake violations acknowledge', { expected, got, next: 'see pitlake violations list' })
}

/** Number of differences of one kind that were found on one day. */
interface DifferenceGroup {
  readonly kind: string
  /** Day in UTC: `2026-03-02`. */
  readonly day: string
  readonly count: number
}

/** Groups differences by day and kind. */
function groupsOf(chosen: readonly UpstreamDifference[]): DifferenceGroup[] {
  const groups = Map.groupBy(chosen, (difference) => `${dayOf(difference.found_at)} ${difference.kind}`)
  const sorted = [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return sorted.flatMap(([, ofGroup]) =>
    ofGroup
      .slice(0, 1)
      .map((difference) => ({ kind: difference.kind, day: dayOf(difference.found_at), count: ofGroup.length })),
  )
}

/** Refuses differences of several kinds or days unless each is named: others must not be included by accident. */
function refuseMixed({ options }: Filtering, groups: readonly DifferenceGroup[]): void {
  const mixed = (['kind', 'day'] as const).flatMap((name) => {
    const all = [...new Set(groups.map((group) => group[name]))]
    return options[`${name}s`] === undefined && all.length > 1 ? [`--${name}s, of ${all.join(', ')}`] : []
  })
  if (mixed.length === 0) return
  const got = groups.map(({ day, kind, count }) => `${formatCount(count)} ${kind} of ${day}`).join(', ')
  const next = 'name those that you have looked at'
  throw usage('pitlake violations acknowledge --yes', { expected: mixed.join(' and '), got, next })
}

/**
 * Converts a violation to the names on which scripts depend; one of the registry has no series, and names its record.
 */
export function differenceDocument(difference: UpstreamDifference): object {
  const { id, kind, acknowledged_at, why } = difference
  const acknowledged = acknowledged_at === null ? null : formatMillis(acknowledged_at)
  const found_at = formatMillis(difference.found_at)
  const status = statusOf(difference)
  if ('record' in difference) {
    const { resource, record, detail, held: stored, offered, resolved } = difference
    const about = { resource, record, detail, found_at, resolved, status }
    return { id, ...noSeries, t: null, kind, stored, offered, acknowledged, why, ...about }
  }
  const { series, t, stored, offered, reverted_at, incident } = difference
  const about = {
    stored,
    offered,
    acknowledged,
    why,
    status,
    found_at,
    reverted: reverted_at && formatMillis(reverted_at),
  }
  if (incident === null) return { id, ...readableSeries(series), t: formatInstant(t), kind, ...about }
  const { series: among, ...facts } = incident
  const day = dayOf(difference.found_at)
  return { id, ...noSeries, t: null, kind, ...about, incident: { ...facts, day, series: among.length } }
}

const noSeries = { metric: null, asset: null, interval: null, currency: null, exchange: null, network: null }

const header = ['id', 'kind', 'series', 't', 'stored', 'offered', 'status']

function line(difference: UpstreamDifference): (string | null)[] {
  const { id, kind, why } = difference
  const status = statusOf(difference)
  const foundOn = dayOf(difference.found_at)
  const at =
    difference.acknowledged_at ?? ('reverted_at' in difference ? difference.reverted_at : null) ?? difference.found_at
  const state = `${status} ${status === 'open' ? 'since ' : ''}${dayOf(at)}${why === null ? '' : `: ${why}`}`
  if ('record' in difference) {
    const { resource, record, detail } = difference
    return [id, kind, `${resource} ${record}`, foundOn, null, detail, status === 'resolved' ? status : state]
  }
  const { series, t, stored, offered, incident } = difference
  if (incident === null) return [id, kind, series.replaceAll('|', ' ').trim(), formatInstant(t), stored, offered, state]
  const { endpoints, series: among, points, open, counts } = incident
  const where = `${formatCount(among.length)} series of ${several(endpoints.length, 'endpoint')}`
  const left = open === points || open === 0 ? '' : `, ${formatCount(open)} still`
  return [id, kind, where, foundOn, null, `${formatCounts(counts)}${left}`, state]
}
