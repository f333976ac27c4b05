import { expect, test } from 'vitest'
import { readLagStats } from '../../src/sources/metrics/lag-stats.ts'

test.each([
  ['{"p50":200,"p95":900}', { usual: 200, late: 900 }],
  ['{"path":"/a","lag_seconds":{"p05":1,"p50":200.5,"p95":900,"p99":950}}', { usual: 200.5, late: 900 }],
  ['{"data":{"stats":{"50":3,"95":4}}}', { usual: 3, late: 4 }],
  ['{"lag":{"median":0,"percentile_95":0}}', { usual: 0, late: 0 }],
  ['[{"P50":5,"P95":7}]', { usual: 5, late: 7 }],
  ['{"quantiles":{"0.5":5,"0.95":7}}', { usual: 5, late: 7 }],
])('percentiles of a lag are found wherever they stand: %s', (text, hint) => expect(readLagStats(text)).toEqual(hint))

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
  '{"a":{"b":{"c":{"p50":1,"p95":2}}}}',
])('what tells none gives none: %s', (text) => expect(readLagStats(text)).toBe(null))
