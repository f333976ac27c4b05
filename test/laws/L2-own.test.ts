import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'

const first = 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02,2\nETH,2024-03-02,20\nETH,2024-03-03,30\n'
const points = `SELECT asset || ' ' || strftime(t, '%d') || ' ' || v || ' ' || basis AS one FROM points ORDER BY asset, t`
const listed = (rows: readonly object[]): unknown[] => rows.map((row) => Object.values(row)[0])

test('a file that is imported twice is stored once, and a grown file adds its new rows', async () => {
  await withDesk(async ({ put, take, rows, run }) => {
    const file = put('p.csv', first)
    const one = await take([file, '--as', 'prices'])
    expect([one.code, one.message]).toEqual([0, ''])
    expect(one.told).toMatchObject({ rows: 4, points_added: 4, vintages_added: 0, left: 0, violations: 0, version: 1 })
    const before = await rows('FROM points ORDER BY ALL')
    const again = await take([file, '--as', 'prices'], '2026-06-02T12:00:00Z')
    expect([again.code, again.told]).toMatchObject([
      0,
      { rows: 4, points_added: 0, left: 4, violations: 0, version: 1 },
    ])
    expect(await rows('FROM points ORDER BY ALL')).toEqual(before)
    put('p.csv', `${first}BTC,2024-03-03,3\nSOL,2024-03-01,7\n`)
    const grown = await take([file, '--as', 'prices'], '2026-06-03T12:00:00Z')
    expect([grown.code, grown.told]).toMatchObject([0, { rows: 6, points_added: 2, left: 4, version: 2 }])
    expect(listed(await rows(points))).toEqual([
      'BTC 01 1.0 assumed',
      'BTC 02 2.0 assumed',
      'BTC 03 3.0 assumed',
      'ETH 02 20.0 assumed',
      'ETH 03 30.0 assumed',
      'SOL 01 7.0 assumed',
    ])
    const alone = put('one.csv', 'asset,t,value\nBTC,2024-03-04,4\n')
    const next = await take([alone, '--as', 'prices'], '2026-06-04T06:00:00Z')
    expect([next.message, next.told]).toMatchObject(['', { points_added: 1, version: 3 }])
    expect((await run(['doctor'], '2026-06-04T12:00:00Z')).code).toBe(0)
  })
})

test('a changed value is a violation, a late row is late, and what a file lacks stays', async () => {
  await withDesk(async ({ put, take, rows, run }) => {
    const file = put('p.csv', first.replace('BTC,2024-03-02,2\n', 'BTC,2024-03-03,3\n'))
    await take([file, '--as', 'prices'])
    put('p.csv', first.replace('BTC,2024-03-01,1', 'BTC,2024-03-01,1.5').replace('ETH,2024-03-02,20\n', ''))
    const changed = await take([file, '--as', 'prices'], '2026-06-02T12:00:00Z')
    expect([changed.code, changed.told]).toMatchObject([4, { rows: 3, points_added: 1, violations: 1, version: 2 }])
    expect(changed.message).toContain('1 stored value differs')
    expect(listed(await rows('SELECT stored || offered AS x FROM violations'))).toEqual(['1.01.5'])
    expect(listed(await rows(points))).toEqual([
      'BTC 01 1.0 assumed',
      'BTC 02 2.0 observed',
      'BTC 03 3.0 assumed',
      'ETH 02 20.0 assumed',
      'ETH 03 30.0 assumed',
    ])
    const late = `SELECT strftime(available_at, '%Y-%m-%d') AS x FROM points WHERE basis = 'observed'`
    expect(listed(await rows(late))).toEqual(['2026-06-02'])
    expect(await rows('FROM points', `SET VARIABLE observed_as_of = '2026-06-02T00:00:00Z'`)).toHaveLength(4)
    expect((await take([file, '--as', 'prices'], '2026-06-03T12:00:00Z')).code).toBe(4)
    const listing = JSON.parse((await run(['violations', 'list', '--json'])).out) as { violations: { id: string }[] }
    await run(['violations', 'acknowledge', listing.violations[0]?.id ?? '', '--why', 'seen'], '2026-06-04T12:00:00Z')
    expect((await take([file, '--as', 'prices'], '2026-06-05T12:00:00Z')).code).toBe(0)
  })
})
