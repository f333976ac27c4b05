import { z } from 'zod'
import { globTest } from './globs.ts'
import { describeIssues, duration, instant, readYaml, type YamlText } from './document.ts'
import { isTimed, ruleTimeKeys, spellings, wrongTime } from './rule-kinds.ts'
import { envelopeKeys, metadataWire, queryKeys } from './wire.ts'
import { type Complaint, LakeError } from '../base/errors.ts'
import { bytesOf, suchSize } from '../base/option-kinds.ts'
import { type Interval, offeredIntervals, weekdays } from '../base/time.ts'

const word = z.string().min(1)
const ids = z.array(word).min(1)
const ruleKeys = { ...ruleTimeKeys(), until: instant.optional(), trust: z.enum(['provider', 'rule']).optional() }

const naming = spellings().map(({ first }) => first)
/** Keys that have no effect without a key that states a time. */
const beside = [...spellings().flatMap(({ further }) => further), 'intervals', 'until', 'trust']

/** The rule of one interval. */
const intervalRule = z
  .strictObject(ruleKeys)
  .superRefine((row, { addIssue }) => {
    const message = wrongTime(row)
    if (message !== null) addIssue({ code: 'custom', message })
  })
  .optional()
/** One rule for all intervals or those in `intervals`, a rule for each interval under its name, or both. */
const override = z
  .strictObject({
    ...ruleKeys,
    intervals: z.array(z.enum(offeredIntervals)).min(1).optional(),
    ...(Object.fromEntries(offeredIntervals.map((interval) => [interval, intervalRule])) as Record<
      Interval,
      typeof intervalRule
    >),
  })
  .superRefine((row, { addIssue }) => {
    const fail = (message: string) => addIssue({ code: 'custom', message })
    const wrong = wrongTime(row)
    if (isTimed(row) || !offeredIntervals.some((interval) => row[interval])) {
      if (wrong !== null) fail(`${wrong}, or a rule for each interval`)
    } else if (Object.entries(row).some(([key, value]) => value !== undefined && beside.includes(key)))
      fail(`${listed(beside.slice(0, -1), ', ')} and \`trust\` only beside ${listed(naming, ' or ')}`)
    if (row.intervals?.some((key) => row[key])) fail('each interval once')
  })

const listed = (keys: readonly string[], by: string): string => keys.map((key) => `\`${key}\``).join(by)

/** Bytes a second. */
const smallest_rate = z.number().min(0).max(1_000_000).optional()

const metrics = z.strictObject({
  url: word.optional(),
  metadata: z.union([z.literal(false), metadataWire.partial()]).optional(),
  query_keys: z.partialRecord(z.enum(queryKeys), word).optional(),
  timestamp: z.enum(['interval_start', 'interval_end']).optional(),
  week_start: z.enum(weekdays).optional(),
  requests_per_minute: z.number().positive().max(1_000_000).optional(),
  concurrency: z.number().int().min(1).max(256).optional(),
  smallest_rate,
  credits: z.record(word, z.number().nonnegative()).optional(),
  paths: z.record(word, z.string()).optional(),
  exchanges: z.record(word, z.string()).optional(),
  availability: z.record(word, override).optional(),
})

const registry = z.strictObject({
  url: word.optional(),
  page_limit: z.number().int().min(1).max(500).optional(),
  shrink_limit: z.number().min(0).max(1).optional(),
  raw_days: z.number().int().min(0).optional(),
  smallest_rate,
  keys: z.partialRecord(z.enum(envelopeKeys), word).optional(),
  fields: z.record(word, z.record(word, word)).optional(),
})

const selection = z
  .strictObject({
    assets: ids,
    paths: ids.optional(),
    intervals: z
      .array(z.enum([...offeredIntervals, '*']))
      .min(1)
      .optional(),
    currencies: ids.optional(),
    exchanges: ids.optional(),
    networks: ids.optional(),
    since: instant.optional(),
    until: instant.optional(),
  })
  .refine((s) => s.since === undefined || s.until === undefined || s.since < s.until, 'since before until')

/** Optional steps of the daily run. */
const daily = z.strictObject({ vacuum: z.boolean().optional(), verify_budget: z.number().int().min(1).optional() })

/** A line for the shell, or a program and its arguments. */
const command = z.union([word, z.array(word).min(1)])

/** Commands to run after certain events, and the time limit for each. */
const hooks = z.strictObject({
  on_done: command.optional(),
  on_head: command.optional(),
  on_stale: command.optional(),
  on_violation: command.optional(),
  limit: duration.refine((seconds) => seconds >= 1 && seconds <= 3600, 'from 1s to 1h').optional(),
})

const most = z.number().int().min(0).optional()

/** Limits of a healthy lake; `status --check` reports what exceeds them. */
const check = z.strictObject({
  max_late: z.union([duration, z.record(word, duration)]).optional(),
  max_feed_age: duration.optional(),
  max_violations: most,
  max_findings: most,
  max_failed: most,
  max_gaps: most,
})

/** `pitlake.yaml`: the settings that a user may change. Keys to the APIs do not belong in it. */
export const configSchema = z.strictObject({
  data: word.optional(),
  /** Memory limit of a process, in bytes. */
  memory: z
    .string()
    .refine((text) => bytesOf(text) !== undefined, suchSize)
    .transform((text) => bytesOf(text) ?? Number.NaN)
    .optional(),
  metrics: metrics.nullish().transform((value) => value ?? undefined),
  registry: registry.nullish().transform((value) => value ?? undefined),
  /** Time between two fetches, in seconds. */
  schedule: duration.optional(),
  daily: daily.nullish().transform((value) => value ?? undefined),
  check: check.nullish().transform((value) => value ?? undefined),
  hooks: hooks.nullish().transform((value) => value ?? undefined),
  catalogs: z.array(word).optional(),
  select: z.array(selection).min(1).optional(),
})

export type Config = z.infer<typeof configSchema>
export type Override = z.infer<typeof override>

/** Reads the text of a config file; every problem of it in one LakeError. */
export function parseConfig(name: string, text: string): { config: Config; yaml: YamlText } {
  const yaml = readYaml(name, text)
  const complaints: Complaint[] = [...yaml.complaints]
  if (complaints.length === 0) {
    const parsed = configSchema.safeParse(withWrittenAssets(yaml) ?? {})
    complaints.push(...secretsIn(yaml, yaml.value, []))
    if (!parsed.success && complaints.length === 0)
      complaints.push(...describeIssues(yaml, parsed.error.issues, configSchema))
    if (parsed.success && complaints.length === 0) {
      complaints.push(...emptyMappings(yaml, parsed.data))
      if (complaints.length === 0) return { config: parsed.data, yaml }
    }
  }
  throw new LakeError('usage', complaints)
}

/** Returns the JSON schema of the config file, for editors. */
export const configJsonSchema = (): object => z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' })

const secretNames = globTest('*key')

/** Finds keys of the APIs in the file: they belong in the environment, or in a file that it names. */
function secretsIn(yaml: YamlText, value: unknown, path: readonly (string | number)[]): Complaint[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const here = [...path, key]
    if (path.length < 2 && (secretNames(key.toLowerCase()) || key === 'token' || key === 'secret')) {
      const api = path[0] === 'registry' ? 'REGISTRY' : 'METRICS'
      return [
        {
          subject: `${yaml.where(here)}: ${here.join('.')}`,
          expected: 'no key in the config file',
          got: 'one',
          next: `set PITLAKE_${api}_KEY or PITLAKE_${api}_KEY_FILE`,
        },
      ]
    }
    return path.length < 1 ? secretsIn(yaml, inner, here) : []
  })
}

/** Finds placeholders that are mapped to an empty name. */
function emptyMappings(yaml: YamlText, config: Config): Complaint[] {
  return (['paths', 'exchanges'] as const).flatMap((kind) =>
    Object.entries(config.metrics?.[kind] ?? {})
      .filter(([, real]) => real.trim() === '')
      .map(([name]) => ({
        subject: `${yaml.where(['metrics', kind, name])}: metrics.${kind}.${name}`,
        expected: 'the real name',
        got: 'nothing',
      })),
  )
}

/** Returns the file's value with every asset id that YAML reads as a number restored to its spelling: `00`, `1e5`. */
function withWrittenAssets(yaml: YamlText): unknown {
  const value = structuredClone(yaml.value)
  const blocks: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'select') : undefined
  if (!Array.isArray(blocks)) return value
  for (const [block, row] of blocks.entries()) {
    const assets: unknown = typeof row === 'object' && row !== null ? Reflect.get(row, 'assets') : undefined
    if (!Array.isArray(assets)) continue
    for (const [index, id] of assets.entries()) {
      if (typeof id === 'number') assets[index] = yaml.written(['select', block, 'assets', index]) ?? String(id)
    }
  }
  return value
}
