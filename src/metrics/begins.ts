import { type SeriesName, readableSeries } from '../catalog/series.ts'
import { beforeFirst } from '../ledger/coverage.ts'
import type { CoverageRow } from '../ledger/entry.ts'
import { day, formatDate } from '../time.ts'
import { historyStart } from './plan.ts'

/** A series whose first point lies behind where it was asked from. */
export interface BeginsLater extends Pick<SeriesName, 'metric' | 'asset' | 'interval'> {
  /** Dates. */
  readonly begins: string
  readonly asked_from: string
}

/** Who is asked from the beginning of all history begins later by nature. */
const longest = 40 * day

/** The series that begin later than somebody asked for them, by what answers said of the time before their first points. */
export function beginsLater(rows: readonly CoverageRow[]): BeginsLater[] {
  return rows.flatMap(({ series, since, until, reason }) => {
    if (reason !== beforeFirst || since < historyStart + longest) return []
    const { metric, asset, interval } = readableSeries(series)
    return [{ metric, asset, interval, begins: formatDate(until), asked_from: formatDate(since) }]
  })
}

/** One of them in words. */
export function beginsInWords({ metric, asset, begins, asked_from }: BeginsLater): string {
  return `${metric} ${asset} begins ${begins}, asked from ${asked_from}`
}
