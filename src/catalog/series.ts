import type { Interval } from '../time.ts'

/** One series: the unit of coverage. Dimensions that the endpoint does not take are null. */
export interface Series {
  /** Stable, collision-free and reversible: see `seriesId`. */
  readonly id: string
  /** The catalogue's path of the endpoint. */
  readonly metric: string
  readonly asset: string
  /** Null where the endpoint takes none. */
  readonly interval: Interval | null
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  /** Extra parameters of the catalogue row; part of the identity. */
  readonly params: Readonly<Record<string, string>>
}
