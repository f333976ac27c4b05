import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { randomOf } from '../helpers/random.ts'
import { withDesk } from '../helpers/importing.ts'
import { scratch } from '../helpers/scratch.ts'
import { readUserRows, refusalOf } from '../helpers/user-files.ts'

const folder = scratch('times')

function put(rows: readonly string[]): string {
  const file = join(folder, 'p.csv')
  writeFileSync(file, `asset,t,value,known\n${rows.map((row) => `BTC,${row}\n`).join('')}`)
  return file
}

test('an instant of a year that no lake holds ends an import at once with its row', async () => {
  for (const t of ['24-03-01', '0024-03-01', '1500-01-01', '1699-12-30', '2200-01-01', '-1000000000000']) {
    const unit = { unit: 's' } as const
    expect(await refusalOf([put(['2024-03-01,1,2024-03-02', `${t},1,2024-03-02`])], unit), t).toMatch(
      /p\.csv: row 2: t: /,
    )
    const late = put(['2024-03-01,1,2024-03-02', `2024-03-02,1,${t}`])
    const refusal = await refusalOf([late], { ...unit, available_at: 'known' })
    expect(refusal, t).toMatch(/p\.csv: row 2: available-at: expected .* 1700 to 2199/)
  }
  expect(await readUserRows([put(['1700-01-01,1,2024-03-02', '2199-12-31,1,2024-03-02'])], {})).toHaveLength(2)
  await withDesk(async (desk) => {
    const { code, message } = await desk.take([put(['24-03-01,1,']), '--as', 'p', '--interval', '24h'])
    expect([code, message]).toEqual([2, expect.stringMatching(/row 1: t: expected .*got "24-03-01"/)])
  })
})

/**
 * All instants at which the clocks of a zone show a local time: looked for one by one, with the calendar of JavaScript.
 */
function instantsOf(local: number, zone: string): number[] {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' })
  const steps = Array.from({ length: 4 * 29 }, (_, n) => local + (n - 58) * 900_000)
  const shown = new Date(local).toISOString().slice(0, 19).replace('T', ' ')
  return steps.filter((at) => format.format(at) === shown)
}

/** Zones with a day on which their clocks go forth, and one on which they go back. */
const changes: Readonly<Record<string, readonly [string, string]>> = {
  'America/New_York': ['2024-03-10', '2024-11-03'],
  'Australia/Lord_Howe': ['2024-10-06', '2024-04-07'],
  'Europe/London': ['1968-02-18', '2023-10-29'],
  'Pacific/Apia': ['2011-12-30', '2012-04-01'],
}

test('a local time is one instant of its zone, or is refused; --ambiguous picks one of two', async () => {
  const random = randomOf(Number(process.env['PITLAKE_SEED'] ?? 49))
  const seen = [0, 0, 0]
  for (const [zone, days] of Object.entries(changes))
    for (let n = 0; n < 8; n++) {
      const day = Date.parse(days[n % 2] ?? '')
      const local = day + Math.floor(random() * 5 * 6) * 600_000
      const row = `${new Date(local).toISOString().slice(0, 19)},1,`
      const found = instantsOf(local, zone)
      const picks = [undefined, 'earlier', 'later'] as const
      const marks = await Promise.all(
        picks.map(async (ambiguous) => {
          const rows = await readUserRows([put([row])], {
            zone,
            interval: '10m',
            ...(ambiguous && { ambiguous }),
          }).catch(String)
          return typeof rows === 'string' ? rows : Number(rows[0]?.['mark']) * 1000
        }),
      )
      seen[found.length] = (seen[found.length] ?? 0) + 1
      const refused = expect.stringMatching(/row 1: t: expected .* the clocks of .* show/)
      const once = found.length === 1 ? found[0] : refused
      expect(marks, `${zone} ${row}`).toEqual([once, found[0] ?? refused, found.at(-1) ?? refused])
    }
  expect(Math.min(...seen)).toBeGreaterThan(0)
})
