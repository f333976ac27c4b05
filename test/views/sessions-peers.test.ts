// @module-tag full
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { openQuery } from '../../src/query/lake.ts'
import { need } from '../helpers/needs.ts'
import { scratch } from '../helpers/scratch.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'

/*
 * The sessions of 31 years against the Python package exchange_calendars. What it does not know stands here: Xetra traded
 * until 20:00 from June 2000 to October 2003, and Hong Kong lost two days of September 2023 to a typhoon and a rainstorm.
 */

type Session = readonly [date: string, opens: number, closes: number]

/** What the package says, put right where it is known to be wrong. */
function corrected(code: string, rows: readonly Session[]): Session[] {
  const lost = code === 'XHKG' ? ['2023-09-01', '2023-09-08'] : []
  const isLong = (date: string): boolean => code === 'XETR' && date >= '2000-06-02' && date < '2003-11-03'
  return rows
    .filter(([date]) => !lost.includes(date))
    .map(([date, opens, closes]) => [date, opens, isLong(date) ? closes + 2.5 * 3600 : closes])
}

test('sessions of every exchange are those of exchange_calendars, 2000 to 2030', async (context) => {
  const python = need(context, 'calendars')
  const codes = [...loadCatalogue().sessions.keys()]
  const script = join(import.meta.dirname, '../python/calendars.py')
  const lines = execFileSync(python, [script, ...codes], { encoding: 'utf8', maxBuffer: 2 ** 26 })
    .trim()
    .split('\n')
  const root = join(scratch('sessions-peers'), 'lake')
  await makeLake(root, [{ at: '2024-08-01T00:00:00Z' }])
  await makeViews(root)
  using lake = await openQuery(root, {})
  for (const line of lines) {
    const { code, rows } = JSON.parse(line) as { code: string; rows: Session[] }
    const found = await lake.rows<{ session: string; opens: bigint; closes: bigint }>(
      `SELECT CAST(session AS VARCHAR) AS session, CAST(epoch(opens_at) AS BIGINT) AS opens,
         CAST(epoch(closes_at) AS BIGINT) AS closes FROM sessions('2000-01-01', '2031-01-01', '${code}')`,
    )
    const own = found.map(({ session, opens, closes }): Session => [session, Number(opens), Number(closes)])
    expect(own, code).toEqual(corrected(code, rows))
  }
  expect(lines).toHaveLength(8)
})
