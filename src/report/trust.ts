import type { RegistryFacts } from '../registry/status.ts'
import type { Reason, Standing } from './page/standing.ts'
import type { Check } from '../config/health.ts'
import { several } from './page/words.ts'
import { day, formatDuration, hour, type Instant, instantOf, minute } from '../time.ts'

type Facts = Omit<Standing, 'trust' | 'reasons'>

/** What is judged beside the facts: what is still well, and how many series are late by it. */
export interface Judging {
  readonly check: Check
  readonly late: { readonly series: number; readonly seconds: number; readonly stopped: number }
}

/** Why the lake should not be trusted blindly now, the weightiest first. */
export function reasonsOf(facts: Facts, now: Instant, { check, late }: Judging): Reason[] {
  if (facts.version === 0)
    return [{ level: 'no', word: 'stale', text: 'nothing has been committed yet', next: 'pitlake fetch' }]
  const { maxFeedAge } = check
  const reasons = [
    ...damage(facts),
    ...upstream(facts, check),
    ...freshness(late, check),
    ...holes(facts, check),
    ...polled(facts, now, maxFeedAge),
    ...remarks(facts),
  ]
  const { mirror_of: source } = facts
  if (source === null) return reasons
  // What writes is for the lake that it came from.
  return reasons.map((one) => (elsewhere.test(one.next ?? '') ? { ...one, next: `pitlake pull ${source}` } : one))
}

const elsewhere = /^pitlake (?:fetch|verify|registry|doctor)\b/

/** The weightiest reason decides. */
export function trustOf(reasons: readonly Reason[]): Standing['trust'] {
  if (reasons.some((reason) => reason.level === 'no')) return 'no'
  return reasons.some((reason) => reason.level === 'look') ? 'look' : 'yes'
}

function damage({ files_damaged }: Facts): Reason[] {
  if (files_damaged === 0) return []
  const text = `${several(files_damaged, 'file of the lake is', 'files of the lake are')} lost or cut`
  return [{ level: 'no', word: 'integrity', text, next: 'pitlake doctor' }]
}

/** What wants a look; where it is within what is tolerated it is only said. */
function look(word: NonNullable<Reason['word']>, text: string, next: string, tolerated = false): Reason {
  return tolerated ? note(text, next) : { level: 'look', word, text, next }
}

function note(text: string, next: string | null): Reason {
  return { level: 'note', word: null, text, next }
}

function upstream(
  { violations, windows, refused, registry }: Facts,
  { maxViolations, maxFindings, maxFailed }: Check,
): Reason[] {
  const found: Reason[] = []
  if (refused.series > 0) {
    const series = several(refused.series, 'series that has points is', 'series that have points are')
    found.push(look('look', `${series} refused since ${refused.since}: ${refused.words}`, 'pitlake violations list'))
  }
  if (violations > 0) {
    const values = several(violations, 'stored value differs', 'stored values differ')
    const text = `${values} upstream; both are kept, the stored one holds`
    found.push(look('integrity', text, 'pitlake violations list', violations <= maxViolations))
  }
  const findings = registry.findings ?? 0
  if (findings > 0) {
    const records = several(findings, 'record of the registry contradicts', 'records of the registry contradict')
    const next = "pitlake violations list --resources '*'"
    found.push(look('integrity', `${records} what snapshot and feed gave`, next, findings <= maxFindings))
  }
  const failed = windows.failed - refused.windows
  if (failed > 0) found.push(look('look', `${several(failed, 'window')} failed`, 'pitlake fetch', failed <= maxFailed))
  return found
}

function freshness({ series, seconds, stopped }: Judging['late'], { maxLate }: Check): Reason[] {
  const found: Reason[] = []
  const why =
    maxLate.length === 0
      ? `${several(series, 'series has', 'series have')} points due that nobody asked for, for`
      : `${several(series, 'series lacks', 'series lack')} a point that was not to be so late: due for`
  if (series > 0) found.push(look('stale', `${why} up to ${roughly(seconds)}`, 'pitlake fetch'))
  const quiet = `${several(stopped, 'series has', 'series have')} had no new point for longer than tolerated`
  if (stopped > 0) found.push(look('look', quiet, "pitlake sql 'FROM gaps'"))
  return found
}

function holes({ gaps }: Facts, { maxGaps }: Check): Reason[] {
  if (maxGaps === null || gaps <= maxGaps) return []
  const text = `points are missing for good in ${several(gaps, 'window')}, more than the ${maxGaps} that are tolerated`
  return [look('look', text, "pitlake sql 'FROM gaps'")]
}

/** A registry that was followed once and is no longer. */
function polled(facts: Facts, now: Instant, maxFeedAge: number): Reason[] {
  const silent = silenceOf(facts.registry, now)
  if (silent <= Math.min(day, maxFeedAge)) return []
  const text = `the registry was last polled ${roughly(silent)} ago`
  return [look('stale', text, 'pitlake registry sync', silent <= maxFeedAge)]
}

/** For how long the registry was not polled, in seconds; 0 where it never was. */
export function silenceOf(
  { feed_at, last_snapshot }: Pick<RegistryFacts, 'feed_at' | 'last_snapshot'>,
  now: Instant,
): number {
  const last = feed_at ?? last_snapshot
  return last === null ? 0 : now - instantOf(last)
}

function remarks(facts: Facts): Reason[] {
  const found: Reason[] = []
  const say = (text: string, next: string | null) => found.push(note(text, next))
  if (facts.synthetic) say('the data are synthetic: for trying out, not for research', null)
  if (facts.running.length > 0) say(`a ${facts.running.join(' and a ')} job is at work`, null)
  const { withdrawn } = facts.refused
  if (withdrawn > 0)
    say(`${several(withdrawn, 'series was', 'series were')} withdrawn by the provider`, "pitlake sql 'FROM gaps'")
  const { disproved = 0, imprecise = 0, imprecise_points: points = 0 } = facts.rules ?? {}
  const rules = (count: number): string => several(count, 'availability rule is', 'availability rules are')
  if (disproved > 0) say(`${rules(disproved)} disproved`, 'pitlake audit availability')
  // A point that tells computed_at has its own instant.
  const early =
    points === 0 ? '' : `: ${several(points, 'point')} without computed_at may count as known minutes too early`
  if (imprecise > 0) say(`${rules(imprecise)} imprecise${early}`, 'pitlake audit availability')
  if (facts.coverage.held > 0 && facts.verified.windows === 0) say('nothing was verified yet', 'pitlake verify')
  return found
}

/** A span as people say it: rounded to minutes, hours or days. */
function roughly(seconds: number): string {
  if (seconds >= 2 * day) return `${Math.round(seconds / day)} days`
  if (seconds >= 2 * hour) return `${Math.round(seconds / hour)} h`
  return seconds >= minute ? `${Math.round(seconds / minute)} min` : formatDuration(Math.round(seconds))
}
