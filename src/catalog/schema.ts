import { z } from 'zod'
import { offeredIntervals } from '../base/time.ts'
import { duration, instant, type YamlText } from './document.ts'
import { metricPath } from './listing.ts'
import { featureRow } from './features.ts'
import { ruleTimeKeys, wrongTime } from './rule-kinds.ts'
import { ownName, placedRow } from './sources.ts'
import { sessionRows } from './sessions.ts'
import { wireRow } from './wire.ts'

const interval = z.enum(offeredIntervals)
const word = z.string().min(1)
const words = z.array(word)
const setOrList = z.union([word, words])

/** An availability rule as written: a lag after the interval's end, or a clock time some days after `t`. */
const availabilityRow = z
  .strictObject({
    ...ruleTimeKeys(),
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

/* Rows as written are derived from their schemas, which state each key once. */

/** A row of `availability:`. */
export type AvailabilityRow = z.infer<typeof availabilityRow>

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
  revisable: z.boolean().optional(),
  extra: z.record(z.string(), z.unknown()).optional(),
})

/** A row of `endpoints:`. */
export type EndpointRow = z.infer<typeof endpointRow>

/** Names of tables and columns, which are used in SQL, in folder names and in keys of JSON. */
const name = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,59}$/, 'a name of small letters, digits and _ that begins with a letter')

const fieldRow = z.strictObject({
  kind: z.enum(['text', 'answer', 'reference']),
  keys: words.min(1).optional(),
  values: word.optional(),
  to: word.optional(),
})

/** A field of a resource. */
export type FieldRow = z.infer<typeof fieldRow>

const resourceRow = z.strictObject({
  entity: word,
  path: z.string().regex(/^(?:\/[\w.-]+)+$/, 'a path such as /issuers'),
  detail: z.boolean(),
  fields: z.record(name, fieldRow),
  embeds: z.record(word, name),
  filters: words,
})

/** A resource of `resources:`. */
export type ResourceRow = z.infer<typeof resourceRow>

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

const symbolVariantRow = z.strictObject({ metrics: word, registry: z.string() })

/** Endings of one symbol: at the metrics API, and the replacement in the registry. */
export type SymbolVariant = Readonly<z.infer<typeof symbolVariantRow>>

const sets = z.record(word, words.min(1))

/** One catalogue file; any file may contain any of the top-level keys. */
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
  sessions: sessionRows.optional(),
  registry_sets: z.record(word, z.strictObject({ open: z.boolean(), values: words })).optional(),
  resources: z.record(name, resourceRow).optional(),
  links: z.array(linkRow).optional(),
  symbol_variants: z.array(symbolVariantRow).optional(),
  /** Registry chain ids by the metrics API's name of a chain. */
  chains: z.record(word, word).optional(),
  sources: z.record(ownName, placedRow).optional(),
  features: z.record(ownName, featureRow).optional(),
})

/** One parsed file and the means to point into it. */
export interface SourceFile {
  readonly yaml: YamlText
  /** Derived, because the schema states each key once. */
  readonly content: z.infer<typeof catalogueFile>
  /** Returns the number of a list's row in the text; rows with problems may have been left out of the list. */
  readonly row: (key: 'availability' | 'endpoints', index: number) => number
}
