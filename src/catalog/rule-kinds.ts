import { z } from 'zod'
import { day, type Instant, minute } from '../base/time.ts'
import type { Sql } from '../base/intervals-sql.ts'
import { duration } from './document.ts'

const longestLag = 366 * day

/**
 * One kind of rule: its spelling, its description, and the timestamp from which it calls the point `t` knowable whose
 * interval ends at `close`, in TypeScript and in SQL. A rule of any kind counts one number of seconds.
 */
interface RuleKind {
  /** The keys of a row, all optional: the first identifies a row of this kind, the others only refine it. */
  readonly keys: Readonly<Record<string, z.ZodType>>
  /** Reads the fields that a row of this kind states. */
  read(row: object): object
  seconds(stated: object): number
  /** Describes the rule for people. */
  describe(stated: object): string
  /** Whether its seconds are a lag after the end of the interval. */
  readonly isLag: boolean
  readonly at: (t: Instant, close: Instant, seconds: number) => Instant
  readonly sql: (t: Sql, close: Sql, seconds: Sql) => Sql
  /**
   * SQL for the first start of an interval that is not knowable yet at a given time; `start` and `ceil` give the grid.
   */
  readonly undue: (at: Sql, seconds: Sql, start: (at: Sql) => Sql, ceil: (at: Sql) => Sql) => Sql
}

interface ClockTime {
  readonly minuteOfDay: number
  readonly days: number
}

const table = {
  /** A lag after the interval's end. */
  lag: {
    keys: { lag: duration.refine((seconds) => seconds <= longestLag, 'at most 366d').optional() },
    read: ({ lag: seconds = 0 }: { readonly lag?: number }) => ({ seconds }),
    seconds: ({ seconds }: { readonly seconds: number }) => seconds,
    describe: ({ seconds }: { readonly seconds: number }) => `end of interval + ${formatLag(seconds)}`,
    isLag: true,
    at: (_, close, seconds) => close + seconds,
    sql: (_, close, seconds) => `(${close} + ${seconds})`,
    undue: (at, seconds, start) => start(`(${at} - ${seconds})`),
  },
  /** A clock time some days after `t`. */
  clock: {
    keys: {
      daily_at: z
        .string()
        .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a UTC time of day such as "10:15"')
        .optional(),
      days: z.number().int().min(1).max(366).optional(),
    },
    read: ({ daily_at: clock = '', days = 1 }: { readonly daily_at?: string; readonly days?: number }) => {
      const [hours = 0, minutes = 0] = clock.split(':').map(Number)
      return { minuteOfDay: hours * 60 + minutes, days }
    },
    seconds: ({ minuteOfDay, days }: ClockTime) => days * day + minuteOfDay * minute,
    describe: ({ minuteOfDay, days }: ClockTime) => {
      const [hours, minutes] = [Math.floor(minuteOfDay / 60), minuteOfDay % 60].map((n) => String(n).padStart(2, '0'))
      return `daily at ${hours}:${minutes} UTC, ${days} ${days === 1 ? 'day' : 'days'} after t`
    },
    isLag: false,
    at: (t, close, seconds) => Math.max(close, Math.floor(t / day) * day + seconds),
    sql: (t, close, seconds) => `greatest(${close}, ${t} - ((${t} % ${day}) + ${day}) % ${day} + ${seconds})`,
    // Not knowable yet: intervals that have not ended, and all from the first day whose time has not come.
    undue: (at, seconds, start, ceil) =>
      `least(${start(at)}, ${ceil(`(CAST(floor((${at} - ${seconds}) / ${day}) AS BIGINT) * ${day} + ${day})`)})`,
  },
  /** Time after the interval's start: for user data, whose mapping states it; no catalogue writes it. */
  start: {
    keys: {},
    read: () => ({ seconds: 0 }),
    seconds: ({ seconds }: { readonly seconds: number }) => seconds,
    describe: ({ seconds }: { readonly seconds: number }) => `start of interval + ${formatLag(seconds)}`,
    isLag: false,
    at: (t, _, seconds) => t + seconds,
    sql: (t, _, seconds) => `(${t} + ${seconds})`,
    undue: (at, seconds, _, ceil) => ceil(`(${at} - ${seconds} + 1)`),
  },
} satisfies Readonly<Record<string, RuleKind>>

type Table = typeof table
type RuleName = keyof Table

/** The time part of an availability rule: its kind and its fields. Derived, because `table` lists the kinds once. */
export type RuleTime = { [K in RuleName]: { readonly kind: K } & Readonly<ReturnType<Table[K]['read']>> }[RuleName]

/**
 * Every kind of rule; all code that reads, prints or dates by rules, in TypeScript or SQL, is derived from this table.
 */
export const ruleKinds: Readonly<Record<RuleName, RuleKind>> = table

type RuleKey = { [K in RuleName]: keyof Table[K]['keys'] & string }[RuleName]

/** Returns the keys that state the time of a rule, in the catalogue and in the config. */
export function ruleTimeKeys() {
  const all = Object.values(ruleKinds).map(({ keys }) => keys)
  return Object.assign({}, ...all) as Record<RuleKey, z.ZodOptional>
}

type WrittenTime = { readonly [K in RuleKey]?: unknown }

/** Lists each kind that can be written, with the key that names it and those that only refine it. */
export function spellings() {
  return Object.entries(ruleKinds).flatMap(([kind, { keys }]) => {
    const [first, ...further] = Object.keys(keys)
    return first === undefined ? [] : [{ kind: kind as RuleName, first, further }]
  })
}

function saidIn(row: WrittenTime): (key: string) => boolean {
  const entries = new Map(Object.entries(row))
  return (key) => entries.get(key) !== undefined
}

/** Whether a row states a time. */
export function isTimed(row: WrittenTime): boolean {
  return spellings().some(({ first }) => saidIn(row)(first))
}

/** Returns the time that a row states. */
export function timeOf(row: WrittenTime): RuleTime {
  const { kind } = spellings().find(({ first }) => saidIn(row)(first)) ?? { kind: 'lag' as const }
  return { kind, ...ruleKinds[kind].read(row) } as RuleTime
}

/** Describes the mistake in the time of a row that must state one; null if there is none. */
export function wrongTime(row: WrittenTime): string | null {
  const hasKey = saidIn(row)
  const all = spellings()
  const spelt = all.map(({ first, further }) => [`\`${first}\``, ...further.map((key) => `with \`${key}\``)].join(' '))
  if (all.filter(({ first }) => hasKey(first)).length !== 1) return `either ${spelt.join(' or ')}`
  const stray = all.find(({ first, further }) => !hasKey(first) && further.some(hasKey))
  return stray ? `\`${stray.further.find(hasKey)}\` only with \`${stray.first}\`` : null
}

/** Returns the one number that a rule of any kind counts, in seconds. */
export function countedSeconds(rule: RuleTime): number {
  return ruleKinds[rule.kind].seconds(rule)
}

/** Returns the seconds after the end of the interval that a rule waits for; null for rules that count differently. */
export function lagOf(rule: RuleTime): number | null {
  return ruleKinds[rule.kind].isLag ? countedSeconds(rule) : null
}

/** Formats a rule for people: `end of interval + 20m`, `daily at 10:15 UTC, 1 day after t`. */
export function describeRule(rule: RuleTime): string {
  return ruleKinds[rule.kind].describe(rule)
}

function formatLag(seconds: number): string {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600}h`
  return seconds >= 60 && seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`
}
