import type { Catalogue } from '../../../src/catalog/catalogue.ts'
import type { Interval } from '../../../src/base/time.ts'
import type { Draft } from '../../../src/lake/ledger/commit.ts'

/**
 * A point to be stored. Instants are ISO text; without an offset they are in UTC. `observed_at` is that of its commit.
 */
export interface PointRow {
  readonly metric: string
  readonly asset: string
  readonly interval: Interval
  /** Begin of the interval that the point describes. */
  readonly t: string
  /** Instant from which on a query may see the point. */
  readonly available_at: string
  readonly currency?: string | null
  readonly exchange?: string | null
  readonly network?: string | null
  /** Value of a metric of numbers. */
  readonly v?: number | null
  /** Value of a metric of objects, as JSON text. */
  readonly o?: string | null
  /** What `available_at` follows from; `assumed` if not given. */
  readonly basis?: string
  /** Keys of the answer that pitlake does not know, as JSON text. */
  readonly extra?: string | null
  /** Instant at which the provider computed the value. */
  readonly computed_at?: string | null
  /** Instant by the rule alone: earlier than `available_at` for backfilled points, equal to it if not given. */
  readonly available_rule_at?: string
}

/**
 * Rows of one table of the registry; each needs the columns that a test looks at, `at` and `observed_at` are filled in.
 */
export type TableRows = readonly Readonly<Record<string, unknown>>[]

/**
 * A commit of a lake for a test: when it happens, and what it adds. What a job would hand over beside points and tables
 * is given under the name that it has in a draft: `coverage`, `violations`, `state` (user metrics, too), `remove` and
 * so on.
 */
export interface LakeCommit extends Partial<Draft> {
  /** Instant of the commit, ISO text; it is the `observed_at` of its points. */
  readonly at: string
  /** Points. Each metric and interval becomes a file; their series are declared without being named. */
  readonly points?: readonly PointRow[]
  /** Rows of registry tables by table, those of a dated snapshot as `venues@2024-11-01`. */
  readonly tables?: Readonly<Record<string, TableRows>>
}

/** What a lake for a test is made of. */
export interface LakeRecipe {
  /** Word in the name of its folder, so that a folder that was left over can be recognised. */
  readonly name: string
  /** Its commits, oldest first. */
  readonly commits: readonly LakeCommit[]
  /** Catalogue that its views are made with; the one of `sandbox-client.ts` if not given. */
  readonly catalogue?: Catalogue
}

/** A lake that jobs of pitlake write: for tests of what only they leave, such as requests, coverage or polls. */
export interface WrittenRecipe {
  readonly name: string
  /** Writes the lake and its views into an empty folder. */
  readonly write: (root: string) => Promise<void>
}

/** Where a lake for a test is. */
export interface LakePlace {
  /** The folder around the lake, for files that a test writes next to it. */
  readonly home: string
  /** The lake's folder, `lake` in `home`. */
  readonly root: string
}

/** A lake in a temporary folder. */
export interface TestLake extends LakePlace, Disposable {
  /** Removes `home` and everything in it. */
  readonly remove: () => void
}
