import { LakeError } from '../errors.ts'
import type { Damage } from './damage.ts'
import { liveFiles, summary as countsOf } from '../ledger/held.ts'
import { lastVerify } from '../ledger/held-runs.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { partitionsOf } from '../points/files.ts'
import { accessTo } from '../ledger/connection.ts'
import { checkContents, type Contents } from './contents.ts'
import { examine } from './doctor.ts'
import { execute } from '../metrics/execute.ts'
import { type IngestDeps, type MetricsInput, type MetricsRun, withMetrics } from '../metrics/run.ts'
import type { Result } from '../ledger/job.ts'
import { refusedKey, stoppedEarly } from '../metrics/verdict.ts'
import { chooseWindows, type Chosen, type VerifyScope } from '../metrics/verify-plan.ts'
import { type Difference, Findings, type Unanswered } from '../metrics/verify-findings.ts'
import type { StoppedBy } from '../metrics/asking-state.ts'
import type { VerifyResult } from '../metrics/verified.ts'

/** What a verify is told. */
export interface VerifyInput extends MetricsInput {
  readonly scope: VerifyScope
  /** The most credits; null: everything that the scope holds. */
  readonly budget: number | null
}

/** What scripts read; names are relied on. */
export interface VerifySummary {
  readonly ok: boolean
  readonly run: string | null
  readonly version: number
  readonly provider: string | null
  readonly checked: { readonly files: number; readonly bytes: number; readonly series: number; readonly points: number }
  readonly damage: readonly Damage[]
  /** Windows in which points are known to be missing. */
  readonly gaps: number
  readonly windows: {
    readonly held: number
    readonly chosen: number
    readonly verified: number
    readonly failed: number
    readonly left: number
  }
  readonly results: Readonly<Record<VerifyResult, number>>
  readonly budget: number | null
  readonly requests: number
  readonly credits: number
  readonly points_added: number
  readonly differences: readonly Difference[]
  /** Accepted differences that were seen again. */
  readonly accepted: number
  readonly failures: readonly Unanswered[]
  readonly stopped_by: StoppedBy | null
  /** When a spent quota comes back, ISO text. */
  readonly resume_at: string | null
  readonly words: string | null
}

/** What `doctor` finds that says nothing about the stored history. */
const conveniences: ReadonlySet<Damage['kind']> = new Set(['views_missing', 'views_torn', 'views_moved', 'disk_full'])

/**
 * Proves the bytes of the lake, then asks the provider again for history that it holds and compares. A difference is
 * put on record and never applied. Where the journal or the ledger is damaged nothing is asked.
 */
export async function verify(input: VerifyInput, deps: IngestDeps): Promise<VerifySummary> {
  const { url } = accessTo('metrics', input.settings)
  const looking = { thorough: true, rebuildLedger: false, repair: false, forgetLost: false }
  const room = { free: Infinity, total: Infinity }
  const diagnosis = await examine(
    { data: input.settings.data, ...looking },
    { ...deps, views: async () => undefined, space: async () => await Promise.resolve(room) },
  )
  const damage = diagnosis.findings.filter(({ kind, severity }) => severity === 'damage' && !conveniences.has(kind))
  const { files, bytes } = diagnosis.checked
  const seen: Seen = { damage, files, bytes }
  if (damage.some(({ kind }) => !kind.startsWith('file_'))) return undone(seen, diagnosis.version, input)
  const findings = new Findings()
  const purpose = { name: 'verify' as const, budget: input.budget, onBatch: findings.add }
  return await withMetrics(input, deps, purpose, async (run) => await compare(run, input, { seen, findings, url }))
}

interface Seen {
  readonly damage: readonly Damage[]
  readonly files: number
  readonly bytes: number
}

/** The report of a lake that is too damaged to be compared. */
function undone({ damage, files, bytes }: Seen, version: number, { budget }: VerifyInput): VerifySummary {
  return {
    ok: false,
    run: null,
    version,
    provider: null,
    checked: { files, bytes, series: 0, points: 0 },
    damage,
    gaps: 0,
    windows: { held: 0, chosen: 0, verified: 0, failed: 0, left: 0 },
    results: new Findings().results(),
    budget,
    requests: 0,
    credits: 0,
    points_added: 0,
    differences: [],
    accepted: 0,
    failures: [],
    stopped_by: null,
    resume_at: null,
    words: null,
  }
}

async function compare(
  run: MetricsRun,
  input: VerifyInput,
  { seen, ...found }: Pick<Parts, 'seen' | 'findings' | 'url'>,
): Promise<Result<VerifySummary>> {
  const { ledger, deps } = run
  const paths = new Set(seen.damage.map(({ path }) => path))
  const contents = await checkContents(ledger, paths)
  const round = roundOf(ledger, input, deps.nowMicros())
  const chosen = chooseWindows(ledger, { ...input, begun: round.begun, damaged: damagedPartitions(ledger, paths) })
  if (chosen.plan.asks.length === 0) deps.onEvent({ kind: 'planned', plan: chosen.plan })
  else await execute(run, chosen.plan, round)
  await found.findings.readArchive(ledger)
  const value = summaryOf(run, input, { seen, contents, chosen, ...found })
  return { value, stopped_by: value.stopped_by, error: verifyVerdict(value) }
}

/** A round goes on until one of its runs came to its end; then the next begins. */
function roundOf(ledger: Ledger, { scope, budget }: VerifyInput, now: number): { scope: string; begun: number } {
  const { paths, assets, since, until } = scope
  const name = JSON.stringify([paths, assets, since, until, budget])
  const last = lastVerify(ledger, name)
  return { scope: name, begun: last === undefined || last.ended ? now : last.begun }
}

function damagedPartitions(ledger: Ledger, paths: ReadonlySet<string>): Set<string> {
  const damaged = liveFiles(ledger, { table: 'points' }).filter(({ path }) => paths.has(path))
  return new Set(partitionsOf(damaged).keys())
}

interface Parts {
  readonly seen: Seen
  readonly contents: Contents
  readonly chosen: Chosen
  readonly findings: Findings
  readonly url: string
}

function summaryOf(
  { id, ledger, tally, input }: MetricsRun,
  { budget }: VerifyInput,
  { seen, contents, chosen, findings, url }: Parts,
): VerifySummary {
  const done = tally.summary(id)
  const { requests, credits } = tally.actual()
  const damage = [...seen.damage, ...contents.findings]
  const differences = findings.differences(ledger, { base: url, secrets: input.settings.secrets })
  const { verified, failures, left } = findings.windows(chosen.plan.asks, done.stopped_by !== null)
  const { metrics } = ledger.head().provider ?? {}
  return {
    ok: damage.length === 0 && differences.length === 0 && failures.length === 0 && done.stopped_by === null,
    run: id,
    version: ledger.head().version,
    provider: metrics ?? null,
    checked: { files: seen.files, bytes: seen.bytes, series: contents.series, points: contents.points },
    damage,
    gaps: countsOf(ledger).gaps,
    windows: { held: chosen.windows, chosen: chosen.plan.asks.length, verified, failed: failures.length, left },
    results: findings.results(),
    budget,
    requests,
    credits,
    points_added: done.points_added,
    differences,
    accepted: done.accepted,
    failures,
    stopped_by: done.stopped_by,
    resume_at: done.resume_at,
    words: done.words,
  }
}

/** The error that a verify ends with, the gravest first; null where every byte and every value is the same. */
export function verifyVerdict(summary: VerifySummary): LakeError | null {
  const { damage, differences, failures } = summary
  const unknown = refusedKey(summary)
  if (unknown !== null) return unknown
  const [first] = damage
  if (first) {
    const more = damage.length === 1 ? '' : ` (and ${damage.length - 1} more)`
    return new LakeError('integrity', { subject: `${first.path}: ${first.found}${more}`, next: first.remedy })
  }
  if (differences.length > 0) {
    const next =
      'nothing stored was changed: send the report (--report FILE) to the provider, then pitlake violations accept'
    return new LakeError('integrity', { subject: `${differences.length} stored values differ upstream`, next })
  }
  const early = stoppedEarly(summary)
  if (early !== null) return early
  if (failures.length === 0) return null
  const subject = `${failures.length} windows got no usable answer`
  return new LakeError('incomplete', { subject, got: failures[0]?.reason, next: 'run the same command again' })
}
