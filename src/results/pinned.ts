import type { SessionOptions, Setting } from '../query/lake.ts'

/** A query over the lake as one of its versions told it. */
export interface PinnedQuery {
  readonly root: string
  readonly version: number
  /** The text of the views. */
  readonly script: string
  readonly query: string
  readonly variables: Readonly<Record<string, Setting>>
  /** Whether any variable may be set: those of a stamped result. */
  readonly anyVariable: boolean
}

/** How a session is opened in which it runs: on one thread, so that sums repeat. */
export function pinnedOptions({ script, query, anyVariable, variables }: PinnedQuery): SessionOptions {
  return { script, threads: 1, query, anyVariable, set: variables }
}
