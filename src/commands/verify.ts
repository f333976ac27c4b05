import { resolve } from 'node:path'
import { usage } from '../errors.ts'
import { verify, type VerifySummary, verifyVerdict } from '../upkeep/verify.ts'
import { outFile, putOut } from '../store/output.ts'
import { visibleLines } from '../visible.ts'
import { countOption, isVerbose, rangeOption, readContext } from './context.ts'
import { fetchProgress } from './progress.ts'
import { type AnsweringSpec, flagOption, type Input, listOption, textOption } from './spec.ts'
import { reportOf, toldOf } from './verify-report.ts'
import { askingWorld, requireLake } from './world.ts'

/** The most credits that a verify spends unless it is told otherwise. */
export const usualBudget = 300

/** `verify`: proves the files and asks the provider again for history that the lake holds. */
export const verifyCommand: AnsweringSpec<VerifySummary> = {
  name: 'verify',
  ends: [3, 4, 5, 6, 7],
  recorded: true,
  asks: true,
  summary: 'Ask again for history that the lake holds, compare bit for bit, and prove every file.',
  options: [
    { flags: '--all', about: 'everything that the lake holds, whatever it costs' },
    { flags: '--budget CREDITS', about: `the most credits to spend (default: ${usualBudget})` },
    { flags: '--paths LIST', about: 'only these endpoints, by comma, `*` as a glob' },
    { flags: '--assets LIST', about: 'only these assets, by comma, `*` as a glob' },
    { flags: '--since TIME', about: 'first t to compare, a date or an instant, UTC' },
    { flags: '--until TIME', about: 'end of the range of t, exclusive' },
    { flags: '--max-requests N', about: 'stop after so many requests' },
    { flags: '--report FILE', about: 'write a report for the provider, as Markdown' },
  ],
  details: `Windows come from all endpoints in turn, never verified or longest ago first. What differs is put on record and never
applied. Exit code 4: something differs or is damaged; 5: stopped early, the same command goes on; 6: windows failed.`,
  answer: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    requireLake(settings.data)
    const given = countOption(input, 'budget')
    const all = flagOption(input, 'all')
    if (all && given !== undefined) throw usage('--all', { expected: 'no --budget beside it', next: 'leave one out' })
    const scope = scopeOf(input)
    const report = textOption(input, 'report')
    // Said before anything is asked, not after it was paid for.
    if (report !== undefined) outFile(resolve(deps.cwd, report), settings.data, '--report').discard()
    const maxRequests = countOption(input, 'maxRequests') ?? null
    const verbose = isVerbose(input, deps)
    const progress = fetchProgress(deps, { verbose })
    deps.stderr('reading every file of the lake\n')
    const now = Math.floor(deps.now() / 1000)
    const summary = await verify(
      {
        settings,
        catalogue,
        now,
        scope,
        budget: all ? null : (given ?? usualBudget),
        maxRequests,
        providerMoved: false,
      },
      { ...askingWorld(deps, 'verify', catalogue), onEvent: progress.onEvent, detailedLog: verbose },
    ).finally(progress.end)
    if (report !== undefined)
      await putOut(resolve(deps.cwd, report), visibleLines(reportOf(summary)), settings.data, '--report')
    return { document: summary, words: () => toldOf(summary), error: verifyVerdict(summary) }
  },
}

function scopeOf(input: Input) {
  const { since = null, until = null } = rangeOption(input)
  return { paths: listOption(input, 'paths') ?? null, assets: listOption(input, 'assets') ?? null, since, until }
}
