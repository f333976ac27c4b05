import { z } from 'zod'
import { intervals } from '../base/time.ts'
import { duration, instant } from './document.ts'
import { ownRow } from './sources.ts'

const word = z.string().trim().min(1)

/** The parts of a feature that determine its values; a change to any of them makes a new version. */
const definition = {
  sql: word,
  grid: z.enum(intervals),
  /** Seconds from a timestamp of the grid until its value is available. */
  latency: duration.default(0),
  /** The first timestamp of the grid, Unix seconds. */
  since: instant.optional(),
  assets: z.array(word).min(1).optional(),
}

/** A feature as a catalogue declares it. */
export const featureRow = z.strictObject({ ...definition, why: word })

export type DeclaredFeature = Readonly<z.infer<typeof featureRow>>

const seconds = z.number().int()

/** Series of which a feature names data that had not been requested when its values were computed. */
const unrequested = z.object({
  metric: word,
  interval: z.enum(intervals).nullable(),
  /** Asset of the series; null for all assets. */
  asset: word.nullable(),
  /** First timestamp that was resolved, Unix seconds; null if none was. */
  before: seconds.nullable(),
})

export type Unrequested = Readonly<z.infer<typeof unrequested>>

/** One definition of a feature, as a lake stores it. */
const version = z.object({
  ...definition,
  latency: seconds,
  since: seconds.optional(),
  /** Versions of the other features that it reads, by name. */
  reads: z.record(z.string(), z.string()),
  /** First timestamp of the grid, Unix seconds. */
  first: seconds,
  /** The last timestamp of the grid that was computed; null before the first. */
  through: seconds.nullable(),
  /** Series that were not requested when it was computed; once they are resolved, another version is computed. */
  without: z.array(unrequested).default([]),
})

export type FeatureVersion = Readonly<z.infer<typeof version>>

/** A feature as a lake stores it: its versions, oldest first, and the fields that make it a series like user data. */
export const keptFeature = ownRow.extend({ versions: z.array(version).default([]) })

/** The definition alone, with the versions of other features that it reads. */
export const definitionOf = version.omit({ first: true, through: true, without: true })
