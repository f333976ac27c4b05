import { expect, test } from 'vitest'
import { launchOf, publicationOf } from '../../src/sandbox/world/points.ts'
import { end } from '../../src/base/time.ts'

test('a point computed at the launch of a metric is not part of the backfill before it', () => {
  const path = 'indicators/asol_pit'
  const launch = launchOf(path)
  const series = 4321
  const publishes = publicationOf(path, '24h', series)
  for (let hash = 1; hash <= 50; hash++) {
    const long = launch + 1_000_000_000
    const lag = publishes(long, end(long, '24h'), hash) - end(long, '24h')
    const at = (close: number): number => publishes(close - 86_400, close, hash)
    expect([at(launch - lag), at(launch - lag + 1)]).toEqual([launch, launch + 1])
    // A second sooner, and it is of the batch: at an instant of its own.
    expect(at(launch - lag - 1)).toBe(Math.max(launch + series, launch - lag - 1))
  }
})
