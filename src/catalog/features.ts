import { z } from 'zod'
import { intervals } from '../base/time.ts'
import { duration, instant } from './document.ts'
import { ownRow } from './sources.ts'

const word = z.string().trim().min(1)

/** What makes the values of a feature: whoever changes any of it has another version of it. */
const definition = {
  sql: word,
  grid: z.enum(intervals),
  /** Seconds from an instant of the grid to when its value is told. */
  latency: duration.default(0),
  /** The first instant of the grid, Unix seconds. */
  since: instant.optional(),
  assets: z.array(word).min(1).optional(),
}

/** A feature as a catalogue declares it. */
export const featureRow = z.strictObject({ ...definition, why: word })

export type DeclaredFeature = Readonly<z.infer<typeof featureRow>>

const seconds = z.number().int()

/** Nothing that a feature names was requested of these series before an instant when its values were computed. */
const unrequested = z.object({
  metric: word,
  interval: z.enum(intervals).nullable(),
  /** All of them where null. */
  asset: word.nullable(),
  /** What comes first of what was resolved; null where nothing was. */
  before: seconds.nullable(),
})

export type Unrequested = Readonly<z.infer<typeof unrequested>>

/** One definition of a feature, as a lake keeps it. */
const version = z.object({
  ...definition,
  latency: seconds,
  since: seconds.optional(),
  /** Which versions of other features it reads. */
  reads: z.record(z.string(), z.string()),
  /** The grid begins here. */
  first: seconds,
  /** The last instant of the grid that was computed; null before the first. */
  through: seconds.nullable(),
  /** What it was computed without, as nobody had requested it: once that is resolved another version is computed. */
  without: z.array(unrequested).default([]),
})

export type FeatureVersion = Readonly<z.infer<typeof version>>

/** What a lake keeps of a feature: its versions, the first one first, and what makes it a series as own data are. */
export const keptFeature = ownRow.extend({ versions: z.array(version).default([]) })

/** The definition alone, and what it reads of other features. */
export const definitionOf = version.omit({ first: true, through: true, without: true })
