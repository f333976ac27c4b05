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

/** Writes one row as CSV or as JSON. */
function putRow(format: 'csv' | 'jsonl', t: string, known: string): string {
  if (format === 'csv') return put([`"${t}",1,"${known}"`])
  const file = join(folder, 'p.jsonl')
  writeFileSync(file, `${JSON.stringify({ asset: 'BTC', t, value: 1, known })}\n`)
  return file
}

const seconds = (text: string): number => Date.parse(text) / 1000

test.each(['2024-03-10', '2024-3-10', '2024/3/10', '2024/03/10', '2024-3-10  ', ' 2024-03-10'])(
  'the bare date "%s" names the whole day, however it is spelled',
  async (date) => {
    const known = { available_at: 'known' }
    for (const format of ['csv', 'jsonl'] as const) {
      const [dated] = await readUserRows([putRow(format, date, date)], known)
      expect([Number(dated?.['mark']), Number(dated?.['computed']) / 1e6], format).toEqual([
        seconds('2024-03-10'),
        seconds('2024-03-11'),
      ])
      const [ended] = await readUserRows([putRow(format, date, date)], { timestamp: 'interval_end' })
      expect(Number(ended?.['mark']), format).toBe(seconds('2024-03-11'))
      // Havana's clocks skip the first hour of this day.
      const [zoned] = await readUserRows([putRow(format, '2024-3-9', '2024-3-9')], { ...known, zone: 'America/Havana' })
      expect(Number(zoned?.['computed']) / 1e6, format).toBe(seconds('2024-03-10T05:00:00Z'))
    }
  },
)

test.each([
  '2024-3-2T9',
  '2024-3-2 x',
  '2024-03-02x',
  '2024-03-02Z',
  '2024-03-02 +02',
  '2024-03-02T10+02',
  '2024-03',
  '2024-03-02 10:30:00 BST',
  '2024-07-01 10:30:00 PST',
  '2024-03-02 10:30:00.1234567',
  '2024-03-02 (BC)',
  'infinity',
  'epoch',
  '24-3-2',
  '3/2/2024',
  '20240302',
  '1_709_251_200',
])('the text "%s", of which DuckDB could make a different time, is refused with its row', async (text) => {
  for (const format of ['csv', 'jsonl'] as const) {
    const mapping = { available_at: 'known', unit: 's' } as const
    const refusal = await refusalOf([putRow(format, '2024-03-01', text)], mapping)
    expect(refusal, format).toMatch(/row 1: available-at: expected a date such as 2024-03-01 or an instant/)
    expect(refusal, format).toContain(`got ${JSON.stringify(text)}`)
  }
})

test('an import notes times that are all midnights where a date would mean the end of its day', async () => {
  await withDesk(async (desk) => {
    let imports = 0
    const noted = async (known: string, ...flags: string[]): Promise<string> => {
      const query = `SELECT 'BTC' AS asset, DATE '2024-03-01' AS t, 1.0 AS value, ${known} AS known`
      const { message, told } = await desk.take([query, '--as', `p${imports++}`, '--interval', '24h', ...flags])
      expect(message).toBe('')
      return String(told['notes'])
    }
    const note = /each time in known is the beginning of a day/
    const flags = ['--available-at', 'known']
    expect(await noted(`TIMESTAMP '2024-03-04'`, ...flags)).toMatch(note)
    expect(await noted(`TIMESTAMPTZ '2024-03-04 05:00:00+00'`, ...flags, '--zone', 'America/New_York')).toMatch(note)
    for (const known of [`DATE '2024-03-04'`, `'2024-3-4'`, `TIMESTAMP '2024-03-04 08:00'`])
      expect(await noted(known, ...flags), known).not.toMatch(note)
    expect(await noted('t', '--t', 'known', '--timestamp', 'interval_end')).not.toMatch(note)
    expect(await noted(`TIMESTAMP '2024-03-01'`, '--t', 'known', '--timestamp', 'interval_end')).toMatch(note)
  })
})

/** One row whose times have these types. */
const typed = (t: string, known: string): string => `SELECT 'BTC' AS asset, ${t} AS t, 1.0 AS value, ${known} AS known`

test('a date as a number is no time of knowledge in seconds', async () => {
  for (const number of ['20240302', '20240302.0', '20240302::DOUBLE', '20240302::BIGINT', '2024::SMALLINT'])
    expect(await refusalOf([typed(`DATE '2024-03-01'`, number)], { available_at: 'known', unit: 's' }), number).toMatch(
      /row 1: available-at: expected a date such as 2024-03-01/,
    )
})

test('seconds before and after 1970 are numbers of one spelling', async () => {
  const rows = await readUserRows([put(['-86400,1,', '0.0,1,', '86400.000000,1,'])], { unit: 's' })
  expect(rows.map(({ mark }) => Number(mark))).toEqual([-86400, 0, 86400])
})

test('seconds of every numeric type are read, and absurd ones are refused with their row', async () => {
  for (const type of ['INTEGER', 'UINTEGER', 'BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE', 'DECIMAL(18,3)']) {
    const at = (number: string): string => `CAST(${number} AS ${type})`
    const mapping = { available_at: 'known', unit: 's' } as const
    const [row] = await readUserRows([typed(at('1709251200'), at('1709337600'))], mapping)
    expect([Number(row?.['mark']), Number(row?.['computed'])], type).toEqual([1709251200, 1709337600e6])
    if (/INTEGER/.test(type)) continue
    expect(await refusalOf([typed(at('1709251200'), at('1e14'))], mapping), type).toMatch(/row 1: available-at: /)
  }
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
