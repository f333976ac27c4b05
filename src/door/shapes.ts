import { z } from 'zod'
import { usage } from '../errors.ts'
import { type Instant, type Panel, panelFields } from '../query/panel.ts'
import { calendarOf } from '../query/panel-calendar.ts'
import { parseMicros } from '../time.ts'
import type { Knowledge } from './desk.ts'

/** An instant as it must be written: `2024-06-01`, or with a time; without a zone it is UTC. */
export const instant = z
  .string()
  .refine((text) => /^\d{4}-/.test(text) && parseMicros(text) !== undefined, {
    error: 'expected an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC',
  })
  .describe('an instant such as 2024-06-01 or 2024-06-01T12:00:00Z; UTC where no zone is named')

const text = z.string().min(1)
const backfill = z.literal('rule').optional().describe('lets the availability rule stand in for backfilled points')

/** The instants and settings that may be named beside `as_of`. */
export const besideAsOf = {
  observed_as_of: instant.optional().describe('only what this lake held at that instant'),
  backfill,
  registry_backfill: z
    .boolean()
    .optional()
    .describe('lets the earliest known state of the registry stand in for the time before it'),
}

/** What is knowable where `as_of` may be left out: then it is all that the lake holds. */
export const knowledgeShape = { as_of: instant.optional().describe('only what was knowable then'), ...besideAsOf }

/** The state of knowledge that was asked for. */
export function knowledgeOf(asked: z.output<z.ZodObject<typeof knowledgeShape>>): Knowledge {
  return {
    asOf: asked.as_of,
    observedAsOf: asked.observed_as_of,
    backfill: asked.backfill,
    registryBackfill: asked.registry_backfill,
  }
}

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])

/** A panel: decisions × metrics. Each decision has its instant. */
export const panelShape = {
  calendar: z
    .strictObject({ since: instant, until: instant, step: text.describe('15m, 1h, 1d, 1w, 1month') })
    .optional()
    .describe('a grid of decisions, until exclusive; needs assets or universe'),
  decisions: z
    .array(z.object({ ts: instant, asset: text.optional() }).catchall(scalar))
    .min(1)
    .optional()
    .describe('instead of a calendar: what is decided when; further fields come back'),
  assets: z.array(text).min(1).optional().describe('of the calendar'),
  universe: text
    .optional()
    .describe("instead of assets a condition on the columns of the view universe: status = 'active'"),
  metrics: z.array(text).min(1).describe('paths; path#/pointer takes one leaf of an object'),
  interval: text.optional().describe('of the metrics; 24h where none is named'),
  fields: z
    .array(z.enum(panelFields))
    .min(1)
    .optional()
    .describe('what is told of each point; v where nothing is named'),
  latency: text.optional().describe('time needed to act: 15m'),
  max_age: text.optional().describe('older points give null: 3d'),
  currency: text.optional(),
  exchange: text.optional(),
  network: text.optional(),
  component: text.optional().describe('JSON pointer into objects'),
  skip_nulls: z.boolean().optional().describe('points whose value is null do not count'),
}

/** The panel that was asked for. */
export function panelOf(asked: z.output<z.ZodObject<typeof panelShape>>): Panel {
  const { calendar, decisions, assets, max_age: maxAge, skip_nulls: skipNulls, ...rest } = asked
  if ((calendar === undefined) === (decisions === undefined))
    throw usage('panel', { expected: 'calendar or decisions', got: calendar === undefined ? 'neither' : 'both' })
  const same = { ...rest, maxAge, skipNulls }
  if (calendar !== undefined) {
    const grid = calendarOf('calendar', [calendar.since, calendar.until, calendar.step])
    return { ...same, decisions: { ...grid, ...(assets && { assets }) } }
  }
  if (assets !== undefined)
    throw usage('assets', { expected: 'a calendar beside it', got: 'decisions, which name their own' })
  const given: readonly Instant[] = decisions ?? []
  if (rest.universe === undefined && !given.every(({ asset }) => typeof asset === 'string'))
    throw usage('decisions', { expected: 'an asset in each, or a universe', got: 'one without' })
  return { ...same, decisions: given }
}

/** Reads what somebody sent; what does not fit is told with its place. */
export function readAsked<Shape extends z.ZodType>(shape: Shape, given: unknown): z.output<Shape> {
  const read = shape.safeParse(given)
  if (read.success) return read.data
  throw usage(
    read.error.issues
      .map(({ path, message }) => `${path.length === 0 ? 'the question' : path.join('.')}: ${message}`)
      .join('; '),
  )
}
