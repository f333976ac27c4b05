import { expect, test } from 'vitest'
import { type Desk, withDesk } from '../helpers/importing.ts'

/** A file of rows that begin at the dates, with the values 1, 2, 3 …. */
function csv(dates: readonly string[]): string {
  return `asset,t,value\n${dates.map((t, n) => `ACME,${t},${n + 1}\n`).join('')}`
}

/** Dates from a day on, one for each number of days behind it. */
function datesFrom(first: string, days: readonly number[]): string[] {
  return days.map((n) => new Date(Date.parse(first) + n * 86_400_000).toISOString().slice(0, 10))
}

const everyDay = Array.from({ length: 40 }, (_, n) => n)
const weekdays = everyDay.filter((n) => n % 7 < 5)
const changes = [0, 12, 50]

async function unresolvedTimes(desk: Desk, metric: string, interval: string, variables = ''): Promise<unknown[]> {
  const rows = await desk.rows(
    `SELECT strftime(since, '%Y-%m-%d') AS since FROM unresolved(['${metric}'], '${interval}')`,
    variables,
  )
  return rows.map(({ since }) => since)
}

test('a file of changes leaves no decision unresolved; a file of every day or of weekdays does after its last row', async () => {
  await withDesk(async (desk) => {
    for (const [name, days] of Object.entries({ every_day: everyDay, weekdays, changes }))
      await desk.take([desk.put(`${name}.csv`, csv(datesFrom('2024-01-01', days))), '--as', name, '--interval', '24h'])
    expect(await unresolvedTimes(desk, 'own/every_day', '24h')).toEqual(['2024-02-11'])
    expect(await unresolvedTimes(desk, 'own/weekdays', '24h')).toEqual(['2024-02-11'])
    expect(await unresolvedTimes(desk, 'own/changes', '24h')).toEqual([])
    const panel = async (metric: string): Promise<string> =>
      (
        await desk.run([
          'panel',
          '--calendar',
          '2024-01-01,2024-06-01,7d',
          '--assets',
          'ACME',
          '--metrics',
          metric,
          '--out',
          'panel.csv',
        ])
      ).notes
    expect(await panel('own/every_day')).toContain('unresolved decisions')
    expect(await panel('own/changes')).not.toContain('unresolved')
    const values =
      await desk.rows(`WITH d AS (SELECT 'ACME' AS asset, ts FROM calendar('2024-02-19', '2024-05-01', '30 days'))
      SELECT v FROM pit_join('d', 'own/changes', '24h', unresolved := 'null') ORDER BY ts`)
    expect(values.map(({ v }) => v)).toEqual([2, 3, 3])
  })
})

test('files of changes that follow each other leave nothing unresolved between them', async () => {
  await withDesk(async (desk) => {
    const files = [datesFrom('2024-01-01', changes), datesFrom('2024-04-01', [0, 20])]
    for (const [n, dates] of files.entries())
      await desk.take([desk.put(`${n}.csv`, csv(dates)), '--as', 'changes', '--interval', '24h'])
    expect(await unresolvedTimes(desk, 'own/changes', '24h')).toEqual([])
  })
})

test('half-yearly values of quarters leave no decision unresolved', async () => {
  await withDesk(async (desk) => {
    const file = desk.put('halves.csv', csv(['2022-01-01', '2022-07-01', '2023-01-01', '2023-07-01']))
    await desk.take([file, '--as', 'halves', '--interval', '3month'])
    expect(await unresolvedTimes(desk, 'own/halves', '3month')).toEqual([])
  })
})

test('decisions after as_of are unresolved also for a file of changes', async () => {
  await withDesk(async (desk) => {
    await desk.take([desk.put('c.csv', csv(datesFrom('2024-01-01', changes))), '--as', 'changes', '--interval', '24h'])
    for (const day of ['2024-01-10', '2024-02-25', '2024-05-01'])
      expect(await unresolvedTimes(desk, 'own/changes', '24h', `SET VARIABLE as_of = '${day} 12:00:00+00'`)).toEqual([
        new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10),
      ])
  })
})
