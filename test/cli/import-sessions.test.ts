import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'

/** Daily closes around Independence Day, of which the second is an early one, and over the end of summer time. */
const bars = `ticker,date,close
ACME,2024-07-02,10
ACME,2024-07-03,11
ACME,2024-07-05,12
ACME,2024-11-01,13
ACME,2024-11-04,14
`
const flags = ['--as', 'shares', '--asset', 'ticker', '--t', 'date', '--value', 'close', '--sessions', 'XNYS'] as const

test('import dates daily bars by the close of their session', async () => {
  await withDesk(async ({ put, take, rows }) => {
    const ended = await take([put('bars.csv', bars), ...flags, '--available', 'close+15m'])
    expect(ended.code, ended.message).toBe(0)
    const known = await rows(
      `SELECT strftime(t, '%m-%d') || ' ' || strftime(timezone('UTC', available_at), '%m-%d %H:%M') AS line, basis
       FROM points WHERE metric = 'own/shares' ORDER BY t`,
    )
    expect(known.map(({ line }) => line)).toEqual([
      '07-02 07-02 20:15',
      '07-03 07-03 17:15',
      '07-05 07-05 20:15',
      '11-01 11-01 20:15',
      '11-04 11-04 21:15',
    ])
    expect(new Set(known.map(({ basis }) => basis))).toEqual(new Set(['stated']))
    expect(await rows('FROM clock_findings')).toEqual([])
    const again = await take([put('bars.csv', bars), '--as', 'shares'])
    expect(again.told).toMatchObject({ points_added: 0, violations: 0 })
  })
})

test('days without a session are no gaps, sessions without a row are', async () => {
  await withDesk(async ({ put, take, rows }) => {
    const whole = 'ticker,date,close\nACME,2024-07-02,1\nACME,2024-07-03,1\nACME,2024-07-05,1\nACME,2024-07-09,1\n'
    expect((await take([put('bars.csv', whole), ...flags, '--available', 'close'])).code).toBe(0)
    const gaps = await rows(`SELECT strftime(since, '%m-%d') AS since, strftime("until", '%m-%d') AS ends FROM gaps`)
    expect(gaps).toEqual([{ since: '07-08', ends: '07-09' }])
  })
})

test('a decision at the close of a session sees a bar that is known at that close', async () => {
  await withDesk(async ({ put, take, rows }) => {
    await take([put('bars.csv', bars), ...flags, '--available', 'close'])
    const found = await rows(
      `WITH d AS (SELECT 'ACME' AS asset, ts FROM calendar('2024-07-02', '2024-07-06', 'XNYS'))
       SELECT v FROM pit_join('d', 'own/shares', '24h') ORDER BY ts`,
    )
    expect(found.map(({ v }) => v)).toEqual([10, 11, 12])
  })
})

test.each([
  [
    'a holiday',
    ['--available', 'close'],
    'ACME,2024-07-04,1',
    /row 6: t: expected a session of XNYS.*got "2024-07-04"/,
  ],
  ['a Saturday', [], 'ACME,2024-07-06,1', /row 6: t: expected a session of XNYS.*got "2024-07-06"/],
  [
    'an unknown exchange',
    ['--sessions', 'XNYX'],
    'ACME,2024-07-08,1',
    /--sessions: expected one of XAMS, .*got XNYX.*XNYS/,
  ],
  ['hours', ['--interval', '1h'], 'ACME,2024-07-08,1', /--sessions: expected daily values \(24h\), got 1h/],
  [
    'a part at the close',
    ['--available', 'v=close'],
    'ACME,2024-07-08,1',
    /--available: expected .close. for the whole value/,
  ],
] as const)('import with sessions refuses %s', async (_, more, row, refused) => {
  await withDesk(async ({ put, take }) => {
    const ended = await take([put('bars.csv', `${bars}${row}\n`), ...flags, ...more])
    expect(ended.message).toMatch(refused)
    expect(ended.code).toBe(2)
  })
})

test('import refuses a close without an exchange', async () => {
  await withDesk(async ({ put, take }) => {
    const ended = await take([put('bars.csv', bars), ...flags.slice(0, 8), '--available', 'close'])
    expect(ended.message).toMatch(/--available: expected `sessions` with `close`.*got close/)
  })
})
