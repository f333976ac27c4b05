import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { openLake } from '../../src/index.ts'
import { openQuery } from '../../src/query/lake.ts'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { sessionCloses } from '../../src/catalog/sessions.ts'
import { scratch } from '../helpers/scratch.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'

const folder = scratch('sessions')
const root = join(folder, 'lake')
/** A lake whose catalogue has further exchanges. */
const ownRoot = join(folder, 'own')
const supply = 'supply/current_pit'

/** The example of the page on joins, and an exchange whose day begins before that of UTC. */
const page = readFileSync(new URL('../../docs/reference/joins.md', import.meta.url), 'utf8')
const example = /```yaml\n# my-sessions\.yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
const ownExchanges = `${example}  XASX:
    name: Sydney
    zone: Australia/Sydney
    hours: [{ since: 2025-01-01, open: "10:00", close: "16:00" }]
    closed: { 2025: "", 2026: 12-25 }
`

beforeAll(async () => {
  const series = { metric: supply, interval: '24h', currency: 'native', asset: 'BTC' } as const
  const points = [{ ...series, t: '2024-07-02', available_at: '2024-07-03T00:10:00Z', v: 2 }]
  for (const one of [root, ownRoot]) await makeLake(one, [{ at: '2024-08-01T00:00:00Z', points }])
  await makeViews(root)
  const catalogue = loadCatalogue([], undefined, [{ name: 'my-sessions.yaml', text: ownExchanges }])
  await makeViews(ownRoot, { catalogue })
})

/** Sessions as texts: date, opening, close, and whether it is early. */
async function sessionsOf(
  exchange: string,
  since: string,
  until: string,
  { asOf, lakeFolder = root }: { readonly asOf?: string; readonly lakeFolder?: string } = {},
): Promise<string[]> {
  using lake = await openQuery(lakeFolder, asOf === undefined ? {} : { asOf })
  const rows = await lake.rows<{ line: string }>(
    `SELECT concat_ws(' ', session, strftime(timezone('UTC', opens_at), '%H:%M'), strftime(timezone('UTC', closes_at), '%H:%M'),
       CASE WHEN early THEN 'early' END) AS line FROM sessions('${since}', '${until}', '${exchange}')`,
  )
  return rows.map(({ line }) => line)
}

test.each([
  [
    'XNYS',
    'an early close and a holiday',
    '2024-07-03',
    '2024-07-06',
    ['2024-07-03 13:30 17:00 early', '2024-07-05 13:30 20:00'],
  ],
  ['XNAS', 'clocks that go forward', '2024-03-08', '2024-03-12', ['2024-03-08 14:30 21:00', '2024-03-11 13:30 20:00']],
  ['XLON', 'clocks that go back', '2024-10-25', '2024-10-29', ['2024-10-25 07:00 15:30', '2024-10-28 08:00 16:30']],
  [
    'XETR',
    'the end of long evenings',
    '2003-10-31',
    '2003-11-04',
    ['2003-10-31 08:00 19:00', '2003-11-03 08:00 16:30'],
  ],
  ['XTKS', 'a later close', '2024-11-01', '2024-11-06', ['2024-11-01 00:00 06:00', '2024-11-05 00:00 06:30']],
  ['XHKG', 'an earlier opening', '2011-03-04', '2011-03-08', ['2011-03-04 02:00 08:00', '2011-03-07 01:30 08:00']],
  ['XPAR', 'a half day', '2024-12-31', '2025-01-03', ['2024-12-31 08:00 13:05 early', '2025-01-02 08:00 16:30']],
] as const)('sessions of %s over %s open and close as published', async (exchange, _, since, until, expected) => {
  expect(await sessionsOf(exchange, since, until)).toEqual(expected)
})

test('a session that was cancelled is there until its cancellation was announced', async () => {
  const around = ['XNYS', '2012-10-29', '2012-11-01'] as const
  const [monday, tuesday, wednesday] = ['2012-10-29', '2012-10-30', '2012-10-31'].map((day) => `${day} 13:30 20:00`)
  expect(await sessionsOf(...around)).toEqual([wednesday])
  expect(await sessionsOf(...around, { asOf: '2012-10-29T03:59:59Z' })).toEqual([monday, tuesday, wednesday])
  expect(await sessionsOf(...around, { asOf: '2012-10-29T04:00:00Z' })).toEqual([tuesday, wednesday])
  expect(await sessionsOf(...around, { asOf: '2012-10-29T18:00:00Z' })).toEqual([wednesday])
})

test('no row of a calendar depends on a cancellation that was announced after its own time', async () => {
  using lake = await openQuery(root, {})
  const grid = async (word: string): Promise<unknown> =>
    (await lake.rows<{ ts: string }>(`FROM calendar('2023-09-01', '2023-09-02', '${word}')`)).map(({ ts }) => ts)
  // The storm was there at the opening; that no trading follows was announced at noon.
  expect(await grid('XHKG:open')).toEqual(['2023-09-01T01:30:00.000000Z'])
  expect(await grid('XHKG')).toEqual([])
})

test('calendar of an exchange at as_of has the rows up to then of the whole calendar', async () => {
  using lake = await openQuery(root, {})
  const times = {
    XNYS: ['2001-09-11T13:30:00Z', '2012-10-29T03:00:00Z', '2012-10-29T20:00:00Z'],
    'XNYS:open': ['2001-09-11T13:30:00Z', '2012-10-29T13:30:00Z'],
    'XHKG:open': ['2023-09-01T02:00:00Z', '2023-09-01T08:00:00Z'],
    XTKS: ['2020-10-01T02:00:00Z', '2020-10-01T06:00:00Z'],
    XLON: ['2022-09-19T07:00:00Z'],
  }
  for (const [word, all] of Object.entries(times))
    for (const asOf of all) {
      const sql = `SELECT ts FROM calendar('2000-01-01', '2031-01-01', '${word}') WHERE ts <= TIMESTAMPTZ '${asOf}'`
      const whole = await lake.rows(sql)
      await lake.run(`SET VARIABLE as_of = '${asOf}'`)
      expect(await lake.rows(sql), `${word} ${asOf}`).toEqual(whole)
      await lake.run('RESET VARIABLE as_of')
    }
})

test('the closes that date imported values are those of the macro', async () => {
  using lake = await openQuery(root, {})
  for (const [code, calendar] of loadCatalogue().sessions) {
    const rows = await lake.rows<{ at: bigint; seconds: bigint }>(
      `SELECT CAST(epoch(session) AS BIGINT) AS at, CAST(epoch(closes_at) - epoch(session) AS BIGINT) AS seconds
       FROM sessions('2000-01-01', '2031-01-01', '${code}')`,
    )
    const found = rows.map(({ at, seconds }) => ({ day: Number(at), seconds: Number(seconds) }))
    expect(sessionCloses(calendar), code).toEqual(found)
    expect(found.length).toBeGreaterThan(7000)
  }
})

test('a panel on the calendar of an exchange decides at each close', async () => {
  const lake = await openLake(root)
  try {
    const calendar = { since: '2024-07-02', until: '2024-07-06', step: 'XNYS' }
    const table = await lake.panel({ calendar, assets: ['BTC'], metrics: { v: supply } })
    const rows = table.toArray().map((row) => row.toJSON() as { ts: number; v: number | null })
    expect(rows.map(({ ts, v }) => [new Date(ts).toISOString(), v])).toEqual([
      ['2024-07-02T20:00:00.000Z', null],
      ['2024-07-03T17:00:00.000Z', 2],
      ['2024-07-05T20:00:00.000Z', 2],
    ])
    const days = await lake.calendar({ since: '2024-07-03', until: '2024-07-04', step: 'XNYS:open' })
    expect(days.toArray().map((row) => Number(row['ts']))).toEqual([Date.UTC(2024, 6, 3, 13, 30)])
  } finally {
    await lake.close()
  }
})

test('an unknown exchange and years without a calendar are refused', async () => {
  using lake = await openQuery(root, {})
  await expect(lake.rows(`FROM sessions('2024-01-01', '2024-02-01', 'XABC')`)).rejects.toThrow(
    /sessions: expected an exchange \(XAMS, .*XTKS\), got XABC/,
  )
  await expect(lake.rows(`FROM calendar('1999-12-01', '2024-02-01', 'XNYS')`)).rejects.toThrow(
    /expected times from 2000-01-01T00:00:00Z to 2031-01-01T00:00:00Z, got 1999-12-01T00:00:00Z/,
  )
})

test('an exchange of a user catalogue has the sessions that it lists', async () => {
  const own = { lakeFolder: ownRoot }
  expect(await sessionsOf('XTSE', '2026-12-23', '2026-12-30', own)).toEqual([
    '2026-12-23 14:30 21:00',
    '2026-12-24 14:30 18:00 early',
    '2026-12-29 14:30 21:00',
  ])
  expect(await sessionsOf('XCHI', '2024-07-03', '2024-07-06', own)).toEqual(
    await sessionsOf('XNYS', '2024-07-03', '2024-07-06'),
  )
  expect(await sessionsOf('XASX', '2025-12-24', '2025-12-27', own)).toHaveLength(3)
})

test('years that an exchange of a user catalogue does not list have no sessions and are refused', async () => {
  using lake = await openQuery(ownRoot, {})
  for (const range of [`'2025-12-30', '2026-01-05'`, `'2026-12-30', '2027-01-05'`])
    await expect(lake.rows(`FROM sessions(${range}, 'XTSE')`), range).rejects.toThrow(
      /expected times from 2026-01-01T00:00:00Z to 2027-01-01T00:00:00Z, got 202/,
    )
  // In Sydney 1 January begins while UTC has 31 December.
  expect(await lake.rows(`FROM calendar('2026-12-30', '2027-01-01', 'XASX:open')`)).toEqual([
    { ts: '2026-12-30T23:00:00.000000Z' },
  ])
})
