import type { Reason, Standing } from './page/standing.ts'
import { several } from './page/words.ts'
import { formatDuration, type Instant, instantOf } from '../time.ts'

type Facts = Omit<Standing, 'trust' | 'reasons'>

const minute = 60
const hour = 3600
const day = 86_400

/** Why the lake should not be trusted blindly now, the weightiest first. */
export function reasonsOf(facts: Facts, now: Instant): Reason[] {
  if (facts.version === 0)
    return [{ level: 'no', word: 'stale', text: 'nothing has been committed yet', next: 'pitlake fetch' }]
  const reasons = [...damage(facts), ...upstream(facts), ...freshness(facts), ...polled(facts, now), ...remarks(facts)]
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

function upstream({ violations, windows, refused }: Facts): Reason[] {
  const found: Reason[] = []
  if (refused.series > 0)
    found.push({
      level: 'look',
      word: 'look',
      text: `${several(refused.series, 'series', 'series')} that ${refused.series === 1 ? 'has' : 'have'} points ${refused.series === 1 ? 'is' : 'are'} refused since ${refused.since}: ${refused.words}`,
      next: 'pitlake violations list',
    })
  if (violations > 0)
    found.push({
      level: 'look',
      word: 'integrity',
      text: `${several(violations, 'stored value')} differ upstream; both are kept, the stored one holds`,
      next: 'pitlake violations list',
    })
  const failed = windows.failed - refused.windows
  if (failed > 0)
    found.push({ level: 'look', word: 'look', text: `${several(failed, 'window')} failed`, next: 'pitlake fetch' })
  return found
}

function freshness({ freshness: { behind, stopped, overdue_seconds } }: Facts): Reason[] {
  const found: Reason[] = []
  if (behind > 0)
    found.push({
      level: 'look',
      word: 'stale',
      text: `${several(behind, 'series', 'series')} ${behind === 1 ? 'has' : 'have'} points due that nobody asked for, for up to ${roughly(overdue_seconds)}`,
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

/** What the feed of the registry told between two polls can be made up for only as long as the provider keeps it. */
const longSilence = 3 * day

/** A registry that was followed once and is no longer. */
function polled({ registry: { feed_at, last_snapshot } }: Facts, now: Instant): Reason[] {
  const last = feed_at ?? last_snapshot
  const silent = last === null ? 0 : now - instantOf(last)
  if (silent <= day) return []
  const text = `the registry was last polled ${roughly(silent)} ago`
  const next = 'pitlake registry sync'
  return [
    silent > longSilence ? { level: 'look', word: 'stale', text, next } : { level: 'note', word: null, text, next },
  ]
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
