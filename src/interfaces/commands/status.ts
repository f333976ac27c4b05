import pLimit from 'p-limit'
import { usage } from '../../base/errors.ts'
import { instantOf } from '../../base/time.ts'
import { dirname, relative, resolve, sep } from 'node:path'
import type { Check } from '../../catalog/health.ts'
import { check, judgedReasons, type LakeStanding, readStanding } from '../report/status.ts'
import { metricsText } from '../report/metrics.ts'
import { readStatusPage } from '../report/status-page.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { rememberPage } from '../../lake/ledger/pages.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import { putOut } from '../../lake/store/output.ts'
import { statusPage } from '../report/page/page.ts'
import {
  brief,
  bytes,
  formatCounts,
  formatLabelled,
  moment,
  percent,
  several,
  span,
  formatCount,
  wrapLine,
} from '../../base/figures.ts'
import { kinds } from '../../base/option-kinds.ts'
import { listen, listenAt, type HttpResponse, type Routes } from '../server/listen.ts'
import { instantNow } from '../cli/context.ts'
import { answering, type Call, type CommandAnswer, type CommandContext, type Deps, documentText } from '../cli/spec.ts'
import { programName } from '../cli/process.ts'
import { untilStopped } from '../cli/world.ts'
import type { StatusInput } from '../report/facts.ts'

const age = kinds.span('6h or 3d')
const any = kinds.count(0)

export const statusCommand = answering({
  options: {
    '--html FILE': 'also write a self-contained page with pictures',
    '--metrics FILE': 'also write the numbers as text for Prometheus',
    '--check': 'print a line for each reason, and exit with 0, 4 or 6',
    '--listen ADDRESS': 'show page, /metrics and /healthz over HTTP until stopped',
    '--max-late TIME': { kind: kinds.span('30m or 2h'), about: 'longest time that a point may be overdue' },
    '--max-feed-age TIME': { kind: age, about: 'longest time since the last poll of the registry (3d)' },
    '--max-violations N': { kind: any, about: 'most open violations (0)' },
    '--max-findings N': { kind: any, about: 'most contradictions of the registry (0)' },
    '--max-failed N': { kind: any, about: 'most failed windows (0)' },
    '--max-gaps N': { kind: any, about: 'most windows with gaps' },
  },
  details: `status only reads, also while a fetch runs. A series is \`fresh\` if every point that should be known by now is stored. The exit
code of a plain status is always 0. For scripts use \`trust\` (yes, look, no) of --json, or --check.

With --check, exit 0 means trusted and fresh, 4 integrity, 6 stale or something to look at. You set the limits in \`check\` of
pitlake.yaml or by options, which win. docs/how-to/monitor.md describes them.

Example: pitlake status --check --max-late 2h`,
  answer: async (statusCall) => {
    const { html: file, metrics, listen: address, check: checks, maxLate, ...limits } = statusCall.options
    const settings = { ...statusCall.settings, check: checkOf(maxLate, limits, statusCall.settings.check) }
    const call = { ...statusCall, settings }
    const { catalogue, cwd, stderr } = call
    if (address !== undefined) {
      const beside = Object.entries({ check: checks, html: file, metrics, json: 'json' in limits && limits.json })
      const [flag] = beside.find(([, value]) => value !== undefined && value !== false) ?? []
      if (flag !== undefined) throw usage('--listen', { expected: 'no other output with it', got: `--${flag}` })
      return await listening(call, address)
    }
    const { data } = settings
    using ledger = await Ledger.openToRead(data)
    const factsInput = { settings, catalogue, now: instantNow(call), ...(checks && { arrivals: false }) }
    const full = file === undefined ? factsInput : { ...factsInput, arrivals: true, page: resolve(cwd, file) }
    const judged = await readStanding(ledger, full)
    if (file !== undefined) {
      const path = resolve(cwd, file)
      const stamps = relative(dirname(path), inLake(resolve(data), places.stamps))
        .split(sep)
        .map(encodeURIComponent)
      const page = await readStatusPage(ledger, full, judged, programName(), stamps.join('/'))
      await putOut(path, statusPage(page), data, '--html')
      const remedy = `pitlake status --html ${path}`
      await rememberPage(data, { name: `the facts of the status page ${path}`, file: path, remedy })
    }
    if (metrics !== undefined)
      await putOut(resolve(cwd, metrics), metricsText(judged, factsInput.now), data, '--metrics')
    if (file !== undefined) stderr(`page written to ${file}\n`)
    const { lines, code } = checks ? check(judged.standing) : { lines: null, code: 0 }
    const words = () => (lines === null ? statusInWords(judged.standing, data) : `${lines.join('\n')}\n`)
    return { document: judged.standing, words, code }
  },
})

/** Shows the lake until it is stopped; writes nothing else. */
async function listening(call: Call, address: string): Promise<CommandAnswer<LakeStanding>> {
  const at = listenAt(address, call.settings)
  const standing = await standingNow(call)
  await using door = await listen(at, call.settings, showsOf(call))
  call.stderr(`listening at ${door.url}\n`)
  await untilStopped(call)
  return { document: standing, words: () => '' }
}

/** Combines the limits of a good state: flags win over the config file. */
function checkOf(late: number | undefined, limits: object, check: Check): Check {
  const givenLimits = Object.entries(limits).filter(
    ([name, value]) => Object.hasOwn(check, name) && value !== undefined,
  )
  const maxLate = late === undefined ? check.maxLate : [{ pattern: '*', seconds: late }]
  return { ...check, maxLate, ...Object.fromEntries(givenLimits) }
}

const verdicts = { yes: 'yes', look: 'look first', no: 'NO' } as const

/** Formats the status for people, at most 80 columns wide. */
export function statusInWords(standing: LakeStanding, data: string): string {
  const { coverage, freshness, windows, requests, verified, committed_at, schema_changes: changes } = standing
  const at =
    committed_at === null ? 'none yet' : `${formatCount(standing.version)} of ${moment(instantOf(committed_at))}`
  const { fresh, pending, behind, overdue_seconds, stopped } = freshness
  const late = behind === 0 ? '0 behind' : `${formatCount(behind)} behind by up to ${span(overdue_seconds)}`
  const states = (['covered', 'empty', 'unsupported', 'failed', 'not_requested'] as const).map(
    (state) => `${formatCount(windows[state])} ${state.replace('_', ' ')}`,
  )
  const requestsText = `${formatCount(requests.total)}, ${several(requests.credits, 'credit')}`
  const stored =
    `${several(standing.series, 'series', 'series')}, ${several(standing.files, 'file')}, ` + bytes(standing.bytes)
  const lines = formatLabelled([
    ['lake', `${data}${standing.synthetic ? '   SYNTHETIC DATA' : ''}`],
    standing.mirror_of !== null && ['mirror of', standing.mirror_of],
    ['provider', standing.provider ?? 'none yet'],
    ['version', at],
    ['trust', verdicts[standing.trust]],
    ...standing.reasons.map(({ text, next }) => ['', `- ${text}${next === null ? '' : `: ${next}`}`] as const),
    ['coverage', `${percent(coverage.held, coverage.due)} of ${formatCount(coverage.due)} due points`],
    [
      'fresh',
      `${formatCount(fresh)} series, ${formatCount(pending)} pending, ${late}, ${formatCount(stopped)} stopped`,
    ],
    standing.unselected > 0 && [
      'not selected',
      `${several(standing.unselected, 'series', 'series')} that select no longer names, not judged`,
    ],
    ['newest', standing.newest ?? 'none'],
    ['gaps', `${several(standing.gaps, 'window')}, ${formatCount(standing.pending)} pending`],
    ['windows', states.join(', ')],
    ['violations', violationsLine(standing)],
    changes !== 0 && ['schema', `${several(changes, 'change')} of values (view schema_changes)`],
    [
      'verified',
      verified.windows === 0 ? 'nothing yet' : `${percent(coverage.verified, coverage.held)} of the stored points`,
    ],
    ['requests', `${requestsText}; last 24 h ${formatCount(requests.day)}, ${several(requests.day_credits, 'credit')}`],
    ['rate', `busiest minute ${formatCount(requests.busiest_minute)} of ${formatCount(requests.per_minute)} allowed`],
    ['registry', registryLine(standing)],
    ['stored', `${brief(standing.points)} points, ${stored}`],
    standing.running.length > 0 && ['at work', standing.running.join(', ')],
  ])
  const parts = lines
    .trimEnd()
    .split('\n')
    .flatMap((line) => wrapLine(line, line.startsWith(' ') ? 15 : 13))
  return parts.map((part) => `${part}\n`).join('')
}

function violationsLine({ violations, incidents, acknowledged, reverted }: LakeStanding): string {
  const of = incidents === 0 ? '' : `, ${several(incidents, 'incident')} among them`
  const more = [formatCounts({ acknowledged }), formatCounts({ 'reverted upstream': reverted })].filter(
    (words) => words !== '',
  )
  return [`${formatCount(violations)}${of}`, ...more].join(', and ')
}

function registryLine({ registry }: LakeStanding): string {
  const { first_snapshot, last_snapshot, feed_at, records, schema_changes, findings } = registry
  const total = Object.values(records).reduce((a, b) => a + b, 0)
  if (first_snapshot === null && total === 0) return 'no snapshot yet'
  return [
    several(total, 'record'),
    `snapshots ${first_snapshot} .. ${last_snapshot}`,
    feed_at === null ? 'feed not read' : `feed read ${moment(instantOf(feed_at))}`,
    ...(schema_changes ? [`${formatCount(schema_changes)} schema changes`] : []),
    ...(findings ? [several(findings, 'contradiction')] : []),
  ].join(', ')
}

/** Reads the current state of the lake, as an interface returns it. */
export async function standingNow({
  settings,
  catalogue,
  now,
}: CommandContext & Pick<Deps, 'now'>): Promise<LakeStanding> {
  using ledger = await Ledger.openToRead(settings.data)
  const input = { settings, catalogue, now: instantNow({ now }), arrivals: false }
  return (await readStanding(ledger, input)).standing
}

/**
 * Factor for how long an answer is shown again, by the time that it took to make; and at least so many milliseconds.
 */
const share = 20
const least = { check: 1000, metrics: 5000, page: 10_000 }

/**
 * Builds the answers with the numbers (with what a watch may spend a UTC day; null: any number), the judgement and the
 * page of a lake, each made on request. One is made at a time and shown to all who request it meanwhile, so that
 * readers take a twentieth of the process at most; a lake is only read, without its locks.
 */
export function showsOf(
  { settings, catalogue, now, elapsed }: CommandContext & Pick<Deps, 'now' | 'elapsed'>,
  creditsPerDay: number | null = null,
): Routes {
  const turn = pLimit(1)
  const shared = (atLeast: number, make: (ledger: Ledger, input: StatusInput) => Promise<HttpResponse>) => {
    let page: { readonly shown: Promise<HttpResponse>; until: number } | null = null
    return async (): Promise<HttpResponse> => {
      if (page !== null && elapsed() < page.until) return await page.shown
      const begin = async (): Promise<HttpResponse> => {
        const begun = elapsed()
        try {
          using ledger = await Ledger.openToRead(settings.data)
          return await make(ledger, { settings, catalogue, now: instantNow({ now }) })
        } finally {
          fresh.until = elapsed() + Math.max(atLeast, share * (elapsed() - begun))
        }
      }
      const fresh = { shown: turn(begin), until: Infinity }
      page = fresh
      return await fresh.shown
    }
  }
  return {
    '/': shared(least.page, async (ledger, input) => {
      const withArrivals = { ...input, arrivals: true }
      const page = await readStatusPage(ledger, withArrivals, await readStanding(ledger, withArrivals), programName())
      // A page that stays open shows how the lake is.
      return { status: 200, type: 'text/html', body: statusPage(page), headers: { refresh: '60' } }
    }),
    '/metrics': shared(least.metrics, async (ledger, input) => {
      const body = metricsText(await readStanding(ledger, input), input.now, creditsPerDay)
      return { status: 200, type: 'text/plain; version=0.0.4', body }
    }),
    '/healthz': shared(least.check, async (ledger, input) => {
      const { standing } = await readStanding(ledger, { ...input, arrivals: false })
      const { lines, code } = check(standing)
      const { version, committed_at, trust, synthetic } = standing
      const [text = ''] = lines
      const [word = ''] = text.split(':')
      const reasons = judgedReasons(standing.reasons)
      const document = { ok: code === 0, word, text, version, committed_at, trust, synthetic, reasons }
      return { status: code === 0 ? 200 : 503, type: 'application/json', body: documentText(document) }
    }),
  }
}
