import { readableSeries } from '../catalog/series.ts'
import { beforeFirst } from '../ledger/coverage.ts'
import type { CoverageRow } from '../ledger/entry.ts'
import { beginsLater, type BeginsLater } from '../metrics/tally.ts'
import { count, formatInstant, unshownInterval } from '../time.ts'
import type { Standing } from './page/standing.ts'

/** The longest window without points that has points on both sides, and the series that begin later than they were asked for. */
export function holesIn(coverage: ReadonlyMap<string, readonly CoverageRow[]>): Standing['holes'] {
  let longest: Standing['holes']['longest'] = null
  let begins: BeginsLater | null = null
  let later = 0
  for (const [id, rows] of coverage) {
    const { metric, asset, interval } = readableSeries(id)
    for (const row of rows) {
      if (row.reason === 'gap') {
        const points = count(row.since, row.until, interval ?? unshownInterval)
        if (points > (longest?.points ?? 0))
          longest = { metric, asset, points, since: formatInstant(row.since), until: formatInstant(row.until) }
      } else if (row.reason === beforeFirst) {
        const [one] = beginsLater([row])
        if (one === undefined) continue
        later++
        begins ??= one
      }
    }
  }
  return { longest, later, begins }
}
