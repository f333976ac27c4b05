import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { argueFromPlan } from '../../src/trust/lookahead/proof/prove.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { bareViews } from '../helpers/lakes/bare-views.ts'
import { onGrid, proofRules } from '../helpers/proof-rules.ts'

let lake: Engine
beforeAll(async () => (lake = await bareViews()))
afterAll(() => lake.close())

/** The mark stands before the expression that is in the way; without one no place is told. */
const cases = [
  'SELECT ts, «lead(v) OVER (PARTITION BY asset ORDER BY ts) AS next FROM j',
  'SELECT ts, lag(v) OVER (PARTITION BY asset ORDER BY ts) AS last, «lead(v) OVER (PARTITION BY asset ORDER BY ts) AS next FROM j',
  'SELECT ts, avg(v) OVER (PARTITION BY ts) AS one, v / «avg(two) OVER () AS two FROM (SELECT ts, v, two FROM (SELECT *, v AS two FROM j))',
  'SELECT ts, «lead(v) OVER (PARTITION BY asset ORDER BY ts) - lead(t) OVER (PARTITION BY ts) AS next FROM (SELECT ts, asset, v, epoch(t) AS t FROM j)',
  'SELECT ts, lead(v) OVER (PARTITION BY asset ORDER BY ts) AS one FROM j WHERE v > 1 UNION SELECT ts, lead(v) OVER (PARTITION BY asset ORDER BY ts) FROM j WHERE v < 0',
  'SELECT ts, lead(a) OVER (ORDER BY ts) AS one, lead(b) OVER (ORDER BY ts) AS two FROM (SELECT ts, v AS b, age AS a FROM j)',
  'SELECT ts, v AS w, t AS v FROM (SELECT ts, v, t FROM j UNION ALL SELECT ts, v, valid_to FROM d JOIN history.products ON valid_from <= ts, (SELECT 1 AS v))',
  'SELECT ts, v, (SELECT «max(v) FROM points) AS most FROM j',
  'SELECT ts, (SELECT max(v) FROM points) - (SELECT min(v) FROM points) AS span FROM j',
  'SELECT j.ts, l.product_id FROM j JOIN «links AS l ON l.metric_asset = j.asset',
  'SELECT available_at AS ts, «random() AS chance FROM points',
  'SELECT «t AS ts, v FROM points',
  'SELECT ts, p.v FROM j «LEFT JOIN points AS p ON p.asset = j.asset AND p.t = j.ts',
  'SELECT «max(ts) AS ts, asset, sum(v) AS total FROM j GROUP BY asset',
  'SELECT ts, a FROM d, (SELECT asset AS a FROM points «GROUP BY asset)',
  'SELECT «available_at - INTERVAL 1 HOUR AS ts, v FROM points',
  'SELECT ts, v FROM j ORDER BY v DESC «LIMIT 3',
  'SELECT «DISTINCT ON (asset) ts, asset, v FROM j ORDER BY v',
  'SELECT available_at AS ts FROM points WHERE v > «$1',
]

describe('the place of what stands in the way', () => {
  test.for(cases)('%s', async (marked) => {
    const whole = onGrid(marked)
    const at = whole.indexOf('«')
    const { unproved } = await argueFromPlan(lake, { sql: whole.replace('«', ''), ts: 'ts', labels: [] })
    expect({ at: unproved?.at, what: unproved?.what }).toEqual({ at: at === -1 ? null : at, what: unproved?.what })
  })

  test('most broken rules are reported with a place, and the text there is the named one', async () => {
    let placed = 0
    for (const [, , leak] of proofRules) {
      const sql = onGrid(leak)
      const { unproved } = await argueFromPlan(lake, { sql, ts: 'ts', labels: [] })
      if (unproved === null || unproved.at === null) continue
      placed++
      const [word = ''] = /\w+$/.exec(/^[\w.]+/.exec(unproved.what)?.[0] ?? '') ?? []
      const named: Readonly<Record<string, RegExp>> = {
        join: /^(?:\w+ ){0,2}JOIN |^pit_/i,
        an: /^\w+\(/,
        a: /^[\w.]+/,
        history: /^history/,
        WITH: /^RECURSIVE/,
        count_star: /^count\(\*/,
      }
      expect(sql.slice(unproved.at)).toMatch(named[word] ?? new RegExp(`^(?:\\w+\\.)?${word}\\b`, 'i'))
    }
    expect(placed).toBeGreaterThan(0.6 * proofRules.length)
  })
})
