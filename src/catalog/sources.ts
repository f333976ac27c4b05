import { z } from 'zod'
import { type Interval, intervals, longestSeconds, parseDuration } from '../base/time.ts'

const word = z.string().min(1)
const words = z.array(word).default([])

/** A name for user data. */
export const ownName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_]{0,59}(?:\/[a-z0-9][a-z0-9_]{0,59}){0,3}$/, 'a name of small letters, digits and _')

/**
 * When a part of a value, or the whole, is known: so many seconds after the start or end of its interval, or a
 * session's close.
 */
interface KnownFrom {
  readonly from: 'start' | 'end' | 'close'
  readonly seconds: number
}

/** The end of the day that the name of a file tells: of exports, one a day. */
export const exportRule = 'export'

/** The rule `end+15m`, or one for each of some components; '' is the whole. Null for a text that is none. */
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

/** Which column of a file says what; `=BTC` in the place of a column is what none says. */
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
  /** Which of two is meant where the clocks of the zone show a time twice. */
  ambiguous: z.enum(['earlier', 'later']).optional(),
  unit: z.enum(['s', 'ms', 'us', 'ns']).optional(),
  /** The text that stands for a missing value, such as `.`; an empty cell is missing in any case. */
  null_text: word.optional(),
  /** On which days points are expected: on all unless said. */
  expected: z.enum(['weekdays']).optional(),
  /** The exchange on whose sessions the values are. */
  sessions: word.optional(),
  vintage: word.optional(),
  revisable: z.boolean().optional(),
  currency: word.optional(),
  exchange: word.optional(),
  network: word.optional(),
}

function isZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** Tells of keys that contradict one another. */
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

/** A mapping by itself, whoever says it. */
export const mappingRow = z.strictObject(mapping).superRefine(sound)

/** A mapping with the files that it maps: each a path, a glob or a SELECT. */
export const placedRow = z
  .strictObject({ ...mapping, files: z.union([word.transform((file) => [file]), z.array(word).min(1)]) })
  .superRefine(sound)

export type SourceMapping = Readonly<z.infer<z.ZodObject<typeof mapping>>>

/** What a lake keeps of own data: how it was mapped, from which files, and what of each dimension there is. */
export const ownRow = z.object({
  mapping: z.object(mapping),
  files: words,
  intervals: z.array(z.enum(intervals)).default([]),
  currencies: words,
  exchanges: words,
  networks: words,
  /** What it is, where somebody said so. */
  about: word.optional(),
})

export type OwnRow = Readonly<z.infer<typeof ownRow>>

/** When a value is known unless the mapping states it. */
export const unsaid: KnownFrom = { from: 'end', seconds: 0 }

/** The rules by which the parts of a value are known; '' is the whole: when the last of them is. */
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
