import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { SourceMapping } from '../../src/catalog/sources.ts'
import { withDesk } from '../helpers/importing.ts'
import { scratch } from '../helpers/scratch.ts'
import { readUserRows, refusalOf } from '../helpers/user-files.ts'

const folder = scratch('missing')

/** Writes the values of three days, each as the format spells it, null where the key or the cell is missing. */
function put(format: 'csv' | 'jsonl', values: readonly (string | null)[]): string {
  const file = join(folder, `values.${format}`)
  const dates = values.map((_, n) => `2024-03-0${n + 1}`)
  const lines = values.map((value, n) =>
    format === 'csv'
      ? `BTC,${dates[n]},${value === null ? '' : `"${value}"`}`
      : JSON.stringify({ asset: 'BTC', t: dates[n], ...(value !== null && { value }) }),
  )
  writeFileSync(file, `${format === 'csv' ? 'asset,t,value\n' : ''}${lines.join('\n')}\n`)
  return file
}

/** Texts of a column, the mapping, and the numbers that they are. */
const texts: readonly (readonly [values: readonly (string | null)[], SourceMapping, (number | null)[]])[] = [
  [['3.7', '.', '-2e3'], { null_text: '.' }, [3.7, null, -2000]],
  [['3.7', null, '4'], { null_text: '.' }, [3.7, null, 4]],
  [['3.7', '-999', '4'], { null_text: '-999' }, [3.7, null, 4]],
  [['3.7', '-999', '4'], {}, [3.7, -999, 4]],
  [['0', 'n/a', '4'], { null_text: 'n/a' }, [0, null, 4]],
]

test('texts are the numbers that they name, and --null names the text of a missing value', async () => {
  for (const format of ['csv', 'jsonl'] as const) {
    for (const [values, mapping, wanted] of texts) {
      const rows = await readUserRows([put(format, values)], mapping)
      expect(
        rows.map(({ v }) => v),
        `${format} ${values.join(' ')}`,
      ).toEqual(wanted)
    }
    for (const stray of ['.', '1_000', '1,5', 'abc', 'inf'])
      expect(await refusalOf([put(format, ['1', stray, '2'])], { null_text: '..' }), `${format} ${stray}`).toMatch(
        /row 2: value: expected a finite number/,
      )
  }
})

test('digits of a JSON number that no double has are stored as text', async () => {
  const rows = await readUserRows([put('jsonl', ['9007199254740993', '9007199254740992'])], {})
  expect(rows.map(({ extra }) => extra)).toEqual(['{"v":9007199254740993}', null])
})

test('--null is refused for a column of numbers, whose missing values are null already', async () => {
  await withDesk(async (desk) => {
    const query = `SELECT 'BTC' AS asset, DATE '2024-03-01' AS t, 1.0 AS value`
    const { code, message } = await desk.take([query, '--as', 'p', '--interval', '24h', '--null', '.'])
    expect([code, message]).toEqual([
      2,
      expect.stringMatching(/--null: expected texts in the column value, got DECIMAL/),
    ])
  })
})

test('days that --expected weekdays leaves out are no gaps, and a missing weekday is one', async () => {
  const days = ['2024-03-01', '2024-03-04', '2024-03-05', '2024-03-07', '2024-03-08', '2024-03-12']
  const gaps = `SELECT strftime(since, '%m-%d') || ' ' || strftime(until, '%m-%d') AS x FROM gaps ORDER BY since`
  for (const [flags, wanted] of [
    [[], ['03-02 03-04', '03-06 03-07', '03-09 03-12']],
    [
      ['--expected', 'weekdays'],
      ['03-06 03-07', '03-11 03-12'],
    ],
  ] as const)
    await withDesk(async (desk) => {
      const file = desk.put('r.csv', `asset,t,value\n${days.map((date) => `US,${date},1\n`).join('')}`)
      expect((await desk.take([file, '--as', 'r', '--interval', '24h', ...flags])).message).toBe('')
      expect((await desk.rows(gaps)).map(({ x }) => x)).toEqual(wanted)
    })
})
