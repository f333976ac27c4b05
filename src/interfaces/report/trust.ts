import { beginsInWords } from '../../sources/metrics/run-summary.ts'
import type { LastEnds, StatusFacts, UnmappedSeries } from './facts.ts'
import type { Check } from '../../catalog/health.ts'
import { ownPrefix } from '../../sources/points/own-rows.ts'
import { percent, several } from '../../base/figures.ts'
import { silenceOf } from './freshness.ts'
import { day, formatDuration, formatInstant, hour, type Instant, minute } from '../../base/time.ts'

/** Subject of a reason not to trust the lake blindly. */
export type ReasonKind =
  | ('nothing' | 'damage' | 'violations' | 'incidents' | 'findings' | 'refused' | 'withdrawn' | 'observed_again')
  | (
      | 'failed'
      | 'not_requested'
      | 'late'
      | 'stopped'
      | 'gaps'
      | 'begins'
      | 'feed'
      | 'published'
      | 'behind'
      | 'synthetic'
      | 'running'
    )
  | ('rules' | 'verified' | 'key' | 'quota' | 'provider' | 'held_back' | 'user_data' | 'unmapped')

/** Word of `status --check` for a reason. */
export type CheckWord = 'integrity' | 'stale' | 'look'

/** Verdict on a lake. */
export type Trust = 'yes' | 'look' | 'no'

/** One reason not to trust the lake blindly, and what to type. */
export interface Reason {
  /** What it is about, such as `failed` or `rules`. */
  readonly kind: ReasonKind
  /** `no` forbids use, `look` asks for a look, `note` only informs. */
  readonly level: 'no' | 'look' | 'note'
  /** Word of `status --check`; null for a mere note. */
  readonly word: CheckWord | null
  /** How many cases there are. */
  readonly count: number
  /** Time of the oldest case; null if it is not known. */
  readonly since: string | null
  /** The reason as a sentence. */
  readonly text: string
  /** Command that helps; null if there is none. */
  readonly next: string | null
}

/** Number of late series. */
export interface LateCount {
  readonly series: number
  /** Number of them that were requested and got only failures. */
  readonly inVain: number
  /** Seconds for which the latest of them has been due. */
  readonly seconds: number
  readonly stopped: number
}

/** Limits by which the facts are judged: what is still well, and how many series are late by it. */
interface TrustLimits {
  readonly check: Check
  readonly late: LateCount
}

/** Lists the reasons not to trust the lake blindly now, the weightiest first. */
export function reasonsOf(facts: StatusFacts, now: Instant, { check, late }: TrustLimits): Reason[] {
  if (facts.version === 0)
    return [
      {
        ...reasonAbout('nothing', 0),
        level: 'no',
        word: 'stale',
        text: 'nothing has been committed yet',
        next: 'pitlake fetch',
      },
    ]
  const { maxFeedAge } = check
  const reasons = [
    ...damage(facts),
    ...upstream(facts, check),
    ...endReasons(facts.last_ends),
    ...freshness(late, check, now, lastFetch(facts.last_ends).length > 0),
    ...arrivals(facts),
    ...holes(facts, check),
    ...polled(facts, now, maxFeedAge),
    ...(facts.mirror_of === null ? reasonsOfCopies(facts) : []),
    ...facts.behind.map(({ words, remedy }) => note(reasonAbout('behind', 1), words, remedy)),
    ...remarks(facts),
  ]
  const { mirror_of: source } = facts
  if (source === null) return reasons
  // A command that writes is for the lake that it came from.
  return reasons.map((reason) =>
    elsewhere.test(reason.next ?? '') ? { ...reason, next: `pitlake pull ${source}` } : reason,
  )
}

const elsewhere = /^pitlake (?:fetch|verify|registry|doctor)\b/

/** Decides by the weightiest reason. */
export function trustOf(reasons: readonly Reason[]): Trust {
  if (reasons.some((reason) => reason.level === 'no')) return 'no'
  return reasons.some((reason) => reason.level === 'look') ? 'look' : 'yes'
}

/** One limit of a good verdict, and what to type. */
interface VerdictLimit {
  readonly text: string
  readonly next: string
}

/** Lists the limits of a good verdict, each on its own: what was not verified, and what contradicts single points. */
export function verdictLimits({
  violations,
  coverage,
  rules,
  gaps,
}: Pick<StatusFacts, 'violations' | 'coverage' | 'rules' | 'gaps'>): readonly VerdictLimit[] {
  const { contradicted = 0 } = rules ?? {}
  const limits: VerdictLimit[] = []
  if (violations > 0)
    limits.push({ text: several(violations, 'tolerated difference'), next: 'pitlake violations list' })
  limits.push({
    text: `${percent(coverage.verified, coverage.held)} of the stored points were requested again and compared`,
    next: 'pitlake verify',
  })
  if (rules === null)
    limits.push({ text: 'availability rules were not compared with arrivals', next: 'pitlake audit availability' })
  if (contradicted > 0) limits.push({ text: contradictedText(contradicted), next: 'pitlake audit availability' })
  if (gaps > 0)
    limits.push({ text: several(gaps, 'window has gaps', 'windows have gaps'), next: "pitlake sql 'FROM gaps'" })
  return limits
}

function contradictedText(count: number): string {
  return `${several(count, 'availability rule is', 'availability rules are')} contradicted by arrivals`
}

function reasonAbout(kind: ReasonKind, count: number, since: string | null = null): ReasonSubject {
  return { kind, count, since }
}

function damage({ files_damaged }: StatusFacts): Reason[] {
  if (files_damaged === 0) return []
  const text = `${several(files_damaged, 'file of the lake is', 'files of the lake are')} lost or cut`
  return [{ ...reasonAbout('damage', files_damaged), level: 'no', word: 'integrity', text, next: 'pitlake doctor' }]
}

/** Subject, number and age of a reason. */
type ReasonSubject = Pick<Reason, 'kind' | 'count' | 'since'>

/** Builds a reason to look; a mere note if it is within what is tolerated. */
function look(about: ReasonSubject, word: CheckWord, text: string, next: string, tolerated = false): Reason {
  return tolerated ? note(about, text, next) : { ...about, level: 'look', word, text, next }
}

function note(about: ReasonSubject, text: string, next: string | null): Reason {
  return { ...about, level: 'note', word: null, text, next }
}

const list = 'pitlake violations list'

/** Returns the command that imports user data again: only its owner knows the files. */
const importAgain = (metric: string): string => `pitlake import FILE --as ${metric.slice(ownPrefix.length)}`

/** Reasons for the end of the last fetch that running it again cannot correct. */
const fetchEnds: Readonly<Record<string, Pick<Reason, 'kind' | 'text' | 'next'>>> = {
  unauthorised: {
    kind: 'key',
    text: 'the provider refused the key of the last fetch',
    next: 'put a valid key into PITLAKE_METRICS_KEY, then pitlake fetch',
  },
  quota: {
    kind: 'quota',
    text: "the provider's quota was spent before the last fetch was done",
    next: 'pitlake plan says what is left and what it costs; fetch goes on when the quota is renewed',
  },
  unreachable: {
    kind: 'provider',
    text: 'the provider could not be reached, or gave no usable answer, when the last fetch ran',
    next: 'see that PITLAKE_METRICS_URL is right and the network is up, then pitlake fetch',
  },
}

function lastFetch({ fetch }: LastEnds): Reason[] {
  const end = fetch === null ? undefined : fetchEnds[fetch.stopped_by ?? '']
  return end === undefined ? [] : [look(reasonAbout(end.kind, 1, fetch?.at), 'look', end.text, end.next ?? '')]
}

/** Finds a snapshot of the registry that waits for a person. */
function heldBack({ held_back: end }: LastEnds): Reason[] {
  if (end === null) return []
  const text = 'a snapshot of the registry is held back, because too many records would disappear at once'
  const next = `if they are gone: pitlake ${end.job} --accept-shrink`
  return [look(reasonAbout('held_back', 1, end.at), 'integrity', text, next)]
}

/** Lists the reasons in the ends of the last runs; hooks report the same. */
export function endReasons(ends: LastEnds): Reason[] {
  return [...heldBack(ends), ...lastFetch(ends)]
}

/** Lists data that do not arrive although no provider is requested for them, or one answers without fault. */
function arrivals({ user_data: silent, unmapped }: StatusFacts): Reason[] {
  const found: Reason[] = []
  const [first] = silent
  if (first !== undefined) {
    const text =
      `${several(silent.length, 'metric')} of user data got nothing new for longer than usual: ${first.metric}, ` +
      `usually every ${roughly(first.every_seconds)}`
    found.push(look(reasonAbout('user_data', silent.length, first.last_at), 'stale', text, importAgain(first.metric)))
  }
  return [...found, ...unmappedReason(unmapped)]
}

/** Finds selected series that are never requested; hooks report the same. */
export function unmappedReason({ series, words, remedy }: UnmappedSeries): Reason[] {
  return words === null ? [] : [look(reasonAbout('unmapped', series), 'look', words, remedy ?? 'pitlake plan')]
}

/** Windows to which the provider gave no usable answer, `most` of them for this reason; hooks report the same. */
export function failedReason(failed: number, most: string | null, since: string | null, maxFailed: number): Reason[] {
  if (failed <= 0) return []
  const windows = `${several(failed, 'window')} failed`
  const text = most === null ? windows : `${windows}: the provider gave no usable answer, most often ${most}`
  return [look(reasonAbout('failed', failed, since), 'look', text, failedNext, failed <= maxFailed)]
}

function upstream(
  {
    violations,
    incidents,
    windows,
    refused,
    registry,
    oldest,
    not_requested: unasked,
    failed_most,
    last_ends,
    lost_user_data: lost,
  }: StatusFacts,
  { maxViolations, maxFindings, maxFailed }: Check,
): Reason[] {
  const reasons: Reason[] = []
  if (refused.series > 0) {
    const series = several(refused.series, 'series that has points is', 'series that have points are')
    const about = reasonAbout('refused', refused.series, refused.since)
    reasons.push(look(about, 'look', `${series} refused: ${refused.words}`, list))
  }
  if (refused.unacknowledged > 0) {
    const series = several(refused.unacknowledged, 'series that has points was', 'series that have points were')
    const text = `${series} withdrawn by the provider and not acknowledged`
    reasons.push(look(reasonAbout('withdrawn', refused.unacknowledged, oldest.withdrawn), 'look', text, list))
  }
  const alone = violations - incidents
  if (alone > 0) {
    const values = several(alone, 'stored value differs', 'stored values differ')
    const text = `${values} upstream; both are stored, and the stored one counts`
    const about = reasonAbout('violations', alone, oldest.violations)
    reasons.push(look(about, 'integrity', text, list, violations <= maxViolations))
  }
  if (incidents > 0) {
    const text =
      `${several(incidents, 'incident')}: very many stored values differed or were missing upstream at once; the ` +
      'next fetch requests them again'
    const about = reasonAbout('incidents', incidents, oldest.incidents)
    reasons.push(look(about, 'integrity', text, list, violations <= maxViolations))
  }
  const findings = registry.findings ?? 0
  if (findings > 0) {
    const records = several(findings, 'record of the registry contradicts', 'records of the registry contradict')
    const text = `${records} what snapshot and feed gave`
    const about = reasonAbout('findings', findings, oldest.findings)
    reasons.push(look(about, 'integrity', text, `${list} --resources '*'`, findings <= maxFindings))
  }
  for (const metric of lost) {
    const text = `${metric} lost points with a file, and no provider has them`
    reasons.push(look(reasonAbout('user_data', 1), 'look', text, importAgain(metric)))
  }
  reasons.push(...failedReason(windows.failed - refused.windows, failed_most, oldest.failed, maxFailed))
  if (unasked.series > 0) {
    const text = `${several(unasked.series, 'series has', 'series have')} windows that a run planned and did not request`
    const [why] = lastFetch(last_ends)
    const next = why?.next ?? 'pitlake fetch'
    reasons.push(look(reasonAbout('not_requested', unasked.series, unasked.since), 'look', text, next))
  }
  return reasons
}

function freshness(
  { series, inVain, seconds, stopped }: LateCount,
  { maxLate }: Check,
  now: Instant,
  isExplained: boolean,
): Reason[] {
  const reasons: Reason[] = []
  const isRequested = isExplained || (inVain > 0 && inVain === series)
  const why = isRequested
    ? `${several(series, 'series lacks', 'series lack')} points that were requested in vain: due for`
    : maxLate.length === 0
      ? `${several(series, 'series has', 'series have')} points due that no fetch requested, for`
      : `${several(series, 'series lacks', 'series lack')} a point that is later than your limit allows: due for`
  const late = reasonAbout('late', series, formatInstant(Math.floor(now - seconds)))
  if (series > 0)
    reasons.push(look(late, 'stale', `${why} up to ${roughly(seconds)}`, isRequested ? failedNext : 'pitlake fetch'))
  const quiet = `${several(stopped, 'series has', 'series have')} had no new point for longer than tolerated`
  if (stopped > 0) reasons.push(look(reasonAbout('stopped', stopped), 'look', quiet, "pitlake sql 'FROM gaps'"))
  return reasons
}

/** Query that lists failed windows, and the commands that request them again and list them. */
const failedQuery = `"FROM coverage WHERE state = 'failed'"`
const failedNext = `the next pitlake fetch requests them again, and pitlake sql ${failedQuery} lists them`

/** Minimum points of a gap that is reported even if any number of them is tolerated. */
const longHole = 10

function holes({ gaps, oldest, holes: { longest, later, begins } }: StatusFacts, { maxGaps }: Check): Reason[] {
  const reasons: Reason[] = []
  if (begins !== null) {
    const series = several(later, 'series begins', 'series begin')
    const text = `${series} later than requested: ${beginsInWords(begins)}`
    reasons.push(
      note(reasonAbout('begins', later, `${begins.asked_from}T00:00:00Z`), text, "pitlake sql 'FROM coverage'"),
    )
  }
  if (maxGaps === null || gaps <= maxGaps) {
    if (longest === null || longest.points < longHole) return reasons
    const { metric, asset, points, since } = longest
    const where = `${points} points of ${metric} ${asset} from ${since.slice(0, 10)} on`
    const text = `points are missing in ${several(gaps, 'window')}, the most in a row: ${where}`
    return [...reasons, note(reasonAbout('gaps', gaps, oldest.gaps), text, "pitlake sql 'FROM gaps'")]
  }
  const text = `points are missing for good in ${several(gaps, 'window')}, more than the ${maxGaps} that are tolerated`
  return [...reasons, look(reasonAbout('gaps', gaps, oldest.gaps), 'look', text, "pitlake sql 'FROM gaps'")]
}

/** Finds a registry that was followed once and is no longer. */
function polled(facts: StatusFacts, now: Instant, maxFeedAge: number): Reason[] {
  const silent = silenceOf(facts.registry, now)
  if (silent <= Math.min(day, maxFeedAge)) return []
  const text = `the registry was last polled ${roughly(silent)} ago`
  const about = reasonAbout('feed', 1, formatInstant(Math.floor(now - silent)))
  return [look(about, 'stale', text, 'pitlake registry sync', silent <= maxFeedAge)]
}

/** Lists destinations that did not receive, or did not keep, what was published there last. */
function reasonsOfCopies({ published }: StatusFacts): Reason[] {
  return published.flatMap(({ destination, at, exit_code, missing, changed }) => {
    const lostFiles = missing + changed
    if (exit_code === 0 && lostFiles === 0) return []
    const text =
      exit_code === 0
        ? `${several(lostFiles, 'published file was', 'published files were')} gone or changed at ` +
          `${destination}, and copied again`
        : `the last publish to ${destination} did not finish`
    return [look(reasonAbout('published', lostFiles, at), 'look', text, `pitlake publish --verify ${destination}`)]
  })
}

function remarks(facts: StatusFacts): Reason[] {
  const reasons: Reason[] = []
  const say = (kind: ReasonKind, count: number, text: string, next: string | null) =>
    reasons.push(note(reasonAbout(kind, count), text, next))
  if (facts.synthetic) say('synthetic', 1, 'the data are synthetic: for trying out, not for research', null)
  const { length } = facts.running
  if (length > 0) say('running', length, `a ${facts.running.join(' and a ')} job is at work`, null)
  const withdrawn = facts.refused.withdrawn - facts.refused.unacknowledged
  const withdrawnText = `${several(withdrawn, 'series was', 'series were')} withdrawn by the provider`
  if (withdrawn > 0) say('withdrawn', withdrawn, withdrawnText, "pitlake sql 'FROM gaps'")
  const { months, points: again } = facts.observed_again
  const anew =
    `${several(again, 'point')} of ${several(months, 'month')} of series, lost with a file, are known from when ` +
    'they were observed again'
  if (months > 0) say('observed_again', months, anew, 'pitlake doctor')
  const { contradicted = 0, imprecise = 0, imprecise_points: points = 0 } = facts.rules ?? {}
  const rules = (count: number): string => several(count, 'availability rule is', 'availability rules are')
  if (contradicted > 0) say('rules', contradicted, contradictedText(contradicted), 'pitlake audit availability')
  // A point with computed_at has its own instant.
  const early =
    points === 0 ? '' : `: ${several(points, 'point')} without computed_at may count as known minutes too early`
  if (imprecise > 0) say('rules', imprecise, `${rules(imprecise)} imprecise${early}`, 'pitlake audit availability')
  const unshown =
    `the provider refuses to show the stored history of ${several(facts.verified.refused, 'series', 'series')} ` +
    'again: it cannot be verified'
  if (facts.verified.refused > 0) say('verified', facts.verified.refused, unshown, 'pitlake verify')
  if (facts.coverage.held > 0 && facts.verified.windows === 0)
    say('verified', 0, 'no stored point was verified yet', 'pitlake verify')
  return reasons
}

/** Formats a span as people say it: rounded to minutes, hours or days. */
function roughly(seconds: number): string {
  if (seconds >= 2 * day) return `${Math.round(seconds / day)} days`
  if (seconds >= 2 * hour) return `${Math.round(seconds / hour)} h`
  return seconds >= minute ? `${Math.round(seconds / minute)} min` : formatDuration(Math.round(seconds))
}
