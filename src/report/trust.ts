import type { RegistryFacts } from '../registry/status.ts'
import type { Reason, Standing } from './page/standing.ts'
import type { Check } from '../config/health.ts'
import { several } from './page/words.ts'
import { formatDuration, type Instant, instantOf } from '../time.ts'

type Facts = Omit<Standing, 'trust' | 'reasons'>

const minute = 60
const hour = 3600
const day = 86_400

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
  const text = `${several(files_damaged, 'file')} of the lake ${files_damaged === 1 ? 'is' : 'are'} lost or cut`
  return [{ level: 'no', word: 'integrity', text, next: 'pitlake doctor' }]
}

function upstream(
  { violations, windows, refused, registry }: Facts,
  { maxViolations, maxFindings, maxFailed }: Check,
): Reason[] {
  const found: Reason[] = []
  const findings = registry.findings ?? 0
  if (refused.series > 0)
    found.push({
      level: 'look',
      word: 'look',
      text: `${several(refused.series, 'series', 'series')} that ${refused.series === 1 ? 'has' : 'have'} points ${refused.series === 1 ? 'is' : 'are'} refused since ${refused.since}: ${refused.words}`,
      next: 'pitlake violations list',
    })
  if (violations > 0)
    found.push({
      ...(violations > maxViolations ? { level: 'look', word: 'integrity' } : { level: 'note', word: null }),
      text: `${several(violations, 'stored value')} ${violations === 1 ? 'differs' : 'differ'} upstream; both are kept, the stored one holds`,
      next: 'pitlake violations list',
    })
  if (findings > 0)
    found.push({
      ...(findings > maxFindings ? { level: 'look', word: 'integrity' } : { level: 'note', word: null }),
      text: `${several(findings, 'record')} of the registry ${findings === 1 ? 'contradicts' : 'contradict'} what snapshot and feed gave`,
      next: "pitlake violations list --resources '*'",
    })
  const failed = windows.failed - refused.windows
  if (failed > 0)
    found.push({
      ...(failed > maxFailed ? { level: 'look', word: 'look' } : { level: 'note', word: null }),
      text: `${several(failed, 'window')} failed`,
      next: 'pitlake fetch',
    })
  return found
}

function freshness({ series, seconds, stopped }: Judging['late'], { maxLate }: Check): Reason[] {
  const found: Reason[] = []
  const [has, lacks] = series === 1 ? ['has', 'lacks'] : ['have', 'lack']
  const why =
    maxLate.length === 0
      ? `${has} points due that nobody asked for, for`
      : `${lacks} a point that was not to be so late: due for`
  if (series > 0)
    found.push({
      level: 'look',
      word: 'stale',
      text: `${several(series, 'series', 'series')} ${why} up to ${roughly(seconds)}`,
      next: 'pitlake fetch',
    })
  if (stopped > 0)
    found.push({
      level: 'look',
      word: 'look',
      text: `${several(stopped, 'series', 'series')} ${stopped === 1 ? 'has' : 'have'} had no new point for longer than tolerated`,
      next: "pitlake sql 'FROM gaps'",
    })
  return found
}

function holes({ gaps }: Facts, { maxGaps }: Check): Reason[] {
  if (maxGaps === null || gaps <= maxGaps) return []
  const text = `points are missing for good in ${several(gaps, 'window')}, more than the ${maxGaps} that are tolerated`
  return [{ level: 'look', word: 'look', text, next: "pitlake sql 'FROM gaps'" }]
}

/** A registry that was followed once and is no longer. */
function polled(facts: Facts, now: Instant, maxFeedAge: number): Reason[] {
  const silent = silenceOf(facts.registry, now)
  if (silent <= Math.min(day, maxFeedAge)) return []
  const text = `the registry was last polled ${roughly(silent)} ago`
  const next = 'pitlake registry sync'
  return [
    silent > maxFeedAge ? { level: 'look', word: 'stale', text, next } : { level: 'note', word: null, text, next },
  ]
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
  const note = (text: string, next: string | null) => found.push({ level: 'note', word: null, text, next })
  if (facts.synthetic) note('the data are synthetic: for trying out, not for research', null)
  if (facts.running.length > 0) note(`a ${facts.running.join(' and a ')} job is at work`, null)
  const { withdrawn } = facts.refused
  if (withdrawn > 0)
    note(
      `${several(withdrawn, 'series', 'series')} ${withdrawn === 1 ? 'was' : 'were'} withdrawn by the provider`,
      "pitlake sql 'FROM gaps'",
    )
  const { disproved = 0, imprecise = 0, imprecise_points: points = 0 } = facts.rules ?? {}
  if (disproved > 0)
    note(
      `${several(disproved, 'availability rule')} ${disproved === 1 ? 'is' : 'are'} disproved`,
      'pitlake audit availability',
    )
  // A point that tells computed_at has its own instant.
  const early =
    points === 0 ? '' : `: ${several(points, 'point')} without computed_at may count as known minutes too early`
  if (imprecise > 0)
    note(
      `${several(imprecise, 'availability rule')} ${imprecise === 1 ? 'is' : 'are'} imprecise${early}`,
      'pitlake audit availability',
    )
  if (facts.coverage.held > 0 && facts.verified.windows === 0) note('nothing was verified yet', 'pitlake verify')
  return found
}

/** A span as people say it: rounded to minutes, hours or days. */
function roughly(seconds: number): string {
  if (seconds >= 2 * day) return `${Math.round(seconds / day)} days`
  if (seconds >= 2 * hour) return `${Math.round(seconds / hour)} h`
  return seconds >= minute ? `${Math.round(seconds / minute)} min` : formatDuration(Math.round(seconds))
}
