import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openLake } from '../../src/index.ts'
import type { DatedTable } from '../../src/trust/dating/dating.ts'
import { pitlake } from '../helpers/command.ts'
import { listening } from '../helpers/listening.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { firstRates, revisedDays, revisedMetrics, revisedPaths } from '../helpers/lakes/revised-metrics.ts'

const { home, root } = lakeOfFile(revisedMetrics)
const { rate, blocks } = revisedPaths

async function date(lines: readonly string[], ...options: readonly string[]) {
  writeFileSync(join(home, 'table.csv'), `${lines.join('\n')}\n`)
  return await pitlake(home, ['when', 'table.csv', ...options, '--data', root])
}

async function dated(lines: readonly string[], ...options: readonly string[]): Promise<DatedTable> {
  return JSON.parse((await date(lines, ...options, '--json')).out) as DatedTable
}

const january = `${revisedDays[3]}T00:00:00Z`
const early = ['asset,t,sopr_adjusted_pit,block_count_pit', `BTC,2024-01-01,1.23,100`, `BTC,2024-01-02,2.35,101`]

describe('pitlake when', () => {
  test('a rounded table of points is dated between the last value it has and the first revision', async () => {
    const { code, out, message } = await date(early)
    expect([code, message]).toEqual([0, ''])
    expect(out).toContain('table           points, 2 rows, 4 cells compared\n')
    expect(out).toContain('as_of           from 2024-01-03T00:10:00.000000Z, before 2024-02-01T00:00:00.000000Z\n')
    expect(out).toContain('observed_as_of  from 2024-01-10T00:00:00.000000Z, before 2024-04-01T00:00:00.000000Z\n')
    expect(out).toContain(`  sopr_adjusted_pit  ${rate} 24h, rounded to 2 decimals\n`)
    expect(out).toContain(`  block_count_pit  ${blocks} 24h\n`)
  })

  test('a claimed time within the range is accepted, one outside is contradicted by the first cell', async () => {
    expect((await date(early, '--claimed', '2024-01-31')).code).toBe(0)
    const { code, out, message } = await date(early, '--claimed', '2024-02-15')
    expect(code).toBe(4)
    expect(out).toContain(
      '1 cell contradicts the claimed as_of 2024-02-15T00:00:00.000000Z\n' +
        '  row 1, sopr_adjusted_pit, BTC, 2024-01-01T00:00:00.000000Z: 1.23 in the table, 9.876543 in the lake\n' +
        "    the table's value: from 2024-01-02T00:10:00.000000Z, before 2024-02-01T00:00:00.000000Z\n",
    )
    expect(message).toContain('table.csv: as_of 2024-02-15T00:00:00.000000Z')
  })

  test('a claim about the contents of the lake is contradicted, too', async () => {
    expect((await date(early, '--claimed-observed', '2024-01-11')).code).toBe(0)
    const table = await dated(early, '--claimed-observed', '2024-01-09')
    expect(table).toMatchObject({ verdict: 'contradicted', contradiction: { axis: 'observed_as_of', cells: 4 } })
    expect(table.contradiction?.first[0]).toMatchObject({ row: 1, value: 1.23, answer: null, is_listed: true })
  })

  test('the refusal of a panel made with --back says that such a panel has no time', async () => {
    const panel = ['--metrics', rate, '--calendar', '2024-01-03,2024-01-06,1d', '--assets', 'BTC', '--back', '1d']
    const made = await pitlake(home, ['panel', ...panel, '--out', 'back.csv', '--data', root])
    expect(made.code).toBe(0)
    const { code, message } = await pitlake(home, ['when', 'back.csv', '--data', root])
    expect([code, message]).toEqual([4, expect.stringMatching(/; a panel made with --back cannot be dated$/)])
  })

  test('columns of different times do not belong together, and each has its own range', async () => {
    const mixed = ['asset,t,sopr_adjusted_pit,block_count_pit', 'BTC,2024-01-01,1.234567,777']
    const table = await dated(mixed)
    expect(table).toMatchObject({ verdict: 'mixed', as_of: [], observed_as_of: [] })
    expect(table.columns.map(({ column, as_of }) => [column, as_of])).toEqual([
      ['sopr_adjusted_pit', [{ from: '2024-01-02T00:10:00.000000Z', until: '2024-02-01T00:00:00.000000Z' }]],
      ['block_count_pit', [{ from: '2024-03-01T00:00:00.000000Z', until: null }]],
    ])
    const { code, message } = await date(mixed)
    expect([code, message]).toEqual([4, expect.stringContaining('got columns of different times')])
  })

  test('a value that the lake never answered is named, with the answer of the best time', async () => {
    const table = await dated([...early, 'BTC,2024-01-03,3.99,102'])
    expect(table.verdict).toBe('unmatched')
    expect(table.contradiction).toMatchObject({ claimed: false, cells: 1 })
    const [cell] = table.contradiction?.first ?? []
    expect(cell).toMatchObject({ row: 3, column: 'sopr_adjusted_pit', value: 3.99, answer: 3.456_789, as_of: [] })
  })

  test('decisions get what was known by then: a panel is dated by its last value', async () => {
    const panel = [`ts,asset,${rate}`, `${january},BTC,${firstRates[1]}`, `${january},ETH,12.345678`]
    const table = await dated(panel)
    expect(table).toMatchObject({ verdict: 'dated', kind: 'panel', mapping: { time: 'ts', asset: 'asset' } })
    expect(table.as_of).toEqual([{ from: '2024-01-03T00:10:00.000000Z', until: null }])
  })

  test('a time column of any name is tried both ways, and the better one is reported', async () => {
    const rows = ['asset,date,sopr_adjusted_pit', ...revisedDays.map((t, n) => `ETH,${t},${(firstRates[n] ?? 0) + 10}`)]
    expect(await dated(rows)).toMatchObject({ verdict: 'dated', kind: 'points' })
    const decisions = ['asset,date,sopr_adjusted_pit', `ETH,${revisedDays[2]}T12:00:00Z,12.345678`]
    expect(await dated(decisions)).toMatchObject({ verdict: 'dated', kind: 'panel' })
  })

  test('a column with an unknown name is found by its values', async () => {
    const rows = ['ticker,period_start,feature,note', ...firstRates.map((v, n) => `ETH,${revisedDays[n]},${v + 10},x`)]
    const table = await dated(rows)
    expect(table).toMatchObject({ verdict: 'dated', mapping: { asset: 'ticker', time: 'period_start' } })
    expect(table.columns).toMatchObject([{ column: 'feature', metric: rate, by: 'values' }])
    expect(table.ignored.map(({ column }) => column)).toEqual(['note'])
    expect((await date(rows)).out).toContain('(guessed by its values)')
  })

  test('columns that are assets are read with the one metric that is named', async () => {
    const table = await dated(['date,BTC,ETH', `2024-01-02,2.3457,12.3457`], '--metrics', rate, '--kind', 'points')
    expect(table).toMatchObject({ verdict: 'dated', cells: 2 })
    expect(table.columns.map(({ column, metric }) => [column, metric])).toEqual([
      ['BTC', rate],
      ['ETH', rate],
    ])
  })

  test('a table without an asset column is about the asset that is named', async () => {
    const table = await dated(['t,x', '2024-01-02,12.345678'], '--asset', 'ETH', '--metrics', `x=${rate}`)
    expect(table).toMatchObject({ verdict: 'dated', columns: [{ metric: rate, by: 'option' }] })
  })

  test('a metric in each row is taken from there, and an unknown one is reported', async () => {
    const rows = ['ts,asset,metric,value', `2024-01-02,ETH,${rate},12.345678`, '2024-01-02,ETH,no/such,1']
    const table = await dated(rows)
    expect(table).toMatchObject({ verdict: 'dated', kind: 'points', cells: 1 })
    expect(table.ignored).toContainEqual({ column: 'no/such', reason: 'no metric of the lake' })
  })

  test.each([
    [['a,b', '1,2'], [], 'expected columns that the lake has values for, got a, b; name them with --metrics'],
    [['asset,t,x', 'BTC,2024-01-01,1'], ['--metrics', 'x=indicators/sopr'], 'did you mean'],
    [
      ['asset,t,x', 'BTC,2024-01-01,1'],
      ['--ts', 'when'],
      '--ts: expected a column of the table: asset, t, x, got when',
    ],
    [[`asset,t,${rate}`, 'BTC,yesterday,1'], [], 'table.csv: expected a CSV or Parquet file that can be read'],
    [['asset,t,x', 'BTC,2024-01-01,1'], ['--kind', 'pannel'], '--kind: expected panel, points, vintages, universe'],
  ])('a table that cannot be dated is refused in one line, case %#', async (lines, options, words) => {
    const { code, message } = await date(lines, ...options)
    expect([code, message]).toEqual([2, expect.stringContaining(words)])
  })

  test('HTTP gives the document of the command line, and refuses what is no table without its path', async () => {
    const document = await dated(early, '--claimed', '2024-02-15')
    const door = await listening(root, ['serve'])
    const send = async (bytes: Buffer): Promise<Response> => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ table: bytes.toString('base64'), claimed: '2024-02-15' })
      return await fetch(`${door.url}/when`, { method: 'POST', headers, body })
    }
    try {
      expect(await (await send(readFileSync(join(home, 'table.csv')))).json()).toEqual(document)
      const refused = await send(Buffer.from('PAR1 and no more'))
      const words = await refused.text()
      expect([refused.status, words.includes(tmpdir()), words.includes(root)]).toEqual([400, false, false])
    } finally {
      await door.stop()
    }
  })

  test('TypeScript gives the document of the command line', async () => {
    const document = await dated(early, '--claimed', '2024-01-31')
    const lake = await openLake(root, { asOf: '2024-01-02' })
    expect(await lake.when(join(home, 'table.csv'), { claimed: '2024-01-31' })).toEqual(document)
    await lake.close()
  })
})
