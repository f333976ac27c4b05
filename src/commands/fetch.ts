import { ingest } from '../metrics/fetch.ts'
import type { IngestSummary } from '../metrics/tally.ts'
import { verdict } from '../metrics/verdict.ts'
import { countOption, readContext, selectionOptions, selectionsOf } from './context.ts'
import { json } from './print.ts'
import { fetchProgress } from './progress.ts'
import { type CommandSpec, flagOption } from './spec.ts'
import { askingWorld } from './world.ts'

/** `fetch`: brings the selected metrics up to date. */
export const fetchCommand: CommandSpec = {
  name: 'fetch',
  asks: true,
  summary: 'Bring the metrics up to date; resumable at any instant.',
  options: [
    ...selectionOptions,
    { flags: '--provider-moved', about: 'the provider has a new address: accept it for this lake' },
    { flags: '--json', about: 'one JSON document on stdout' },
  ],
  details:
    'The first Ctrl-C finishes what is in flight and commits; the second stops at once. Either way the same\ncommand goes on later: stored points never change, an upstream difference is a violation (exit 4).',
  run: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    const verbose = flagOption(input, 'verbose') || deps.env['PITLAKE_LOG'] === 'debug'
    const progress = fetchProgress(deps, { verbose })
    const summary = await ingest(
      {
        settings,
        catalogue,
        selections: await selectionsOf(input, { settings, catalogue }),
        gapsOnly: flagOption(input, 'gaps'),
        now: Math.floor(deps.now() / 1000),
        maxRequests: countOption(input, 'maxRequests', '--max-requests') ?? null,
        providerMoved: flagOption(input, 'providerMoved'),
      },
      { ...askingWorld(deps, 'fetch', catalogue), onEvent: progress.onEvent, detailedLog: verbose },
    ).finally(progress.end)
    if (flagOption(input, 'json')) deps.stdout(json(scripted(summary)))
    else deps.stdout(inWords(summary))
    const error = verdict(summary)
    if (error !== null) throw error
  },
}

/** The names that scripts rely on. */
function scripted(summary: IngestSummary): object {
  const { resume_at, words, ...rest } = summary
  return { ...rest, resume_at: resume_at === null ? null : new Date(resume_at).toISOString(), words }
}

function inWords(summary: IngestSummary): string {
  const { windows } = summary
  return [
    `version      ${summary.version}`,
    `requests     ${summary.requests.toLocaleString('en-US')}`,
    `points       ${summary.points_added.toLocaleString('en-US')} added in ${summary.files_added} files`,
    `windows      ${windows.covered} covered, ${windows.empty} empty, ${windows.unsupported} unsupported, ${windows.failed} failed`,
    `violations   ${summary.violations}${summary.accepted === 0 ? '' : `, and ${summary.accepted} accepted`}`,
    '',
  ].join('\n')
}
