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

const word = z.string().min(1)

/** Where the metadata of a path (`{path}`) stand, and the keys in them that planning reads. */
export const metadataWire = z.strictObject({
  template: z
    .string()
    .startsWith('/')
    .refine((text) => text.split('{path}').length === 2, 'an address with {path} in it, once'),
  parameters: word,
  timerange: word,
  min: word,
})

/** How a catalogue file writes down the spelling of the metrics API. */
export const wireRow = z
  .strictObject({
    metrics_prefix: z.string().startsWith('/').endsWith('/'),
    assets_path: word,
    metadata: metadataWire,
    query_keys: z.record(z.enum(queryKeys), word),
  })
  .transform((row) => ({
    metricsPrefix: row.metrics_prefix,
    assetsPath: row.assets_path,
    /** Null where they are not asked for. */
    metadata: row.metadata as z.infer<typeof metadataWire> | null,
    queryKeys: row.query_keys,
  }))

/** How the metrics API spells things. */
export type Wire = Readonly<z.infer<typeof wireRow>>
