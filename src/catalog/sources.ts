import { z } from 'zod'
import { type Interval, intervals, isZone, longestSeconds, parseDuration } from '../base/time.ts'

const word = z.string().min(1)
const words = z.array(word).default([])

/** A name for user data. */
export const ownName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_]{0,59}(?:\/[a-z0-9][a-z0-9_]{0,59}){0,3}$/, 'a name of small letters, digits and _')

/**
 * The time from which a value, or a part of it, is known: seconds after the start or end of its interval, or after a
 * session's close.
 */
interface KnownFrom {
  readonly from: 'start' | 'end' | 'close'
  readonly seconds: number
}

/** The rule for daily exports: the end of the day in the name of the file. */
export const exportRule = 'export'

/** Parses the rule `end+15m`, or one rule per component; '' is the whole value. Null for an invalid text. */
function readRule(text: string): ReadonlyMap<string, KnownFrom> | null {
  const moments = new Map<string, KnownFrom>()
  for (const part of text === exportRule ? ['end'] : text.split(',')) {
    const [, name = '', from = '', after = '0'] =
      /^(?:(.+)=)?\s*(start|end|close)(?:\s*\+\s*(.+))?$/.exec(part.trim()) ?? []
    const seconds = parseDuration(after)
    if (from === '' || seconds === undefined || moments.has(name)) return null
    moments.set(name, { from: from as KnownFrom['from'], seconds })
  }
  return moments.has('') && moments.size > 1 ? null : moments
}

/** The columns of a file by meaning; `=BTC` in place of a column is a constant. */
const mapping = {
  asset: word.optional(),
  t: word.optional(),
  value: word.optional(),
  components: z.array(word).min(1).optional(),
  interval: z.enum(intervals).optional(),
  timestamp: z.enum(['interval_start', 'interval_end']).optional(),
  available_at: word.optional(),
  available: z
    .string()
    .refine(
      (text) => readRule(text) !== null,
      'a rule such as end, end+15m, start, open=start,close=end, close+15m (with sessions) or export',
    )
    .optional(),
  zone: z.string().refine(isZone, 'a zone such as UTC or America/New_York').optional(),
  /** The choice between two timestamps if the clocks of the zone show a time twice. */
  ambiguous: z.enum(['earlier', 'later']).optional(),
  unit: z.enum(['s', 'ms', 'us', 'ns']).optional(),
  /** The text that means a missing value, such as `.`; an empty cell always means one. */
  null_text: word.optional(),
  /** Days on which points are expected; all days by default. */
  expected: z.enum(['weekdays']).optional(),
  /** The exchange whose sessions date the values. */
  sessions: word.optional(),
  vintage: word.optional(),
  revisable: z.boolean().optional(),
  currency: word.optional(),
  exchange: word.optional(),
  network: word.optional(),
}

/** Reports keys that contradict one another. */
function sound(row: SourceMapping, { addIssue }: Pick<z.core.$RefinementCtx, 'addIssue'>): void {
  const { value, components, available, available_at, vintage, sessions, expected } = row
  const rules = [...(readRule(available ?? 'end') ?? new Map<string, KnownFrom>())]
  const atClose = rules.filter(([, { from }]) => from === 'close')
  const parts = [...(readRule(available ?? 'end') ?? new Map<string, KnownFrom>()).keys()].filter((part) => part !== '')
  const stray = parts.find((part) => components?.includes(part) !== true)
  const wrong: readonly (readonly [boolean, keyof SourceMapping, string])[] = [
    [value !== undefined && components !== undefined, 'components', 'either `value` or `components`'],
    [available !== undefined && available_at !== undefined, 'available', 'either `available` or `available_at`'],
    [vintage !== undefined && available_at !== undefined, 'vintage', 'either `vintage` or `available_at`'],
    [
      atClose.length > 0 && sessions === undefined,
      'available',
      '`sessions` with `close`: the exchange whose close is meant',
    ],
    [atClose.some(([part]) => part !== ''), 'available', '`close` for the whole value, not for a part'],
    [sessions !== undefined && expected !== undefined, 'expected', 'either `sessions` or `expected`'],
    [stray !== undefined, 'available', `a rule for parts that \`components\` names, not ${stray}`],
  ]
  for (const [is, key, message] of wrong) if (is) addIssue({ code: 'custom', message, path: [key] })
}

/** A mapping without its files. */
export const mappingRow = z.strictObject(mapping).superRefine(sound)

/** A mapping with the files that it maps: each a path, a glob or a SELECT. */
export const placedRow = z
  .strictObject({ ...mapping, files: z.union([word.transform((file) => [file]), z.array(word).min(1)]) })
  .superRefine(sound)

export type SourceMapping = Readonly<z.infer<z.ZodObject<typeof mapping>>>

/** User data as a lake records it: its mapping, its files, and the values of each dimension that occur. */
export const ownRow = z.object({
  mapping: z.object(mapping),
  files: words,
  intervals: z.array(z.enum(intervals)).default([]),
  currencies: words,
  exchanges: words,
  networks: words,
  /** Description; absent if the user gave none. */
  about: word.optional(),
})

export type OwnRow = Readonly<z.infer<typeof ownRow>>

/** The time from which a value is known if the mapping states none. */
export const unsaid: KnownFrom = { from: 'end', seconds: 0 }

/**
 * Returns the rules by which the parts of a value are known, by component; '' is the whole value, which is known once
 * its last part is. Parts that are not known earlier are left out.
 */
export function momentsOf(
  { available, components = [] }: SourceMapping,
  interval: Interval,
): ReadonlyMap<string, KnownFrom> {
  const ruleTimes = readRule(available ?? 'end') ?? new Map<string, KnownFrom>()
  const parts = components.map((part): [string, KnownFrom] => [
    part,
    ruleTimes.get(part) ?? ruleTimes.get('') ?? unsaid,
  ])
  const late = ({ from, seconds }: KnownFrom): number => seconds + (from === 'start' ? 0 : longestSeconds(interval))
  const latestMoment = [...ruleTimes.values(), ...parts.map(([, moment]) => moment)].toSorted(
    (a, b) => late(b) - late(a),
  )[0]
  return new Map([
    ['', latestMoment ?? unsaid],
    ...parts.filter(([, moment]) => latestMoment && late(moment) < late(latestMoment)),
  ])
}
