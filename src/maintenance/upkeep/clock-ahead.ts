import { redatedMonths } from '../../sources/points/month-changes.ts'
import { type LakeError, usage } from '../../base/errors.ts'
import { clocked } from '../../lake/ledger/apply.ts'
import { commit, type CommitDeps, type RewriteDeps, type StagedFile } from '../../lake/ledger/commit.ts'
import { type Damage, finding } from './findings.ts'
import type { CoverageRow, Finding } from '../../lake/ledger/entry.ts'
import {
  loadCoverage,
  storedSeries,
  type StoredVersion,
  storedVersions,
  liveFiles,
  storedInterval,
} from '../../lake/ledger/index-queries.ts'
import { places } from '../../lake/store/layout.ts'
import { runName } from '../../lake/ledger/job.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { valueTypesAnew } from '../../sources/points/value-types.ts'
import { asEarlier } from './redate.ts'
import { end, formatInstant, type Micros } from '../../base/time.ts'
import { type Mending, mendArchive, mendInstants, mendRegistry, pollInstants, trueInstantSql } from './clock-files.ts'
import { dissolveRecent } from './merge-jobs.ts'
import { type Rewriting, withRewriting } from './rewrite.ts'
import { providerOf } from '../../lake/ledger/provider.ts'

/** Maximum microseconds that a clock may be off unnoticed. */
const tolerated = 3_600_000_000

/** Lists the versions that a clock far ahead has dated, and the one before them: none once they are corrected. */
function versionsAhead(ledger: Ledger, now: Micros) {
  const versions = storedVersions(ledger)
  const good = versions.findLast(({ committed_at }) => committed_at <= now + tolerated)
  return { good, wrong: versions.filter(({ version }) => version > (good?.version ?? 0)) }
}

/** Builds a note of one line if the last commit lies ahead of this machine's clock; null if all is well. */
export function clockNote(ledger: Ledger, now: Micros): string | null {
  const { committed_at, version } = ledger.head()
  if (committed_at <= now + tolerated) return null
  const [last, local] = [committed_at, now].map((at) => formatInstant(Math.floor(at / 1_000_000)))
  return `version ${version} was committed at ${last}, the clock of this machine says ${local}: see pitlake doctor`
}

/** Finds the latest instant of the future that the index has for a run, a request or a fact that is no version. */
function latestAhead(ledger: Ledger, now: Micros): Micros | null {
  const parts = [...clocked, ['soft', 'at']].map(([table, column]) => `SELECT max(${column}) AS at FROM ${table}`)
  const at = Number(ledger.statement(`SELECT max(at) AS at FROM (${parts.join(' UNION ALL ')})`).get()?.['at'] ?? 0)
  return at > now + tolerated ? at : null
}

/**
 * Finds a clock that was far ahead. A synthetic lake may have a simulated clock on purpose; a run alone dates nothing.
 */
export function checkClock(ledger: Ledger, now: Micros): Damage[] {
  const [first] = versionsAhead(ledger, now).wrong
  const latest = first?.committed_at ?? latestAhead(ledger, now)
  if (latest === null) return []
  const at = formatInstant(Math.floor(latest / 1_000_000))
  const severity = first === undefined || ledger.head().provider?.synthetic === true ? 'notice' : 'damage'
  const what = first === undefined ? 'a run was at work' : `version ${first.version} was committed`
  return [finding('clock_ahead', places.journal, `${what} at ${at}, which has not come yet`, { severity })]
}

/**
 * Repairs what a clock far ahead has dated, by one commit with the true instant: points seen in the future are seen now
 * (late is safe), coverage and answers of the future are taken back, and the findings report it. The earlier entries
 * stay as they are.
 */
export async function mendClock(ledger: Ledger, deps: CommitDeps): Promise<string[]> {
  const now = Math.floor(deps.nowMicros())
  const [first] = versionsAhead(ledger, now).wrong
  if (first === undefined) return latestAhead(ledger, now) === null ? [] : await mendRuns(ledger, deps)
  const patient: RewriteDeps = { ...deps, signal: new AbortController().signal }
  const run = runName(deps, 'doctor')
  await dissolveRecent(ledger, patient, run, 'doctor')
  const { good, wrong } = versionsAhead(ledger, now)
  // Polls of the wrong clock stay one after the other, all of them behind what was known before.
  const polls = pollInstants(ledger, first.version)
  const instant = Math.max(now, (good?.committed_at ?? 0) + 1 + wrong.length) + Math.max(0, polls.length - 1)
  let lastSeen = ''
  await withRewriting(ledger, patient, run, async (rewriting) => {
    let files = 0
    await commit(
      ledger,
      async (ticket) => {
        if (versionsAhead(ledger, now).wrong.length !== wrong.length) throw busy()
        const frame = { wrong, before: good?.committed_at, now: now + tolerated, ticket }
        const mending: Mending = { ...frame, nextFile: () => files++ }
        const points = await mendPoints(rewriting, mending)
        const types = await valueTypesAnew(ledger, rewriting.engine, points)
        const registry = await mendRegistry(rewriting, mending, polls)
        const archive = await mendArchive(rewriting, mending)
        const datings = datingsBack(ledger, mending)
        lastSeen =
          `${points.rows} ` +
          `points${registry.rows === 0 ? '' : ` and ${registry.rows} rows of the registry and of assets`}`
        const { uncovered, coverage } = coverageBack(ledger, Math.floor(instant / 1_000_000))
        const clock_mended = { version: ticket.version, at: ticket.committed_at, before: good?.committed_at ?? 0 }
        return {
          job: 'doctor',
          run,
          provider: providerOf(ledger),
          add: [...points.add, ...registry.add, ...archive.add, ...datings],
          remove: [...points.remove, ...registry.remove, ...archive.remove, ...datings.map(({ path }) => path)],
          ...types,
          progress: await redatedMonths(ledger, rewriting.engine, points),
          uncovered,
          coverage,
          findings: findingsOf(ledger, new Set(uncovered.map(({ series }) => series)), first, ticket.committed_at),
          state: { ...registry.state, ...archive.state, clock_mended },
          passing: registry.passing,
        }
      },
      deps,
      instant,
    )
  })
  return [`${wrong.length} versions were dated by a clock far ahead: ${lastSeen} are now seen at their mending`]
}

/** Corrects points that were seen in the future: they are seen now, and so is what is known by that alone. */
async function mendPoints(rewriting: Rewriting, mending: Mending) {
  const { now, wrong, ticket } = mending
  const observed = { now, known: new Map(), otherwise: ticket.committed_at }
  const trueAvailable = trueInstantSql('available_at', observed)
  const available = `CASE WHEN basis = 'observed' THEN ${trueAvailable} ELSE available_at END`
  const mended = new Map([
    ['observed_at', trueInstantSql('observed_at', observed)],
    ['available_at', available],
  ])
  const mendedFiles: { readonly from: string; readonly staged: StagedFile }[] = []
  for (const file of liveFiles(rewriting.ledger, { table: 'points' })) {
    if (file.added_version < (wrong[0]?.version ?? Infinity)) continue
    if (file.interval === null) throw busy()
    const staged = await mendInstants(rewriting, mending.nextFile(), file, { now, mended })
    if (staged) mendedFiles.push({ from: file.path, staged })
  }
  const add = mendedFiles.map(({ staged }) => staged)
  return { add, remove: mendedFiles.map(({ from }) => from), rows: add.reduce((sum, { rows }) => sum + rows, 0) }
}

/**
 * Corrects earlier datings that a change of rules by the wrong clock has ended: they end when its version is corrected.
 */
function datingsBack(ledger: Ledger, { now, ticket: { version, committed_at } }: Mending): StagedFile[] {
  const wrong = liveFiles(ledger, { table: 'redated' }).filter(({ label }) => Number(label) > now)
  return wrong.map((file) => asEarlier(file, committed_at - (version - file.added_version)))
}

/** Corrects runs of the wrong clock that made no version: the index sets their instants back, by an empty version. */
async function mendRuns(ledger: Ledger, deps: CommitDeps): Promise<string[]> {
  const { version, committed_at } = ledger.head()
  if (version === 0) return []
  await commit(
    ledger,
    async (ticket) => {
      const clock_mended = { version: ticket.version, at: ticket.committed_at, before: committed_at }
      const run = runName(deps, 'doctor')
      return await Promise.resolve({ job: 'doctor', run, provider: providerOf(ledger), state: { clock_mended } })
    },
    deps,
  )
  return ['what runs of a clock far ahead wrote down is now dated by their mending']
}

function busy(): LakeError {
  return usage('points or polls came while the instants were mended', { next: 'run pitlake doctor --repair again' })
}

/**
 * Computes the coverage to take back: windows from answers of the future, and the parts of them that stored points
 * prove.
 */
function coverageBack(ledger: Ledger, now: number) {
  const allSeries = storedSeries(ledger)
  const uncovered: Pick<CoverageRow, 'series' | 'since' | 'until'>[] = []
  const coverage: CoverageRow[] = []
  for (const row of [...loadCoverage(ledger).values()].flat()) {
    if (row.asked_at <= now + 3600 && row.until <= now + 3600) continue
    const { series, since, until } = row
    uncovered.push({ series, since, until })
    const storedRow = allSeries.get(series)
    if (row.state !== 'covered' || row.reason !== null || !storedRow || storedRow.last_t === null) continue
    const proven = Math.min(until, end(storedRow.last_t, storedInterval(storedRow)))
    if (proven > since) coverage.push({ ...row, until: proven, asked_at: Math.min(row.asked_at, now) })
  }
  return { uncovered, coverage }
}

function findingsOf(ledger: Ledger, series: ReadonlySet<string>, first: StoredVersion, at: Micros): Finding[] {
  const seriesById = storedSeries(ledger)
  const detail = { version: first.version, committed_at: first.committed_at }
  return [...series].map((id) => ({ series: id, t: seriesById.get(id)?.last_t ?? 0, kind: 'clock_ahead', detail, at }))
}
