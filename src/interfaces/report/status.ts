import type { Ledger } from '../../lake/ledger/ledger.ts'
import { atOneInstant } from '../../lake/ledger/index-rows.ts'
import { type StatusFacts, type StatusSources, readStatusFacts, type StatusInput } from './facts.ts'
import { defaultMaxLate, type Late, lateOf, type SeriesStanding } from './freshness.ts'
import { type ReasonKind, type Trust, type LateCount, type Reason, reasonsOf, trustOf, verdictLimits } from './trust.ts'
import { percent, formatCount } from '../../base/figures.ts'
import { isOnDisk, liveFiles } from '../../lake/ledger/index-queries.ts'
import { bytesProblem } from '../../lake/ledger/commit.ts'

/** Standing of a lake, as `status --json` prints it. Scripts rely on the names. */
export interface LakeStanding extends StatusFacts {
  /** `yes`, `look` or `no`: whether you can use the lake now. */
  readonly trust: Trust
  /** Reasons for less trust, the weightiest first. */
  readonly reasons: readonly Reason[]
}

/** The standing of a lake with its sources. */
export interface JudgedStanding extends StatusSources {
  readonly standing: LakeStanding
}

/**
 * Whether the lake can be trusted now; only reads, also while a job writes. `arrivals` are null where they were not
 * read, `findings` where they cannot be.
 */
export async function readStanding(ledger: Ledger, input: StatusInput): Promise<JudgedStanding> {
  const damaged = await damagedFiles(ledger)
  const { facts, ...from } = await atOneInstant(ledger, async () => await readStatusFacts(ledger, input, damaged))
  const reasons = reasonsOf(facts, input.now, {
    check: input.settings.check,
    late: lateCount(ledger, from.series, input),
  })
  return { standing: { ...facts, trust: trustOf(reasons), reasons }, ...from }
}

/** Counts the live files that are not in their place, or have a wrong length; the bytes themselves are not read. */
async function damagedFiles(ledger: Ledger): Promise<number> {
  let damaged = 0
  const live = new Map(liveFiles(ledger).map((file) => [file.path, file]))
  // A vacuum that is at work meanwhile records what it removes before it does so.
  for (const file of live.values())
    if ((await bytesProblem(ledger.root, file, false)) && isOnDisk(ledger, file.path)) damaged++
  return damaged
}

function lateCount(ledger: Ledger, series: readonly SeriesStanding[], { settings }: StatusInput): LateCount {
  const { late, stopped } = lateOf(series, settings.check, defaultMaxLate(ledger, settings.check))
  const sum = (some: readonly Late[], of: 'series' | 'inVain'): number =>
    some.reduce((total, row) => total + row[of], 0)
  return {
    series: sum(late, 'series'),
    inVain: sum(late, 'inVain'),
    seconds: late.reduce((most, { seconds }) => Math.max(most, seconds), 0),
    stopped: sum(stopped, 'series'),
  }
}

const checkCodes = { integrity: 4, stale: 6, look: 6 } as const
const gravest = ['integrity', 'stale', 'look'] as const

/** Selects the reasons that count for the verdict: those that are no mere remark, the gravest first. */
export function judgedReasons(reasons: readonly Reason[]): readonly Reason[] {
  return gravest.flatMap((word) => reasons.filter((reason) => reason.word === word))
}

/** Remarks that are shown all the same: missing data. */
const missing: readonly ReasonKind[] = ['gaps', 'begins']

/**
 * Formats the judgement: a line for each kind of reason, the gravest first, with the command to type; one if all is
 * well.
 */
export function check(standing: LakeStanding): { readonly lines: readonly string[]; readonly code: number } {
  const judged = judgedReasons(standing.reasons)
  const notes = standing.reasons
    .filter(({ level, kind }) => level === 'note' && missing.includes(kind))
    .map(({ text, next }) => `note: ${text}; ${next ?? 'pitlake status'}`)
  const [first] = judged
  if (!first?.word) {
    const { version, coverage } = standing
    const share = percent(coverage.held, coverage.due)
    const line = `trusted: version ${formatCount(version)}, ${share} of what is due`
    const hasGaps = standing.reasons.some(({ kind }) => kind === 'gaps')
    const limits = verdictLimits({ ...standing, gaps: hasGaps ? 0 : standing.gaps })
    return { lines: [line, ...limits.map(({ text, next }) => `note: ${text}; ${next}`), ...notes], code: 0 }
  }
  const lines = judged.map(({ word, text, since, next }) => {
    const oldest = since === null ? '' : ` (since ${since.slice(0, 16)}Z)`
    return `${word}: ${text}${oldest}; ${next ?? 'pitlake status'}`
  })
  return { lines: [...lines, ...notes], code: checkCodes[first.word] }
}
