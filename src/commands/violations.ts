import { readableSeries } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { acceptViolations, type Listed, type ListedFilter, listViolations } from '../ledger/violations.ts'
import { Ledger } from '../ledger/ledger.ts'
import { formatInstant } from '../time.ts'
import { buildViews } from '../views/build.ts'
import { readContext } from './context.ts'
import { number, table } from './print.ts'
import { type CommandSpec, flagOption, type Input, listOption, type OptionSpec, textOption } from './spec.ts'
import { lakeWorld, requireLake } from './world.ts'

const filterOptions: readonly OptionSpec[] = [
  { flags: '--paths LIST', about: 'only these endpoints, by comma, `*` as a glob' },
  { flags: '--assets LIST', about: 'only these assets, by comma, `*` as a glob' },
]

/** `violations list`: what differs upstream. */
export const listCommand: CommandSpec = {
  name: 'violations list',
  ends: [4],
  summary: 'List stored values that differ upstream, and series with points that are refused.',
  options: [{ flags: '--all', about: 'also those that were accepted' }, ...filterOptions],
  details:
    'The stored value holds whatever is offered. Until it is accepted, each run that sees it ends with exit code 4\n(a refusal: 6). The id includes the offered value: a third value is a violation of its own.',
  answer: async (input, deps) => {
    const { settings } = readContext(input, deps)
    using ledger = await Ledger.openToRead(settings.data)
    const all = listViolations(ledger, filterOf(input))
    const shown = flagOption(input, 'all') ? all : all.filter(({ accepted_at }) => accepted_at === null)
    const accepted = all.filter(({ accepted_at }) => accepted_at !== null).length
    const words = (): string => {
      const list = shown.length > 0 ? table(header, shown.map(line)) : ''
      return `${list}${number(all.length - accepted)} not accepted, ${number(accepted)} accepted\n`
    }
    return { document: { violations: shown.map(scripted) }, words }
  },
}

/** `violations accept ID…`: a person took note. */
export const acceptCommand: CommandSpec = {
  name: 'violations accept',
  ends: [4, 6, 7],
  summary: 'Take note of what differs upstream, with the reason: a dated version that changes no data.',
  args: [{ name: 'id', about: 'ids of `pitlake violations list`', many: true }],
  options: [{ flags: '--why TEXT', about: 'the reason, for whoever asks later' }, ...filterOptions],
  details:
    'With --paths or --assets instead of ids everything that they choose and nobody has accepted. What is accepted is\ncounted and no longer an alarm; a refused series becomes unsupported (withdrawn).',
  answer: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    requireLake(settings.data)
    const why = textOption(input, 'why')?.trim() ?? ''
    if (why === '') throw usage('--why', { expected: 'the reason', got: 'nothing' })
    using ledger = await Ledger.open(settings.data)
    const ids = idsOf(input, ledger)
    const world = lakeWorld(deps, 'violations accept')
    const done = await acceptViolations(ledger, { ids, why }, world)
    if (done.made) await buildViews(ledger, { catalogue, deps: world })
    const before = done.known.length === 0 ? '' : `, ${done.known.length} had been before`
    return { document: done, words: () => `${done.accepted.length} accepted (version ${done.version})${before}\n` }
  },
}

function filterOf(input: Input): ListedFilter {
  return { paths: listOption(input, 'paths') ?? null, assets: listOption(input, 'assets') ?? null }
}

/** The ids typed, or those that the filters choose; one without the other. */
function idsOf(input: Input, ledger: Ledger): readonly string[] {
  const filter = filterOf(input)
  const filtered = filter.paths !== null || filter.assets !== null
  if (filtered === input.args.length > 0) {
    const got = filtered ? 'both' : 'neither'
    throw usage('pitlake violations accept', {
      expected: 'ids, or --paths and --assets',
      got,
      next: 'see pitlake violations list',
    })
  }
  if (!filtered) return input.args
  const open = listViolations(ledger, filter).filter(({ accepted_at }) => accepted_at === null)
  return open.map(({ id }) => id)
}

/** A violation under the names that scripts rely on. */
export function scripted({ id, series, t, kind, stored, offered, accepted_at, why }: Listed): object {
  const accepted = accepted_at === null ? null : new Date(accepted_at / 1000).toISOString()
  return { id, ...readableSeries(series), t: formatInstant(t), kind, stored, offered, accepted, why }
}

const header = ['id', 'kind', 'series', 't', 'stored', 'offered', 'accepted']

function line({ id, series, t, kind, stored, offered, accepted_at, why }: Listed): (string | null)[] {
  const accepted = accepted_at === null ? null : `${new Date(accepted_at / 1000).toISOString().slice(0, 10)}: ${why}`
  return [id, kind, series.replaceAll('|', ' ').trim(), formatInstant(t), stored, offered, accepted]
}
