import { z } from 'zod'
import { day, intervals, parseDuration, parseInstant } from '../time.ts'
import type { YamlText } from './document.ts'
import { metricPath } from './listing.ts'
import type { RuleTime } from './rule-kinds.ts'
import { wireRow } from './wire.ts'

/** `20m`, `2h`, `3d` as seconds; 0 needs no unit. */
export const duration = z
  .union([z.string(), z.number()])
  .refine((value) => parseDuration(String(value)) !== undefined, 'a duration such as 20m, 2h or 3d')
  .transform((value) => parseDuration(String(value)) ?? Number.NaN)

/** An ISO date or instant as Unix seconds; zone-less means UTC. */
export const instant = z
  .union([z.string(), z.number().int()])
  .refine((value) => parseInstant(String(value)) !== undefined, 'a date such as 2024-06-01 or an instant with Z')
  .transform((value) => parseInstant(String(value)) ?? Number.NaN)

const interval = z.enum(intervals)
const word = z.string().min(1)
const words = z.array(word)
const setOrList = z.union([word, words])

const longestLag = 366 * day

/** How the time of an availability rule is written, in the catalogue and in the config. */
export const ruleTimeKeys = {
  lag: duration.refine((seconds) => seconds <= longestLag, 'at most 366d').optional(),
  daily_at: z
    .string()
    .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a UTC time of day such as "10:15"')
    .optional(),
  days: z.number().int().min(1).max(366).optional(),
}

type WrittenTime = { readonly [K in keyof typeof ruleTimeKeys]?: z.output<(typeof ruleTimeKeys)[K]> }

/** Whether a row states a time. */
export function isTimed({ lag, daily_at: clock }: WrittenTime): boolean {
  return lag !== undefined || clock !== undefined
}

/** The time that a row states. */
export function timeOf({ lag = 0, daily_at: clock, days = 1 }: WrittenTime): RuleTime {
  if (clock === undefined) return { kind: 'lag', seconds: lag }
  const [hours = 0, minutes = 0] = clock.split(':').map(Number)
  return { kind: 'clock', minuteOfDay: hours * 60 + minutes, days }
}

/** What is wrong with the time of a row, where it must have one; null when nothing is. */
export function wrongTime({ lag, daily_at: clock, days }: WrittenTime): string | null {
  if ((lag === undefined) === (clock === undefined)) return 'either `lag` or `daily_at` with `days`'
  return days !== undefined && clock === undefined ? '`days` only with `daily_at`' : null
}

/** An availability rule as written: a lag after the interval's end, or a clock time some days after `t`. */
const availabilityRow = z
  .strictObject({
    ...ruleTimeKeys,
    paths: words.min(1),
    intervals: z.array(interval).min(1).optional(),
    basis: z.enum(['stated', 'assumed']),
    quote: word.optional(),
    reason: word.optional(),
    until: instant.optional(),
  })
  .superRefine((rule, context) => {
    const fail = (message: string) => context.addIssue({ code: 'custom', message })
    const wrong = wrongTime(rule)
    if (wrong !== null) fail(wrong)
    if (rule.basis === 'stated' && rule.quote === undefined) fail('a `quote` for basis stated')
    if (rule.basis === 'assumed' && rule.reason === undefined) fail('a `reason` for basis assumed')
  })

const endpointRow = z.strictObject({
  path: z.string().regex(metricPath, 'a path such as supply/current_pit'),
  ask: z.string().regex(metricPath, 'a path such as supply/current_pit').optional(),
  about: z.string().optional(),
  intervals: setOrList.optional(),
  currencies: setOrList.optional(),
  exchanges: setOrList.optional(),
  networks: setOrList.optional(),
  takes: z.array(z.enum(['since', 'until', 'format', 'timestamp_format'])).optional(),
  params: z.record(word, z.union([z.string(), z.number(), z.boolean()]).transform(String)).optional(),
  default: z
    .strictObject({
      interval: interval.optional(),
      currency: word.optional(),
      exchange: word.optional(),
      network: word.optional(),
    })
    .optional(),
  tolerance: duration.optional(),
  overlap: z.enum(['exact', 'fixed_range', 'off']).optional(),
  extra: z.record(z.string(), z.unknown()).optional(),
})

/** Names of tables and columns: they stand in SQL, in folders and in keys of JSON. */
const name = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,59}$/, 'a name of small letters, digits and _ that begins with a letter')

const fieldRow = z.strictObject({
  kind: z.enum(['text', 'answer', 'reference']),
  keys: words.min(1).optional(),
  values: word.optional(),
  to: word.optional(),
})

const resourceRow = z.strictObject({
  entity: word,
  path: z.string().regex(/^(?:\/[\w.-]+)+$/, 'a path such as /issuers'),
  detail: z.boolean(),
  fields: z.record(name, fieldRow),
  embeds: z.record(word, name),
  filters: words,
})

const linkRow = z
  .strictObject({
    metric_asset: word,
    product_id: word.optional(),
    chain_id: z.union([z.string(), z.number()]).transform(String).optional(),
    address: word.optional(),
    from: instant.optional(),
    until: instant.optional(),
  })
  .refine((link) => (link.product_id === undefined) === (link.chain_id !== undefined && link.address !== undefined), {
    message: 'either `product_id` or `chain_id` with `address`',
  })
  .transform(({ metric_asset: metricAsset, product_id: productId = null, chain_id: chainId = null, ...rest }) => {
    const { address = null, from = null, until = null } = rest
    return { metricAsset, productId, chainId, address, from, until }
  })

/** A hand-made link between an asset of the metrics API and a registry product or contract. */
export type Link = Readonly<z.infer<typeof linkRow>>

const sets = z.record(word, words.min(1))

/** One catalogue file; any file may hold any of the top-level keys. */
export const catalogueFile = z.strictObject({
  frequencies: z.record(word, z.array(interval).min(1)).optional(),
  currencies: sets.optional(),
  exchanges: sets.optional(),
  networks: sets.optional(),
  default: z.strictObject({ interval: z.array(interval), currency: words, exchange: words, network: words }).optional(),
  placeholders: z.strictObject({ words, exchanges: words }).optional(),
  availability: z.array(availabilityRow).optional(),
  endpoints: z.array(endpointRow).optional(),
  wire: wireRow.optional(),
  registry_sets: z.record(word, z.strictObject({ open: z.boolean(), values: words })).optional(),
  resources: z.record(name, resourceRow).optional(),
  links: z.array(linkRow).optional(),
})

export type CatalogueFile = z.infer<typeof catalogueFile>

/** One parsed file and the means to point into it. */
export interface SourceFile {
  readonly yaml: YamlText
  readonly content: CatalogueFile
  /** The number of a list's row in the text, of which rows with problems may have been left out. */
  readonly row: (key: 'availability' | 'endpoints', index: number) => number
}

export type ResourceRow = z.infer<typeof resourceRow>
export type EndpointRow = z.infer<typeof endpointRow>
export type AvailabilityRow = z.infer<typeof availabilityRow>
