import { dirname } from 'node:path'
import type { Catalogue } from './catalogue.ts'
import { globTest, globWeight } from './globs.ts'
import { usage } from '../base/errors.ts'
import { hint } from '../base/suggestion.ts'
import { day } from '../base/time.ts'
import { pathNames } from './series.ts'
import type { Config } from './config.ts'

/** The limits unless the config file sets others: `status --check`, `/healthz` and the hooks judge by them. */
export const usualCheck: Check = {
  maxLate: [],
  schedule: null,
  /**
   * Maximum age of the last poll: a gap in the registry's feed can be filled only while the provider still serves the
   * feed.
   */
  maxFeedAge: 3 * day,
  maxViolations: 0,
  maxFindings: 0,
  maxFailed: 0,
  maxGaps: null,
}

/** The maximum lateness of the points of some paths. */
export interface LateLimit {
  /** A glob of paths. */
  readonly pattern: string
  readonly seconds: number
}

/** The limits within which `status --check` calls a lake well. */
export interface Check {
  /** Maximum lateness of points by pattern; paths that no pattern matches follow the built-in criteria. */
  readonly maxLate: readonly LateLimit[]
  /** Time between two fetches, seconds; null to infer it from the runs. */
  readonly schedule: number | null
  /** Maximum age of the last poll of the registry's feed, seconds. */
  readonly maxFeedAge: number
  /** The most open violations. */
  readonly maxViolations: number
  /** The most open findings of the registry. */
  readonly maxFindings: number
  /** The most failed coverage ranges. */
  readonly maxFailed: number
  /** The most gaps; null for any number. */
  readonly maxGaps: number | null
}

export const hookNames = ['on_done', 'on_violation', 'on_stale', 'on_head'] as const

/** The commands to run when something has happened. */
export type Hooks = {
  /** Commands by event: a line for the shell, or a program and its arguments. */
  readonly commands: Readonly<Partial<Record<(typeof hookNames)[number], string | readonly string[] | undefined>>>
  /** Time limit of each command, seconds. */
  readonly limit: number
  /** Working directory of the commands: the folder of the config file. */
  readonly folder: string
}

/** Reads limits and hooks from the config file at `file`. */
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

/**
 * Returns the maximum lateness of a path, in seconds: that of the most precise pattern, or the strictest of several
 * equal ones; null if none matches.
 */
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

/** Refuses a pattern that matches no endpoint. */
export function refuseUnmatched(pattern: string, { endpoints }: Catalogue, subject: string): void {
  const paths = [...endpoints.values()].flatMap(pathNames)
  if (paths.some(globTest(pattern))) return
  throw usage(subject, {
    expected: 'a pattern that matches an endpoint',
    got: 'no match',
    next: hint(pattern, paths),
  })
}
