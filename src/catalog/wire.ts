import { z } from 'zod'

/** The parameters whose query key the API description leaves open, and the two it names. */
export const queryKeys = [
  'asset',
  'since',
  'until',
  'interval',
  'format',
  'currency',
  'exchange',
  'network',
  'timestamp_format',
] as const
export type QueryKey = (typeof queryKeys)[number]

/** The spelling of each query parameter. */
export type QueryKeys = Readonly<Record<QueryKey, string>>

/** The usual names of the keys around the records of the registry. */
export const envelopeKeys = [
  'data',
  'as_of',
  'cursor',
  'next_cursor',
  'has_more',
  'entity_type',
  'entity_id',
  'op',
  'record',
] as const
export type EnvelopeKey = (typeof envelopeKeys)[number]

const word = z.string().min(1)

/** The address of a path's metadata (`{path}`), and the keys in them that planning reads. */
export const metadataWire = z.strictObject({
  template: z
    .string()
    .startsWith('/')
    .refine((text) => text.split('{path}').length === 2, 'an address with {path} in it, once'),
  parameters: word,
  timerange: word,
  min: word,
  /** Key of the values that the provider assumes if a request names none. */
  defaults: word.optional(),
  /** Key of the lowest tier of a plan that includes the path. */
  tier: word.optional(),
  /** Key of the flag for a path that is offered for all assets at once. */
  bulk: word.optional(),
  /** Key of the description of the path: a text, or an object with `description` or `name`. */
  about: word.optional(),
  /** Address of the statistics of the path's lag. */
  stats: z
    .string()
    .startsWith('/')
    .refine(
      (text) => ['{path}', '{asset}'].every((name) => text.split(name).length === 2),
      'an address with {path} and {asset} in it, each once',
    )
    .optional(),
  /** Address at which the provider lists the paths of all its metrics. */
  listing: z.string().startsWith('/').optional(),
  /** Address at which the provider describes all its assets, including their contracts. */
  assets: z.string().startsWith('/').optional(),
})

/** The requests that show how a provider answers: an asset, a path with plain and one with nested values. */
const probes = z.strictObject({ asset: word, plain: word, nested: word })

const wireShape = z.strictObject({
  metrics_prefix: z.string().startsWith('/').endsWith('/'),
  assets_path: word,
  metadata: metadataWire,
  query_keys: z.record(z.enum(queryKeys), word),
  probes,
})

/** The spelling of the metrics API in a catalogue file; a user's file names only the differences. */
export const wireRow = wireShape.partial().extend({
  metadata: metadataWire.partial().optional(),
  query_keys: z.partialRecord(z.enum(queryKeys), word).optional(),
  probes: probes.partial().optional(),
})
type WireRow = z.infer<typeof wireRow>

/** The address and the keys of the metadata of the metrics API. */
export type MetadataWire = Readonly<z.infer<typeof metadataWire>>

/** The spelling of addresses and keys at the metrics API. */
export interface Wire {
  readonly metricsPrefix: string
  readonly assetsPath: string
  /** Spelling of the metadata; null if metadata are not requested. */
  readonly metadata: MetadataWire | null
  readonly queryKeys: QueryKeys
  readonly probes: Readonly<z.infer<typeof probes>>
}

/** Merges the spelling of all files, a later one over an earlier one; null if they leave anything open. */
export function wireOf(rows: readonly WireRow[]): Wire | null {
  const over = (key: 'metadata' | 'query_keys' | 'probes') => rows.reduce((all, row) => ({ ...all, ...row[key] }), {})
  const merged = rows.reduce<WireRow>((all, row) => ({ ...all, ...row }), {})
  const inner = { metadata: over('metadata'), query_keys: over('query_keys'), probes: over('probes') }
  const { data } = wireShape.safeParse({ ...merged, ...inner })
  if (data === undefined) return null
  const { metrics_prefix: metricsPrefix, assets_path: assetsPath, query_keys, ...rest } = data
  return { metricsPrefix, assetsPath, queryKeys: query_keys, ...rest }
}
