import { join } from 'node:path'
import { exitCode, gravest } from '../../base/errors.ts'
import { day } from '../../base/time.ts'
import { explainThrown } from './frame.ts'
import { dueMerges, mergeDue, mergeVerdict } from '../../maintenance/upkeep/merge-jobs.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { makeVersionCurrent } from '../../query/views/current.ts'
import { redact } from '../../base/secrets.ts'
import { refuseMirror } from '../../lake/store/marker.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { givenKeys } from '../../catalog/settings.ts'
import { readContext } from '../cli/context.ts'
import { featuresCommand, summarizeFeatures } from './features.ts'
import { fetchCommand } from './fetch.ts'
import { headMade } from './head.ts'
import { keyGiven, keyVariable } from './head-check.ts'
import {
  type AnsweringSpec,
  type Call,
  type CommandAnswer,
  documentText,
  type OptionTable,
  type OptionValues,
  talking,
  unnamedOptions,
} from '../cli/spec.ts'
import { answerPlan, planCommand } from './plan.ts'
import { bytes, formatCount, several } from '../../base/figures.ts'
import { registrySyncCommand } from './registry.ts'
import { statusCommand } from './status.ts'
import { vacuumCommand } from './upkeep.ts'
import { usualBudget, verifyCommand } from './verify.ts'
import { lakeWorld, noProvider, providersOf, requireLake } from '../cli/world.ts'

/** Result of one step: a line without its name, and the document of the command behind it; null if it has none. */
type StepEnd = Readonly<{ code: number; line: string; report: unknown }>

/** Seconds for which superseded files are kept: a copy or a reader of an older version has that time. */
const vacuumKeep = 30 * day

/** Days in which the samples of verify reach every window once. */
const verifySpreadDays = 30

export const dailyCommand = talking({
  recorded: true,
  asks: true,
  viewsAfter: true,
  options: {
    '--dry-run': 'print what each step would do; request and write nothing',
    // Not an answer: each line is written when its step is done.
    '--json': 'one JSON document on stdout',
  },
  details: `The steps are fetch, registry sync, views, features (if declared), merge (if due), a sample of verify, head (if a key for it is set)
and the status page. Each step prints one line and runs even if an earlier one failed. vacuum is a step only with
\`daily: { vacuum: true }\` in pitlake.yaml; it keeps the files of the last 30 days.

verify compares every window and every record of the registry about once in ${verifySpreadDays} days. It spends at most ${usualBudget} credits
and 60 requests to the registry each day.
\`daily: { verify_budget: 50 }\` in pitlake.yaml lets it spend 50 of each every day.

If steps end with different exit codes, daily ends with the first of 4, 3, 1, 2, 6, 5, 7.

Example: 15 6 * * *  cd /srv/research && node_modules/.bin/pitlake daily`,
  run: async (typed, tell) => {
    const { dryRun: dry, json } = typed.options
    const call = await readContext(typed)
    const absent = absentIn(call)
    await refuseMirror(call.settings.data)
    const ended: ({ readonly step: string; readonly exit_code: number } & Omit<StepEnd, 'code'>)[] = []
    for (const step of steps(call, dry)) {
      const { code, line, report } = call.signal.aborted ? interrupted : await take(call, step, { dry, absent })
      ended.push({ step: step[0], exit_code: code, line, report })
      if (!json) call.stdout(`${step[0].padEnd(14)} ${code}  ${line}\n`)
    }
    const document = { exit_code: gravest(ended.map((step) => step.exit_code)), steps: ended }
    tell(document)
    if (json) call.stdout(documentText(document))
    return document.exit_code
  },
})

const interrupted: StepEnd = { code: 5, line: 'not begun: interrupted; run the same command again', report: null }

/** Lists the APIs that are neither set up nor in the lake, with the variable that is missing. */
function absentIn({ settings }: Call): ReadonlyMap<Api, string> {
  const providers = providersOf(settings.data)
  const missing = (['metrics', 'registry'] as const).filter(
    (api) => settings[api].url === null && settings[api].key === null && !providers.has(api),
  )
  // A lake of user files alone needs no provider.
  if (missing.length === 2 && !isBegun(settings.data)) throw noProvider('pitlake daily')
  return new Map(missing.map((api) => [api, `PITLAKE_${api.toUpperCase()}_URL`]))
}

/** Step: its name, the API that it contacts, what it would do in a dry run, and its work. */
type Step = readonly [name: string, api: Api | null, would: string | null, work: () => Promise<StepEnd>]
type Api = 'metrics' | 'registry'
/** Whether a run is dry, and the APIs that are absent with the variable that is missing. */
type DailyPlan = Readonly<{ dry: boolean; absent: ReadonlyMap<Api, string> }>

function steps(call: Call, dry: boolean): Step[] {
  const { settings } = call
  const page = join(settings.data, 'status.html')
  const key = call.env[keyVariable]
  // A consequence of a fetch is a separate step here.
  const withoutFeatures = { ...call, catalogue: { ...call.catalogue, features: new Map() } }
  const fetched = answerOf(withoutFeatures, fetchCommand, {}, ({ points_added, requests, version }) => {
    return `${several(points_added, 'point')} added with ${several(requests, 'request')}, version ${version}`
  })
  const planned = answerOf(call, { ...planCommand, answer: answerPlan }, {}, ({ requests, credits, points }) => {
    return (
      `would send ${several(requests, 'request')} for ${several(credits, 'credit')}, about ` + several(points, 'point')
    )
  })
  const synced = answerOf(withoutFeatures, registrySyncCommand, {}, ({ events, opened, updated, closed }) => {
    return (
      `${several(events, 'event')}: ${formatCount(opened)} opened, ${formatCount(updated)} updated, ` +
      `${formatCount(closed)} closed`
    )
  })
  const computed = answerOf(call, featuresCommand, {}, ({ features }) => summarizeFeatures(features))
  const { verifyBudget: budget } = settings.daily
  const verifyLimit = budget === undefined ? { spreadDays: verifySpreadDays } : { budget }
  const verified = answerOf(call, verifyCommand, verifyLimit, (report) => {
    if ('head' in report) return report.reason
    const { checked, windows, registry } = report
    const request =
      registry === null ? '' : `, ${several(registry.checks.verified, 'address', 'addresses')} of the registry`
    return (
      `${several(checked.files, 'file')} sound, ${several(windows.verified, 'window')}${request} compared, ` +
      'nothing differs'
    )
  })
  const paged = answerOf(call, statusCommand, { html: page }, ({ trust }) => `${page} written; trust: ${trust}`)
  const vacuuming = { keep: vacuumKeep, yes: !dry }
  const vacuumed = answerOf(call, vacuumCommand, vacuuming, ({ data, journal, exports }) => {
    return `${bytes(data.bytes + journal.bytes + exports.bytes)} ${dry ? 'would be freed' : 'freed'}`
  })
  return [
    ['fetch', 'metrics', null, dry ? planned : fetched],
    ['registry sync', 'registry', 'follow the change feed', synced],
    ['views', null, 'rebuild the views if the lake has a newer version', async () => viewed(call)],
    ...(call.catalogue.features.size === 0 ? [] : [['features', null, 'compute what is due', computed] as const]),
    ['merge', null, null, async () => (dry ? dueNow(call) : merged(call))],
    ['verify', null, `compare within ${budget ?? `at most ${usualBudget}`} credits`, verified],
    ...(key === undefined ? [] : [['head', null, 'write the head of the log', async () => headed(call)] as const]),
    ['status page', null, `write ${page}`, paged],
    ...(settings.daily.vacuum ? [['vacuum', null, null, vacuumed] as const] : []),
  ]
}

/** Runs a step. A failure is a line, too: the next step does not wait until it is read. */
async function take(call: Call, [, api, would, work]: Step, { dry, absent }: DailyPlan): Promise<StepEnd> {
  const variable = api === null ? undefined : absent.get(api)
  if (variable !== undefined) return { code: 0, line: `skipped: ${variable} is not set`, report: null }
  if (dry && would !== null) return { code: 0, line: `would ${would}`, report: null }
  try {
    return await work()
  } catch (thrown) {
    return await failed(call, thrown)
  }
}

async function failed({ settings, env }: Call, thrown: unknown, report: unknown = null): Promise<StepEnd> {
  const error = await explainThrown(thrown, 'daily', settings.data)
  const text = error instanceof Error ? error.message : String(error)
  return { code: exitCode(error), line: redact(text, givenKeys(env)).replaceAll('\n', '; '), report }
}

/** Runs the function behind a command; its document, or its complaint, becomes the line of a step. */
function answerOf<Table extends OptionTable, Said extends CommandAnswer>(
  call: Call,
  spec: AnsweringSpec<Table, Said>,
  named: Partial<OptionValues<Table>>,
  line: (report: Said['document']) => string,
): () => Promise<StepEnd> {
  const { config, data, memory, verbose } = call.options
  const stderr = (part: string): void => void ((verbose || part.startsWith('note: ')) && call.stderr(part))
  return async () => {
    const options = { ...unnamedOptions(spec), config, data, memory, verbose, ...named }
    const stepCall = { ...call, args: [], options, stderr, live: () => undefined, isTerminal: false }
    const { document, error = null, code = 0 } = await spec.answer(stepCall)
    // Also a run that ends with a complaint has its document by then.
    return error === null ? { code, line: line(document), report: document } : await failed(call, error, document)
  }
}

async function viewed(call: Call): Promise<StepEnd> {
  const { settings, catalogue } = call
  requireLake(settings.data)
  using ledger = await Ledger.open(settings.data)
  const built = await makeVersionCurrent(ledger, { catalogue, deps: lakeWorld(call, 'daily') })
  return { code: 0, line: `of version ${built.version}`, report: built }
}

async function merged(call: Call): Promise<StepEnd> {
  const { settings } = call
  requireLake(settings.data)
  const report = await mergeDue(settings.data, lakeWorld(call, 'daily'))
  const error = mergeVerdict(report)
  if (error !== null) throw error
  const { partitions, files_removed, files_added } = report
  const line = partitions === 0 ? 'nothing due' : `${several(files_removed, 'file')} became ${formatCount(files_added)}`
  return { code: 0, line, report }
}

async function headed(call: Call): Promise<StepEnd> {
  const { document } = await headMade(call, await keyGiven(call))
  return { code: 0, line: `of version ${document.version} in ${document.file ?? 'no file'}`, report: document }
}

async function dueNow(call: Call): Promise<StepEnd> {
  using ledger = await Ledger.openToRead(call.settings.data)
  const due = dueMerges(ledger)
  return { code: 0, line: due === 0 ? 'nothing due' : `would merge ${several(due, 'partition')}`, report: null }
}
