import type { Reason, Standing } from '../page/standing.ts'
import { formatDuration, type Instant } from '../time.ts'

type Facts = Omit<Standing, 'trust' | 'reasons'>

const minute = 60
const hour = 3600
const day = 86_400

/** Why the lake should not be trusted blindly now, the weightiest first. */
export function reasonsOf(facts: Facts, now: Instant): Reason[] {
  if (facts.version === 0) return [{ level: 'no', text: 'nothing has been committed yet', next: 'pitlake fetch' }]
  return [...damage(facts), ...upstream(facts), ...freshness(facts), ...remarks(facts, now)]
}

/** The weightiest reason decides. */
export function trustOf(reasons: readonly Reason[]): Standing['trust'] {
  if (reasons.some((reason) => reason.level === 'no')) return 'no'
  return reasons.some((reason) => reason.level === 'look') ? 'look' : 'yes'
}

function damage({ files_damaged }: Facts): Reason[] {
  if (files_damaged === 0) return []
  const text = `${several(files_damaged, 'file')} of the lake ${files_damaged === 1 ? 'is' : 'are'} lost or cut`
  return [{ level: 'no', text, next: 'pitlake doctor' }]
}

function upstream({ violations, verified, windows }: Facts): Reason[] {
  const found: Reason[] = []
  if (violations > 0)
    found.push({
      level: 'look',
      text: `${several(violations, 'stored value')} differ upstream; both are kept, the stored one holds`,
      next: "pitlake sql 'FROM violations'",
    })
  if (verified.differing > 0)
    found.push({
      level: 'look',
      text: `${several(verified.differing, 'verified window')} differed`,
      next: 'pitlake verify',
    })
  if (windows.failed > 0)
    found.push({ level: 'look', text: `${several(windows.failed, 'window')} failed`, next: 'pitlake fetch' })
  return found
}

function freshness({ freshness: { behind, stopped, overdue_seconds } }: Facts): Reason[] {
  const found: Reason[] = []
  if (behind > 0)
    found.push({
      level: 'look',
      text: `${several(behind, 'series', 'series')} ${behind === 1 ? 'has' : 'have'} points due that nobody asked for, for up to ${roughly(overdue_seconds)}`,
      next: 'pitlake fetch',
    })
  if (stopped > 0)
    found.push({
      level: 'look',
      text: `${several(stopped, 'series', 'series')} ${stopped === 1 ? 'has' : 'have'} had no new point for longer than tolerated`,
      next: "pitlake sql 'FROM gaps'",
    })
  return found
}

function remarks(facts: Facts, now: Instant): Reason[] {
  const found: Reason[] = []
  const note = (text: string, next: string | null) => found.push({ level: 'note', text, next })
  if (facts.synthetic) note('the data are synthetic: for trying out, not for research', null)
  if (facts.running.length > 0) note(`a ${facts.running.join(' and a ')} job is at work`, null)
  if (facts.coverage.held > 0 && facts.verified.windows === 0) note('nothing was verified yet', 'pitlake verify')
  const feed = facts.registry.feed_at
  const silent = feed === null ? 0 : now - Date.parse(feed) / 1000
  if (silent > day) note(`the registry was last polled ${roughly(silent)} ago`, 'pitlake registry sync')
  return found
}

function several(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`
}

/** A span as people say it: rounded to minutes, hours or days. */
function roughly(seconds: number): string {
  if (seconds >= 2 * day) return `${Math.round(seconds / day)} days`
  if (seconds >= 2 * hour) return `${Math.round(seconds / hour)} h`
  return seconds >= minute ? `${Math.round(seconds / minute)} min` : formatDuration(Math.round(seconds))
}
