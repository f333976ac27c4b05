import { join } from 'node:path'
import { exitCode, gravest } from '../errors.ts'
import { explained } from './explained.ts'
import { dueMerges, mergeDue, mergeVerdict } from '../upkeep/compact.ts'
import type { RunEnd } from '../ledger/job.ts'
import { Ledger } from '../ledger/ledger.ts'
import { buildViews } from '../views/build.ts'
import { redact } from '../secrets/secrets.ts'
import { refuseMirror } from '../store/marker.ts'
import { givenKeys } from '../config/settings.ts'
import { readContext } from './context.ts'
import { fetchCommand } from './fetch.ts'
import { parseCommand } from './parse.ts'
import { answerPlan, planCommand } from './plan.ts'
import { bytes, whole } from '../words/figures.ts'
import { syncCommand } from './registry.ts'
import {
  type CommandAnswer,
  type AnsweringSpec,
  type CommandContext,
  type Deps,
  type Input,
  documentText,
  type OptionTable,
  talking,
} from './spec.ts'
import { statusCommand } from './status.ts'
import { vacuumCommand } from './vacuum.ts'
import { usualBudget, verifyCommand } from './verify.ts'
import { lakeWorld, noProvider, providersOf, requireLake } from './world.ts'

/** What became of one step. */
interface StepEnd {
  readonly code: number
  /** One line without the step's name. */
  readonly line: string
  /** The document of the command behind it; null where it has none. */
  readonly report: unknown
}

/** What the steps work with. */
interface Day {
  readonly input: Input
  readonly deps: Deps
  readonly dry: boolean
  readonly context: CommandContext
  /** APIs that are neither set up nor in the lake, with the variable that is missing. */
  readonly absent: ReadonlyMap<'metrics' | 'registry', string>
}

/** Superseded files are kept for so long: whoever copies or reads an older version has that time. */
const vacuumKeep = '30d'

/** `daily`: what cron calls. */
export const dailyCommand = talking({
  name: 'daily',
  ends: [3, 4, 5, 6, 7],
  recorded: true,
  asks: true,
  options: {
    '--dry-run': 'say what each step would do; asks nobody, writes nothing',
    // Not an answer: each line is said when its step is done.
    '--json': 'one JSON document on stdout',
  },
  details: `Each step runs whatever the others said and gives one line. Vacuum is a step only with daily.vacuum: true in
pitlake.yaml; it keeps 30 days. Of several exit codes the first in the order 4, 3, 1, 2, 6, 5, 7, 0 is that of the run.`,
  run: async (input, deps, tell) => {
    const day = await begin(input, input.options.dryRun, deps)
    await refuseMirror(day.context.settings.data)
    const told: (StepEnd & { step: string })[] = []
    const scripted = input.options.json
    for (const one of steps(day)) {
      const [step] = one
      const done = deps.signal.aborted ? interrupted : await take(day, one)
      told.push({ step, ...done })
      if (!scripted) deps.stdout(`${step.padEnd(14)} ${done.code}  ${done.line}\n`)
    }
    const code = gravest(told.map((one) => one.code))
    const list = told.map((one) => ({ step: one.step, exit_code: one.code, line: one.line, report: one.report }))
    const document = { exit_code: code, steps: list }
    tell(document)
    if (scripted) deps.stdout(documentText(document))
    return code
  },
})

const interrupted: StepEnd = { code: 5, line: 'not begun: interrupted; run the same command again', report: null }

async function begin(input: Input, dry: boolean, deps: Deps): Promise<Day> {
  const context = await readContext(input, deps)
  const { settings } = context
  const known = providersOf(settings.data)
  const missing = (['metrics', 'registry'] as const).filter(
    (api) => settings[api].url === null && settings[api].key === null && !known.has(api),
  )
  const absent = new Map(missing.map((api) => [api, `PITLAKE_${api.toUpperCase()}_URL`] as const))
  if (absent.size === 2) throw noProvider('pitlake daily')
  return { input, deps, dry, context, absent }
}

/** A step: its name, the API that it asks, what it would do where it only says so, and its work. */
type Step = readonly [
  name: string,
  api: 'metrics' | 'registry' | null,
  would: string | null,
  work: () => Promise<StepEnd>,
]

function steps(day: Day): Step[] {
  const { context, dry } = day
  const page = join(context.settings.data, 'status.html')
  const fetched = async (): Promise<StepEnd> =>
    command(day, fetchCommand, [], ({ points_added, requests, version }) => {
      return `${whole(points_added)} points added with ${whole(requests)} requests, version ${version}`
    })
  const planned = async (): Promise<StepEnd> =>
    command(day, { ...planCommand, answer: answerPlan }, [], ({ requests, credits, points }) => {
      return `would send ${whole(requests)} requests for ${whole(credits)} credits, about ${whole(points)} points`
    })
  const synced = async (): Promise<StepEnd> =>
    command(day, syncCommand, [], ({ events, opened, updated, closed }) => {
      return `${whole(events)} events: ${whole(opened)} opened, ${whole(updated)} updated, ${whole(closed)} closed`
    })
  const verified = async (): Promise<StepEnd> =>
    command(day, verifyCommand, [], ({ checked, windows, registry }) => {
      const asked = registry === null ? '' : `, ${whole(registry.checks.verified)} addresses of the registry`
      return `${whole(checked.files)} files sound, ${whole(windows.verified)} windows${asked} compared, nothing differs`
    })
  const paged = async (): Promise<StepEnd> =>
    command(day, statusCommand, ['--html', page], ({ trust }) => `${page} written; trust: ${trust}`)
  const vacuumed = async (): Promise<StepEnd> =>
    command(day, vacuumCommand, ['--keep', vacuumKeep, ...(dry ? [] : ['--yes'])], ({ data, journal, exports }) => {
      return `${bytes(data.bytes + journal.bytes + exports.bytes)} ${dry ? 'would be freed' : 'freed'}`
    })
  return [
    ['fetch', 'metrics', null, dry ? planned : fetched],
    ['registry sync', 'registry', 'follow the change feed', synced],
    ['views', null, 'be made anew where the lake has moved on', async () => viewed(day)],
    ['merge', null, null, async () => merged(day)],
    ['verify', null, `compare within ${usualBudget} credits`, verified],
    ['status page', null, `write ${page}`, paged],
    ...(context.settings.daily.vacuum ? [['vacuum', null, null, vacuumed] as const] : []),
  ]
}

async function take({ absent, dry }: Day, [, api, would, work]: Step): Promise<StepEnd> {
  const variable = api === null ? undefined : absent.get(api)
  if (variable !== undefined) return { code: 0, line: `skipped: ${variable} is not set`, report: null }
  return dry && would !== null ? { code: 0, line: `would ${would}`, report: null } : await work()
}

/** Has a command answer as if it had been typed with these flags; its document, or its complaint, becomes the line. */
async function command<Table extends OptionTable, Said extends CommandAnswer>(
  day: Day,
  spec: AnsweringSpec<Table, Said>,
  flags: readonly string[],
  line: (report: Said['document']) => string,
): Promise<StepEnd> {
  const { input, deps } = day
  const { config, data, verbose } = input.options
  const own: Deps = {
    ...deps,
    stderr: (part) => void ((verbose || part.startsWith('note: ')) && deps.stderr(part)),
    live: () => undefined,
    isTerminal: false,
  }
  const same = Object.entries({ config, data }).flatMap(([name, value]) => (value ? [`--${name}=${value}`] : []))
  let report: unknown = null
  const told = await attempt(day, async () => {
    const typed = parseCommand(spec, [...same, ...(verbose ? ['--verbose'] : []), ...flags])
    const { document, error = null, code = 0 } = await spec.answer(typed, day.context, own)
    // Also a run that ends with a complaint has its document by then.
    report = document
    if (error !== null) throw error
    return { code, line: line(document), report }
  })
  return { ...told, report }
}

async function viewed(day: Day): Promise<StepEnd> {
  const { context, deps } = day
  const { settings, catalogue } = context
  return await attempt(day, async () => {
    requireLake(settings.data)
    using ledger = await Ledger.open(settings.data)
    const built = await buildViews(ledger, { catalogue, deps: lakeWorld(deps, 'daily') })
    return { code: 0, line: `of version ${built.version}`, report: built }
  })
}

async function merged(day: Day): Promise<StepEnd> {
  const { context, deps, dry } = day
  const root = context.settings.data
  if (dry) return await attempt(day, async () => dueNow(root))
  return await attempt(day, async () => {
    requireLake(root)
    const world = lakeWorld(deps, 'daily')
    const atEnd = async ({ ledger, commits }: RunEnd): Promise<void> => {
      if (commits > 0) await buildViews(ledger, { catalogue: context.catalogue, deps: world })
    }
    const done = await mergeDue(root, { ...world, atEnd })
    const error = mergeVerdict(done)
    if (error !== null) throw error
    const line =
      done.partitions === 0 ? 'nothing due' : `${whole(done.files_removed)} files became ${whole(done.files_added)}`
    return { code: 0, line, report: done }
  })
}

async function dueNow(root: string): Promise<StepEnd> {
  using ledger = await Ledger.openToRead(root)
  const due = dueMerges(ledger)
  return { code: 0, line: due === 0 ? 'nothing due' : `would merge ${whole(due)} partitions`, report: null }
}

/** A failure is a line, too: the next step does not wait for anybody to read it. */
async function attempt({ deps, context }: Day, work: () => Promise<StepEnd>): Promise<StepEnd> {
  try {
    return await work()
  } catch (thrown) {
    const error = await explained(thrown, 'daily', context.settings.data)
    const text = error instanceof Error ? error.message : String(error)
    return { code: exitCode(error), line: redact(text, givenKeys(deps.env)).replaceAll('\n', '; '), report: null }
  }
}
