import { type Freed, vacuum, type VacuumDeps, type VacuumSummary } from '../upkeep/vacuum.ts'
import { buildViews } from '../views/build.ts'
import { formatDuration } from '../time.ts'
import { openedLake, viewingWorld } from './world.ts'
import { bytes, whole } from '../words/figures.ts'
import { labelled, type LabelledRow } from '../words/table.ts'
import { answering } from './spec.ts'

/** `vacuum`: takes away what no kept version needs; without `--yes` it only says what. */
export const vacuumCommand = answering({
  name: 'vacuum',
  ends: [4, 6, 7],
  options: {
    '--keep DURATION': { about: 'keep files that were in use within this time, such as 7d or 12h', default: '7d' },
    '--keep-requests DURATION': {
      about: 'keep requests, runs and their logs that are younger than this',
      default: '400d',
    },
    '--yes': 'really remove them',
  },
  details:
    'The newest version, those that were in use within --keep and every stamped one keep their files. Nothing that\nis stored is lost: superseded files hold rows that newer files hold too.',
  answer: async (input, { settings, catalogue }, deps) => {
    await openedLake(deps, settings.data)
    const { keep: keepSeconds, keepRequests: keepRequestsSeconds, yes: really } = input.options
    const world: VacuumDeps = {
      ...viewingWorld(deps, 'vacuum', catalogue),
      buildViews: async (ledger) => await buildViews(ledger, { catalogue, deps: world }),
    }
    const summary = await vacuum({ root: settings.data, keepSeconds, keepRequestsSeconds, really }, world)
    return { document: summary, words: () => inWords(summary, keepSeconds) }
  },
})

function inWords(summary: VacuumSummary, keepSeconds: number): string {
  const { dry_run, data, journal, exports, requests, stamped, version } = summary
  const total = data.bytes + journal.bytes + exports.bytes
  const rows: readonly LabelledRow[] = [
    ['superseded data files', amount(data)],
    ['folded journal entries', amount(journal)],
    ['old exports', amount(exports)],
    requests.files > 0 && ['old requests, runs, logs', amount(requests)],
    stamped.files > 0 && ['kept for stamped results', amount(stamped)],
  ]
  const verb = dry_run ? 'would be freed; run it with --yes' : `freed (version ${version})`
  return `${labelled(rows, 26)}${bytes(total)} ${verb}; kept: what was in use within ${formatDuration(keepSeconds)}\n`
}

function amount({ files, bytes: size }: Freed): string {
  return `${whole(files)} files, ${bytes(size)}`
}
