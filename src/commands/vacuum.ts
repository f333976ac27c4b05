import { vacuum, type VacuumDeps, type VacuumSummary } from '../upkeep/vacuum.ts'
import { buildViews } from '../views/build.ts'
import { formatDuration } from '../time.ts'
import { openedLake, viewingWorld } from './world.ts'
import { bytes, filesInWords } from '../words/figures.ts'
import { labelled } from '../words/table.ts'
import { answering } from './spec.ts'

/** `vacuum`: takes away what no kept version needs; without `--yes` it only says what. */
export const vacuumCommand = answering({
  options: {
    '--keep DURATION': ['keep files that were in use within this time, such as 7d or 12h', '7d'],
    '--keep-requests DURATION': ['keep requests, runs and their logs that are younger than this', '400d'],
    '--yes': 'really remove them',
  },
  details:
    'The newest version, those that were in use within --keep and every stamped one keep their files. Nothing that\nis stored is lost: superseded files hold rows that newer files hold too.',
  answer: async (call) => {
    const { settings, catalogue, options } = call
    await openedLake(call)
    const { keep: keepSeconds, keepRequests: keepRequestsSeconds, yes: really } = options
    const deps = viewingWorld(call, 'vacuum')
    const what = { root: settings.data, keepSeconds, keepRequestsSeconds, really }
    const views: VacuumDeps['buildViews'] = async (ledger) => await buildViews(ledger, { catalogue, deps })
    const summary = await vacuum(what, { ...deps, buildViews: views })
    return { document: summary, words: () => inWords(summary, keepSeconds) }
  },
})

function inWords(summary: VacuumSummary, keepSeconds: number): string {
  const { dry_run, data, journal, exports, requests, stamped, version } = summary
  const total = data.bytes + journal.bytes + exports.bytes
  const rows = labelled(
    [
      ['superseded data files', filesInWords(data)],
      ['folded journal entries', filesInWords(journal)],
      ['old exports', filesInWords(exports)],
      requests.files > 0 && ['old requests, runs, logs', filesInWords(requests)],
      stamped.files > 0 && ['kept for stamped results', filesInWords(stamped)],
    ],
    26,
  )
  const verb = dry_run ? 'would be freed; run it with --yes' : `freed (version ${version})`
  return `${rows}${bytes(total)} ${verb}; kept: what was in use within ${formatDuration(keepSeconds)}\n`
}
