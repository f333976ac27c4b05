import { expect, test } from 'vitest'
import { readLagStats } from '../../src/sources/metrics/lag-stats.ts'

test.each([
  ['{"p50":200,"p95":900}', { usual: 200, late: 900 }],
  ['{"path":"/a","lag_seconds":{"p05":1,"p50":200.5,"p95":900,"p99":950}}', { usual: 200.5, late: 900 }],
  ['{"data":{"stats":{"50":3,"95":4}}}', { usual: 3, late: 4 }],
  ['{"lag":{"median":0,"percentile_95":0}}', { usual: 0, late: 0 }],
  ['[{"P50":5,"P95":7}]', { usual: 5, late: 7 }],
  ['{"quantiles":{"0.5":5,"0.95":7}}', { usual: 5, late: 7 }],
  ['{"lag":[{"unit":"minutes","p50":2,"p95":3}]}', { usual: 120, late: 180 }],
])('percentiles of a lag are found wherever they stand: %s', (text, overall) =>
  expect(readLagStats(text)).toEqual({ byInterval: new Map(), overall }),
)

test('lag statistics in the recorded form give each interval a hint', () => {
  const resolution = {
    '10m': { p50: 1149, p90: 2000, p95: 3000, p99: 4162 },
    '24h': { p50: 2400, p90: 3000, p95: 3600, p99: 7200 },
  }
  const text = JSON.stringify({ lag: [{ unit: 'seconds', window: '30d', resolution }] })
  const byInterval = new Map([
    ['10m', { usual: 1149, late: 3000 }],
    ['24h', { usual: 2400, late: 3600 }],
  ])
  expect(readLagStats(text)).toEqual({ byInterval, overall: null })
})

test.each([
  '',
  'null',
  '7',
  '{}',
  '[]',
  '<html>',
  '{"p50":200}',
  '{"p50":"200","p95":"900"}',
  '{"p50":900,"p95":200}',
  '{"p50":-1,"p95":200}',
  '{"p50":1,"p95":1e9}',
  '{"p5":1,"p9":2,"p500":3,"p950":4}',
  '{"a":{"b":{"c":{"d":{"e":{"f":{"p50":1,"p95":2}}}}}}}',
  '{"unit":"fortnights","p50":1,"p95":2}',
])('metadata without usable lag statistics give none: %s', (text) => expect(readLagStats(text)).toBe(null))
