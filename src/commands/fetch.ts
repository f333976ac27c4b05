import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { IngestEvent } from '../jobs/events.ts'
import { ingest } from '../jobs/ingest.ts'
import type { IngestSummary } from '../jobs/tally.ts'
import type { IngestDeps } from '../jobs/tools.ts'
import { verdict } from '../jobs/verdict.ts'
import { countOption, readContext, selectionOptions, selectionsOf } from './context.ts'
import { json } from './print.ts'
import { fetchProgress } from './progress.ts'
import { type CommandSpec, type Deps, flagOption } from './spec.ts'

/** `fetch`: brings the selected metrics up to date. */
export const fetchCommand: CommandSpec = {
  name: 'fetch',
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
        selections: selectionsOf(input, settings),
        gapsOnly: flagOption(input, 'gaps'),
        now: Math.floor(deps.now() / 1000),
        maxRequests: countOption(input, 'maxRequests', '--max-requests') ?? null,
        providerMoved: flagOption(input, 'providerMoved'),
      },
      { ...worldOf(deps, progress.onEvent), detailedLog: verbose },
    ).finally(progress.end)
    if (flagOption(input, 'json')) deps.stdout(json(scripted(summary)))
    else deps.stdout(told(summary))
    const error = verdict(summary)
    if (error !== null) throw error
  },
}

/** The real world behind the job. */
function worldOf(deps: Deps, onEvent: (event: IngestEvent) => void): IngestDeps {
  const { env } = deps
  const version = (
    JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  ).version
  return {
    now: () => performance.timeOrigin + performance.now(),
    nowMicros: () => Math.floor(deps.now() * 1000),
    sleep: async (ms) => await deps.sleep(ms),
    wait: async (ms, signal) => await deps.sleep(ms, signal),
    random: deps.random,
    signal: deps.signal,
    holder: { pid: process.pid, host: hostname(), command: 'pitlake fetch' },
    program: `pitlake ${version}`,
    proxy: {
      http: env['http_proxy'] ?? env['HTTP_PROXY'],
      https: env['https_proxy'] ?? env['HTTPS_PROXY'],
      all: env['all_proxy'] ?? env['ALL_PROXY'],
      none: env['no_proxy'] ?? env['NO_PROXY'],
    },
    onEvent,
  }
}

/** The names that scripts rely on. */
function scripted(summary: IngestSummary): object {
  const { resume_at, words, ...rest } = summary
  return { ...rest, resume_at: resume_at === null ? null : new Date(resume_at).toISOString(), words }
}

function told(summary: IngestSummary): string {
  const { windows } = summary
  return [
    `version      ${summary.version}`,
    `requests     ${summary.requests.toLocaleString('en-US')}`,
    `points       ${summary.points_added.toLocaleString('en-US')} added in ${summary.files_added} files`,
    `windows      ${windows.covered} covered, ${windows.empty} empty, ${windows.unsupported} unsupported, ${windows.failed} failed`,
    `violations   ${summary.violations}`,
    '',
  ].join('\n')
}
