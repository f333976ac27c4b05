import { expect, test } from 'vitest'
import type { PartJob } from '../../src/sources/points/conversion-types.ts'
import { contradictsConvention } from '../../src/sources/points/convert.ts'

const day = 86_400_000_000
const part = (timestamp: PartJob['timestamp']): PartJob => ({ interval: '24h', timestamp }) as PartJob
const clocks = (low: number, high: number, told = 3) => ({ told, early: 0, low, high, first: 0 })

test.each<[string, boolean, PartJob['timestamp'], ReturnType<typeof clocks>]>([
  ['an end that is computed a whole interval later', true, 'interval_end', clocks(day, 2 * day - 1)],
  ['one of which the earliest comes sooner', false, 'interval_end', clocks(day - 1, 2 * day - 1)],
  ['one of which the latest takes two intervals', false, 'interval_end', clocks(day, 2 * day)],
  ['one of two points', false, 'interval_end', clocks(day, day, 2)],
  ['a start that is computed within half an interval', true, 'interval_start', clocks(-day, -day / 2 - 1)],
  ['one of which the latest comes in the middle', false, 'interval_start', clocks(-day, -day / 2)],
])('%s contradicts what `t` is said to be: %s', (_, contradicts, timestamp, told) => {
  expect(contradictsConvention(told, part(timestamp))).toBe(contradicts)
})
