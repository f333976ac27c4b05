import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { beforeAll, expect, test } from 'vitest'
import { openLake } from '../../src/index.ts'
import { pitlake } from '../helpers/command.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { scratch } from '../helpers/scratch.ts'
import { makeViews } from '../helpers/views.ts'

const home = scratch('calendar-local')
const root = join(home, 'lake')
const supply = 'supply/current_pit'
beforeAll(async () => {
  const series = { metric: supply, interval: '24h', currency: 'native', asset: 'BTC' } as const
  const points = ['2024-03-08', '2024-03-09'].map((t, n) => ({
    ...series,
    t,
    available_at: new Date(Date.parse(t) + 86_400_000 + 13.5 * 3_600_000).toISOString(),
    v: n,
  }))
  await makeLake(root, [{ at: '2024-04-01T00:00:00Z', points }])
  await makeViews(root)
})

/** Asks the lake as any program does, in a session of some zone. */
async function gridOf(since: string, until: string, step: string, zone = 'UTC'): Promise<string[]> {
  const instance = await DuckDBInstance.create(join(root, 'lake.duckdb'), { access_mode: 'READ_ONLY' })
  const connection = await instance.connect()
  try {
    await connection.run(`SET TimeZone = '${zone}'`)
    const rows = await connection.runAndReadAll(
      `SELECT strftime(timezone('UTC', ts), '%Y-%m-%dT%H:%M:%SZ') FROM calendar('${since}', '${until}', '${step}')`,
    )
    return rows.getRows().map(([ts]) => String(ts))
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** Every minute of a range at which the clocks of a zone show a time, by the tables of Node. */
function minutesByClock(since: string, until: string, clock: string, zone: string): string[] {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit', hour12: false })
  const found: string[] = []
  for (let at = Date.parse(since); at < Date.parse(until); at += 60_000)
    if (format.format(at) === clock) found.push(new Date(at).toISOString().replace('.000Z', 'Z'))
  return found
}

test('a local time of each day is the minute at which the clocks of the zone show it, across each change of clocks', async () => {
  for (const [zone, clock] of [
    ['America/New_York', '09:30'],
    ['Europe/London', '16:30'],
    ['Australia/Sydney', '00:15'],
    ['Asia/Kolkata', '23:59'],
    ['Pacific/Kiritimati', '06:00'],
    ['Pacific/Pago_Pago', '20:00'],
  ] as const)
    for (const [since, until] of [
      ['2024-03-07T11:00:00Z', '2024-04-09T00:30:00Z'],
      ['2024-10-02T00:00:00Z', '2024-11-06T14:30:00Z'],
    ] as const)
      expect([zone, await gridOf(since, until, `daily at ${clock} ${zone}`)]).toEqual([
        zone,
        minutesByClock(since, until, clock, zone),
      ])
})

test('a local time that the clocks skip comes an hour later, one that they show twice counts once, the second time', async () => {
  expect(await gridOf('2024-03-09', '2024-03-12', 'daily at 02:30 America/New_York')).toEqual([
    '2024-03-09T07:30:00Z',
    '2024-03-10T07:30:00Z',
    '2024-03-11T06:30:00Z',
  ])
  expect(await gridOf('2024-11-02', '2024-11-05', 'daily at 01:30 America/New_York')).toEqual([
    '2024-11-02T05:30:00Z',
    '2024-11-03T06:30:00Z',
    '2024-11-04T06:30:00Z',
  ])
  expect(await gridOf('2011-12-29', '2012-01-01', 'daily at 09:30 Pacific/Apia')).toEqual([
    '2011-12-29T19:30:00Z',
    '2011-12-30T19:30:00Z',
    '2011-12-31T19:30:00Z',
  ])
})

test('a local time does not depend on the zone of the session', async () => {
  const step = 'daily at 09:30 America/New_York'
  const expected = await gridOf('2024-03-08', '2024-03-13', step)
  for (const zone of ['Asia/Kolkata', 'America/New_York', 'Pacific/Kiritimati'])
    expect(await gridOf('2024-03-08', '2024-03-13', step, zone)).toEqual(expected)
})

test('a panel at a local time shows no value before it was known, at the command line and in TypeScript', async () => {
  const step = 'daily at 09:30 America/New_York'
  const argv = ['panel', '--data', root, '--calendar', `2024-03-09,2024-03-13,${step}`, '--assets', 'BTC']
  const { code } = await pitlake(home, [...argv, '--metrics', `v=${supply}`, '--out', 'panel.csv'])
  // The first point is known at 13:30 on the 9th, the second on the 10th: 09:30 of summer time is that minute.
  const expected = [
    'BTC,2024-03-09T14:30:00.000000Z,0.0',
    'BTC,2024-03-10T13:30:00.000000Z,1.0',
    'BTC,2024-03-11T13:30:00.000000Z,1.0',
  ]
  expect(code).toBe(0)
  expect(readFileSync(join(home, 'panel.csv'), 'utf8').split('\n').slice(1, 4)).toEqual(expected)
  const lake = await openLake(root)
  try {
    expect((await lake.calendar({ since: '2024-03-09', until: '2024-03-12', step })).numRows).toBe(3)
  } finally {
    await lake.close()
  }
  const refused = await pitlake(home, [
    ...argv.with(4, '2024-03-09,2024-03-13,daily at 09:30 America/Newyork'),
    '--metrics',
    supply,
  ])
  expect([refused.code, refused.message]).toEqual([2, expect.stringContaining('expected a zone such as UTC')])
})
