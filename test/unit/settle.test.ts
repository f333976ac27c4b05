import { expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { expand } from '../../src/catalog/series.ts'
import { settleBody } from '../../src/metrics/settle.ts'
import type { BodyResult } from '../../src/points/conversion.ts'
import type { Ask } from '../../src/metrics/plan.ts'
import { parseInstant } from '../../src/time.ts'

const at = (text: string): number => parseInstant(text) ?? Number.NaN
const [wanted] = expand(loadCatalogue(), [{ assets: ['BTC'], paths: ['addresses/active_count_pit'] }])

function settled(body: Partial<BodyResult>, since: number | null): string[] {
  if (!wanted) throw new Error('no series')
  const settles = { since: at('2019-01-01'), until: at('2020-03-05') }
  const ask: Ask = { ...wanted, interval: '24h', window: null, settles, points: 0, credits: 0 }
  const result: BodyResult = {
    request: 'r',
    series: wanted.series.id,
    state: 'ok',
    reason: null,
    points: 4,
    first: at('2020-03-01'),
    last: at('2020-03-04'),
    added: 4,
    addedFirst: at('2020-03-01'),
    addedLast: at('2020-03-04'),
    missing: since === null ? [] : [{ since, until: at('2020-03-01') }],
    ...body,
  }
  const day = (t: number): string => new Date(t * 1000).toISOString().slice(0, 10)
  return settleBody(ask, result, null, { at: at('2024-01-01'), request: 'r', weekStart: 'monday' }).map((row) =>
    `${day(row.since)} ${day(row.until)} ${row.state} ${row.reason ?? ''}`.trimEnd(),
  )
}

const expected = ['2019-01-01 2020-03-01 empty before the first point', '2020-03-01 2020-03-05 covered']

test('the time before the first point is empty, whether the answer was bounded or not', () => {
  expect(settled({}, at('2019-01-01'))).toEqual(expected)
  expect(settled({}, null)).toEqual(expected)
})

test('a hole behind the first point is a gap', () => {
  const missing = [{ since: at('2020-03-02'), until: at('2020-03-03') }]
  expect(settled({ missing }, null)).toEqual([
    expected[0],
    '2020-03-01 2020-03-02 covered',
    '2020-03-02 2020-03-03 covered gap',
    '2020-03-03 2020-03-05 covered',
  ])
})
