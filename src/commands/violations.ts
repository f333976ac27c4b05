import type { Catalogue } from '../catalog/catalogue.ts'
import { readableSeries } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { acceptViolations, isOpenViolation, listViolations } from '../ledger/violations.ts'
import { Ledger } from '../ledger/ledger.ts'
import { acceptedPrefix, isOpenFinding, listFindings } from '../registry/accepted.ts'
import type { UpstreamDifference } from '../report/alarms.ts'
import { formatInstant, formatMillis, type Micros } from '../time.ts'
import { buildViews } from '../views/build.ts'
import { kinds } from '../kinds.ts'
import { whole } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { answering, type Input } from './spec.ts'
import { namesOf } from './verify.ts'
import { lakeWorld, requireLake } from './world.ts'

const filterOptions = {
  '--resources LIST': {
    kind: kinds.list('resources'),
    about: "only what the registry contradicts: these resources, by comma, or '*'",
  },
  '--paths LIST': { kind: kinds.list('metrics'), about: 'only these endpoints, by comma, `*` as a glob' },
  '--assets LIST': { kind: kinds.list('assets'), about: 'only these assets, by comma, `*` as a glob' },
  '--kinds LIST': 'only these kinds, by comma: changed, vanished, incident, refused …',
  '--days LIST': 'only what was found on these days (UTC), by comma: 2026-03-02',
}

/** `violations list`: what differs upstream. */
export const listViolationsCommand = answering({
  name: 'violations list',
  ends: [4],
  options: { '--all': 'also what was accepted, what passed, and what a snapshot has settled', ...filterOptions },
  details:
    'The stored value holds whatever is offered. Until it is accepted, each run that sees it ends with exit code 4\n(a refusal: 6). What a later answer no longer shows has passed. The id includes the offered value: a third value is a\nviolation of its own. Very many at once are one incident. Records of the registry are those that `pitlake verify` found; once\nthe lake has taken over what it offers they are settled.',
  answer: async (input, { settings, catalogue }) => {
    using ledger = await Ledger.openToRead(settings.data)
    const all = await differing(input, ledger, catalogue)
    const shown = input.options.all ? all : all.filter(isOpen)
    const states = Map.groupBy(all, statusOf)
    const count = (status: Status): number => states.get(status)?.length ?? 0
    const words = (): string => {
      const list = shown.length > 0 ? table(header, shown.map(line)) : ''
      const more = (['passed', 'settled'] as const).flatMap((one) =>
        count(one) === 0 ? [] : [`, ${whole(count(one))} ${one}`],
      )
      return `${list}${whole(count('open'))} not accepted, ${whole(count('accepted'))} accepted${more.join('')}\n`
    }
    return { document: { violations: shown.map(scripted) }, words }
  },
})

/** `violations accept ID…`: a person took note. */
export const acceptViolationsCommand = answering({
  name: 'violations accept',
  ends: [4, 6, 7],
  args: [{ name: 'id', about: 'ids of `pitlake violations list`', many: true }],
  options: {
    '--why TEXT': 'the reason, for whoever asks later',
    ...filterOptions,
    '--yes': 'really accept what --paths, --assets, --resources, --kinds and --days choose',
  },
  details:
    'With --paths, --assets, --resources, --kinds or --days instead of ids what they choose and nobody has accepted: without --yes\nit is only counted by kind and day. Of several kinds or days those are taken that --kinds and --days name. What is\naccepted is counted and no longer an alarm; a refused series becomes unsupported (withdrawn).',
  answer: async (input, { settings, catalogue }, deps) => {
    requireLake(settings.data)
    const why = input.options.why?.trim() ?? ''
    if (why === '') throw usage('--why', { expected: 'the reason', got: 'nothing' })
    using ledger = await Ledger.open(settings.data)
    const chosen = await chosenBy(input, ledger, catalogue)
    const groups = groupsOf(chosen ?? [])
    if (chosen !== null && !input.options.yes) {
      const none = { version: ledger.head().version, made: false, accepted: [], known: [], chosen: groups }
      const words = (): string => `${countedWords(groups)}nothing was accepted: the same with --yes does\n`
      return { document: none, words }
    }
    if (chosen !== null) refuseMixed(input, groups)
    const ids = chosen?.map(({ id }) => id) ?? input.args
    const world = lakeWorld(deps, 'violations accept')
    const findings = await listFindings(ledger, null)
    const elsewhere = new Map(
      findings.map(({ id, accepted_at }) => [id, { state: `${acceptedPrefix}${id}`, accepted_at }]),
    )
    const done = await acceptViolations(ledger, { ids, why }, world, elsewhere)
    if (done.made) await buildViews(ledger, { catalogue, deps: world })
    const before = done.known.length === 0 ? '' : `, ${done.known.length} had been before`
    return { document: done, words: () => `${done.accepted.length} accepted (version ${done.version})${before}\n` }
  },
})

/** What differs upstream and the flags choose: those of points alone leave the registry out, and the reverse. */
async function differing(
  { options }: Input<typeof filterOptions>,
  ledger: Ledger,
  catalogue: Catalogue,
  whole = false,
): Promise<UpstreamDifference[]> {
  const { paths = null, assets = null, resources: named, kinds: ofKinds, days } = options
  const filter = { paths, assets, whole }
  const ofPoints = filter.paths !== null || filter.assets !== null
  const points = named !== undefined && !ofPoints ? [] : listViolations(ledger, filter)
  const findings =
    named === undefined && ofPoints
      ? []
      : await listFindings(ledger, named === undefined ? null : namesOf(named, [...catalogue.resources.keys()]))
  return [...points, ...findings].filter(
    (one) => (ofKinds?.includes(one.kind) ?? true) && (days?.includes(dayOf(one.found_at)) ?? true),
  )
}

const dayOf = (at: Micros): string => formatMillis(at).slice(0, 10)

type Status = 'open' | 'accepted' | 'passed' | 'settled'

function statusOf(one: UpstreamDifference): Status {
  if (one.accepted_at !== null) return 'accepted'
  if ('settled' in one) return one.settled ? 'settled' : 'open'
  return one.passed_at === null ? 'open' : 'passed'
}

/** Whether there is something to look at. */
function isOpen(one: UpstreamDifference): boolean {
  return 'settled' in one ? isOpenFinding(one) : isOpenViolation(one)
}

/** What the filters choose; null where ids are typed: one without the other. */
async function chosenBy(
  input: Input<typeof filterOptions>,
  ledger: Ledger,
  catalogue: Catalogue,
): Promise<readonly UpstreamDifference[] | null> {
  const { paths, assets, resources, kinds: ofKinds, days } = input.options
  const filtered = [paths, assets, resources, ofKinds, days].some((list) => list !== undefined)
  if (filtered === input.args.length > 0) {
    const got = filtered ? 'both' : 'neither'
    throw usage('pitlake violations accept', {
      expected: 'ids, or --paths, --assets, --resources, --kinds and --days',
      got,
      next: 'see pitlake violations list',
    })
  }
  return filtered ? (await differing(input, ledger, catalogue, true)).filter(isOpen) : null
}

interface Group {
  readonly kind: string
  /** On which it was found, UTC. */
  readonly day: string
  readonly count: number
}

function groupsOf(chosen: readonly UpstreamDifference[]): Group[] {
  const groups = Map.groupBy(chosen, (one) => `${dayOf(one.found_at)} ${one.kind}`)
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, own]) => {
      const [day = '', kind = ''] = name.split(' ')
      return { kind, day, count: own.length }
    })
}

function countedWords(groups: readonly Group[]): string {
  return groups.length === 0
    ? ''
    : table(
        ['day', 'kind', 'count'],
        groups.map((one) => [one.day, one.kind, whole(one.count)]),
      )
}

/** What another kind or another day found is not taken along unless it is named. */
function refuseMixed({ options }: Input<typeof filterOptions>, groups: readonly Group[]): void {
  const several = (['kind', 'day'] as const).filter(
    (name) => options[`${name}s`] === undefined && new Set(groups.map((one) => one[name])).size > 1,
  )
  if (several.length === 0) return
  throw usage('pitlake violations accept --yes', {
    expected: several
      .map((name) => `--${name}s, of ${[...new Set(groups.map((one) => one[name]))].join(', ')}`)
      .join(' and '),
    got: groups.map(({ day, kind, count }) => `${whole(count)} ${kind} of ${day}`).join(', '),
    next: 'name those that you have looked at',
  })
}

/** A violation under the names that scripts rely on; one of the registry has no series, and says which record it is. */
export function scripted(one: UpstreamDifference): object {
  const { id, kind, accepted_at, why } = one
  const accepted = accepted_at === null ? null : formatMillis(accepted_at)
  const found_at = formatMillis(one.found_at)
  const status = statusOf(one)
  if ('record' in one) {
    const { resource, record, detail, held: stored, offered, settled } = one
    const about = { resource, record, detail, found_at, settled, status }
    return { id, ...noSeries, t: null, kind, stored, offered, accepted, why, ...about }
  }
  const { series, t, stored, offered, passed_at, incident } = one
  const about = { stored, offered, accepted, why, status, found_at, passed: passed_at && formatMillis(passed_at) }
  if (incident === null) return { id, ...readableSeries(series), t: formatInstant(t), kind, ...about }
  const { series: among, ...facts } = incident
  const day = dayOf(one.found_at)
  return { id, ...noSeries, t: null, kind, ...about, incident: { ...facts, day, series: among.length } }
}

const noSeries = { metric: null, asset: null, interval: null, currency: null, exchange: null, network: null }

const header = ['id', 'kind', 'series', 't', 'stored', 'offered', 'status']

function line(one: UpstreamDifference): (string | null)[] {
  const { id, kind, why } = one
  const status = statusOf(one)
  const at = one.accepted_at ?? ('passed_at' in one ? one.passed_at : null) ?? one.found_at
  const state = `${status} ${status === 'open' ? 'since ' : ''}${dayOf(at)}${why === null ? '' : `: ${why}`}`
  if ('record' in one)
    return [
      id,
      kind,
      `${one.resource} ${one.record}`,
      dayOf(one.found_at),
      null,
      one.detail,
      status === 'settled' ? status : state,
    ]
  const { series, t, stored, offered, incident } = one
  if (incident === null) return [id, kind, series.replaceAll('|', ' ').trim(), formatInstant(t), stored, offered, state]
  const { endpoints, series: among, points, open, counts } = incident
  const where = `${whole(among.length)} series of ${whole(endpoints.length)} endpoints`
  const what = Object.entries(counts).map(([name, own]) => `${whole(own)} ${name}`)
  const left = open === points || open === 0 ? '' : `, ${whole(open)} still`
  return [id, kind, where, dayOf(one.found_at), null, `${what.join(', ')}${left}`, state]
}
