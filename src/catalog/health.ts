import { dirname } from 'node:path'
import type { Catalogue } from './catalogue.ts'
import { globTest, globWeight } from './globs.ts'
import { usage } from '../base/errors.ts'
import { hint } from '../base/suggestion.ts'
import { day } from '../base/time.ts'
import type { Config } from './config.ts'

/** What is still well where nothing is said: `status --check`, `/healthz` and the hooks judge by it. Spans are seconds. */
export const usualCheck = {
  /** How long a point may have been due, by pattern of paths; a path that none matches has its usual judgement. */
  maxLate: [] as readonly { readonly pattern: string; readonly seconds: number }[],
  /** How often the lake is fetched; null: as its runs show. */
  schedule: null as number | null,
  /** The registry's feed can be made up for only while the provider keeps it. */
  maxFeedAge: 3 * day,
  maxViolations: 0,
  maxFindings: 0,
  maxFailed: 0,
  /** Null: any number. */
  maxGaps: null as number | null,
}

export type Check = Readonly<typeof usualCheck>

export const hookNames = ['on_done', 'on_violation', 'on_stale', 'on_head'] as const

/** What is run when something has happened. */
type Hooks = {
  /** A line for the shell, or a program and its arguments. */
  readonly commands: Readonly<Partial<Record<(typeof hookNames)[number], string | readonly string[] | undefined>>>
  /** Seconds. */
  readonly limit: number
  /** Where they are run: the folder of the config file. */
  readonly folder: string
}

/** What the config file says of health; `file` is where it stands. */
export function healthOf(config: Partial<Config>, file: string): { readonly check: Check; readonly hooks: Hooks } {
  const { max_late, max_feed_age, max_violations, max_findings, max_failed, max_gaps } = config.check ?? {}
  const { limit, ...commands } = config.hooks ?? {}
  const late = typeof max_late === 'number' ? { '*': max_late } : (max_late ?? {})
  return {
    check: {
      maxLate: Object.entries(late).map(([pattern, seconds]) => ({ pattern, seconds })),
      schedule: config.schedule ?? usualCheck.schedule,
      maxFeedAge: max_feed_age ?? usualCheck.maxFeedAge,
      maxViolations: max_violations ?? usualCheck.maxViolations,
      maxFindings: max_findings ?? usualCheck.maxFindings,
      maxFailed: max_failed ?? usualCheck.maxFailed,
      maxGaps: max_gaps ?? usualCheck.maxGaps,
    },
    hooks: { commands, limit: limit ?? 30, folder: dirname(file) },
  }
}

/** How late the points of a path may be: what names it most exactly holds, of equals the strictest; null where none does. */
export function lateFor({ maxLate }: Pick<Check, 'maxLate'>, path: string): number | null {
  let best = { weight: 0, seconds: Infinity }
  for (const { pattern, seconds } of maxLate) {
    const weight = globWeight(pattern, globTest(pattern), path)
    if (weight > best.weight || (weight === best.weight && weight > 0 && seconds < best.seconds))
      best = { weight, seconds }
  }
  return best.weight === 0 ? null : best.seconds
}

/** Refuses patterns of lateness that no endpoint answers to. */
export function checkLate({ maxLate }: Check, catalogue: Catalogue, where: (path: readonly string[]) => string): void {
  for (const { pattern } of maxLate) refuseUnmatched(pattern, catalogue, where(['check', 'max_late', pattern]))
}

/** Refuses a pattern that stands there and that no endpoint answers to. */
export function refuseUnmatched(pattern: string, { endpoints }: Catalogue, subject: string): void {
  const paths = [...endpoints.keys()]
  if (paths.some(globTest(pattern))) return
  throw usage(subject, {
    expected: 'a pattern that matches an endpoint',
    got: 'no match',
    next: hint(pattern, paths),
  })
}
