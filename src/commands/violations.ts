import type { Catalogue } from '../catalog/catalogue.ts'
import { readableSeries } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { acceptViolations, type ListedFilter, listViolations } from '../ledger/violations.ts'
import { Ledger } from '../ledger/ledger.ts'
import { acceptedPrefix, isOpenFinding, listFindings } from '../registry/accepted.ts'
import type { Differing } from '../report/alarms.ts'
import { formatInstant, formatMillis } from '../time.ts'
import { buildViews } from '../views/build.ts'
import { kinds } from '../kinds.ts'
import { readContext } from './context.ts'
import { number, table } from './print.ts'
import { type CommandSpec, flagOption, type Input, listOption, type OptionSpec, textOption } from './spec.ts'
import { namesOf } from './verify.ts'
import { lakeWorld, requireLake } from './world.ts'

const filterOptions: readonly OptionSpec[] = [
  { flags: '--resources LIST', about: "only what the registry contradicts: these resources, by comma, or '*'" },
  { flags: '--paths LIST', kind: kinds.list('metrics'), about: 'only these endpoints, by comma, `*` as a glob' },
  { flags: '--assets LIST', kind: kinds.list('assets'), about: 'only these assets, by comma, `*` as a glob' },
]

/** `violations list`: what differs upstream. */
export const listCommand: CommandSpec = {
  name: 'violations list',
  ends: [4],
  options: [
    { flags: '--all', about: 'also those that were accepted, and those that a snapshot has settled' },
    ...filterOptions,
  ],
  details:
    'The stored value holds whatever is offered. Until it is accepted, each run that sees it ends with exit code 4\n(a refusal: 6). The id includes the offered value: a third value is a violation of its own. Records of the registry\nare those that `pitlake verify` found; once the lake has taken over what it offers they are settled.',
  answer: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    using ledger = await Ledger.openToRead(settings.data)
    const all = await differing(input, ledger, catalogue)
    const shown = flagOption(input, 'all') ? all : all.filter(isOpen)
    const accepted = all.filter(({ accepted_at }) => accepted_at !== null).length
    const settled = all.filter((one) => one.accepted_at === null && !isOpen(one)).length
    const words = (): string => {
      const list = shown.length > 0 ? table(header, shown.map(line)) : ''
      const more = settled === 0 ? '' : `, ${number(settled)} settled`
      return `${list}${number(all.length - accepted - settled)} not accepted, ${number(accepted)} accepted${more}\n`
    }
    return { document: { violations: shown.map(scripted) }, words }
  },
}

/** `violations accept ID…`: a person took note. */
export const acceptCommand: CommandSpec = {
  name: 'violations accept',
  ends: [4, 6, 7],
  args: [{ name: 'id', about: 'ids of `pitlake violations list`', many: true }],
  options: [{ flags: '--why TEXT', about: 'the reason, for whoever asks later' }, ...filterOptions],
  details:
    'With --paths, --assets or --resources instead of ids everything that they choose and nobody has accepted. What is\naccepted is counted and no longer an alarm; a refused series becomes unsupported (withdrawn).',
  answer: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    requireLake(settings.data)
    const why = textOption(input, 'why')?.trim() ?? ''
    if (why === '') throw usage('--why', { expected: 'the reason', got: 'nothing' })
    using ledger = await Ledger.open(settings.data)
    const ids = await idsOf(input, ledger, catalogue)
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
}

/** What differs upstream and the flags choose: those of points alone leave the registry out, and the reverse. */
async function differing(input: Input, ledger: Ledger, { resources }: Catalogue): Promise<Differing[]> {
  const filter = filterOf(input)
  const named = listOption(input, 'resources')
  const ofPoints = filter.paths !== null || filter.assets !== null
  const points = named !== undefined && !ofPoints ? [] : listViolations(ledger, filter)
  if (named === undefined && ofPoints) return points
  const findings = await listFindings(ledger, named === undefined ? null : namesOf(named, [...resources.keys()]))
  return [...points, ...findings]
}

/** Whether there is something to look at. */
function isOpen(one: Differing): boolean {
  return 'settled' in one ? isOpenFinding(one) : one.accepted_at === null
}

function filterOf(input: Input): ListedFilter {
  return { paths: listOption(input, 'paths') ?? null, assets: listOption(input, 'assets') ?? null }
}

/** The ids typed, or those that the filters choose; one without the other. */
async function idsOf(input: Input, ledger: Ledger, catalogue: Catalogue): Promise<readonly string[]> {
  const filtered = ['paths', 'assets', 'resources'].some((name) => listOption(input, name) !== undefined)
  if (filtered === input.args.length > 0) {
    const got = filtered ? 'both' : 'neither'
    throw usage('pitlake violations accept', {
      expected: 'ids, or --paths, --assets and --resources',
      got,
      next: 'see pitlake violations list',
    })
  }
  if (!filtered) return input.args
  return (await differing(input, ledger, catalogue)).filter(isOpen).map(({ id }) => id)
}

/** A violation under the names that scripts rely on; one of the registry has no series, and says which record it is. */
export function scripted(one: Differing): object {
  const { id, kind, accepted_at, why } = one
  const accepted = accepted_at === null ? null : formatMillis(accepted_at)
  if ('record' in one) {
    const { resource, record, detail, held: stored, offered, found_at, settled } = one
    const about = { resource, record, detail, found_at: formatMillis(found_at), settled }
    return { id, ...noSeries, t: null, kind, stored, offered, accepted, why, ...about }
  }
  const { series, t, stored, offered } = one
  return { id, ...readableSeries(series), t: formatInstant(t), kind, stored, offered, accepted, why }
}

const noSeries = { metric: null, asset: null, interval: null, currency: null, exchange: null, network: null }

const header = ['id', 'kind', 'series', 't', 'stored', 'offered', 'accepted']

function line(one: Differing): (string | null)[] {
  const { id, kind, accepted_at, why } = one
  const accepted = accepted_at === null ? null : `${formatMillis(accepted_at).slice(0, 10)}: ${why}`
  if ('record' in one) {
    const state = accepted ?? (one.settled ? 'settled' : null)
    return [id, kind, `${one.resource} ${one.record}`, formatMillis(one.found_at).slice(0, 10), null, one.detail, state]
  }
  const { series, t, stored, offered } = one
  return [id, kind, series.replaceAll('|', ' ').trim(), formatInstant(t), stored, offered, accepted]
}
