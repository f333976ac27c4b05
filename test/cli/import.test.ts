// @module-tag full
import { appendFileSync, existsSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { tableFromArrays, tableToIPC } from 'apache-arrow'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { Engine } from '../../src/lake/store/engine.ts'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { sample } from '../helpers/tiers.ts'

/** A row as each format spells it: texts stay texts in JSON, what has no quotes is a number there. */
type Cells = readonly [asset: string, t: string, value: string]
const good: Cells[] = [
  ['BTC', '"2024-03-01"', '1'],
  ['BTC', '"2024-03-02"', '2'],
]

/** What is wrong with a third row, and what is said of it. */
const wrong: Readonly<Record<string, readonly [row: Cells, said: RegExp]>> = {
  'months as text': [['BTC', '"Mar 2024"', '3'], /row 3: t: expected a date such as 2024-03-01.*got "Mar 2024"/],
  'half a date': [['BTC', '"2024-03"', '3'], /row 3: t: .*got "2024-03"/],
  'no such day': [['BTC', '"2024-02-30"', '3'], /row 3: t: .*got "2024-02-30"/],
  'mixed zones': [
    ['BTC', '"2024-03-03T00:00:00Z"', '3'],
    /row 3: t: expected a time without a zone, as in the first row/,
  ],
  'off the grid': [['BTC', '"2024-03-03 07:00:00"', '3'], /row 3: t: expected the start of an interval of 24h/],
  'a fraction of a second': [['BTC', '"2024-03-03 00:00:00.5"', '3'], /row 3: t: expected .* whole seconds/],
  'thousands separators': [
    ['BTC', '"2024-03-03"', '"1,234.5"'],
    /row 3: value: expected a finite number, got .*1,234\.5/,
  ],
  'an empty asset': [['', '"2024-03-03"', '3'], /row 3: asset: expected a name/],
  'a sign that is no letter': [
    ['B\u0000C', '"2024-03-03"', '3'],
    /row 3: asset: expected a name without control signs/,
  ],
  'two values': [['BTC', '"2024-03-02"', '2.5'], /row 3: value: expected one value for BTC at 2024-03-02/],
  infinity: [['BTC', '"2024-03-03"', '"inf"'], /row 3: value: expected a finite number/],
  'no number': [['BTC', '"2024-03-03"', '"abc"'], /row 3: value: expected a finite number, got .*abc/],
}

const plain = (cell: string): string => cell.replaceAll('"', '')

/** Writes the rows in a format and gives the name of the file. */
async function written(desk: Desk, format: string, rows: readonly Cells[]): Promise<string> {
  if (format === 'csv') {
    const lines = rows.map(([asset, t, value]) => [asset, plain(t), value].join(','))
    return desk.put('p.csv', `\uFEFFasset,t,value\n${lines.join('\n')}\n`)
  }
  const lines = rows.map(([asset, t, value]) => `{"asset":${JSON.stringify(asset)},"t":${t},"value":${value}}`)
  if (format === 'jsonl') return desk.put('p.jsonl', `${lines.join('\n')}\n`)
  using engine = await Engine.open()
  const file = join(desk.folder, 'p.parquet')
  const values = rows.map(
    ([asset, t, value]) => `('${asset.replace('\0', "' || chr(0) || '")}', '${plain(t)}', '${plain(value)}')`,
  )
  await engine.run(`COPY (FROM (VALUES ${values.join(', ')}) AS x (asset, t, value)) TO '${file}' (FORMAT parquet)`)
  return file
}

for (const format of ['csv', ...sample(['jsonl', 'parquet'], 1)])
  test(`an unusable file is refused in one line, and no row of it is stored: ${format}`, async () => {
    await withDesk(async (desk) => {
      const cases = Object.entries(wrong)
      for (const [name, [row, said]] of format === 'csv' ? cases : sample(cases, 4)) {
        const file = await written(desk, format, [...good, row])
        const { code, message } = await desk.take([file, '--as', 'p', '--interval', '24h'])
        expect([code, message.split('\n').length], `${name}: ${message}`).toEqual([2, 1])
        expect(message, name).toMatch(said)
        expect(message).toContain(file)
      }
      expect(existsSync(join(desk.folder, 'lake', 'points'))).toBe(false)
      const file = await written(desk, format, [...good.toReversed(), ...good])
      const ended = await desk.take([file, '--as', 'p'])
      expect([ended.code, ended.message]).toEqual([0, ''])
      expect(ended.told).toMatchObject({ rows: 4, points_added: 2, left: 2, left_because: { doubled: 2, held: 0 } })
    })
  })

test('names in a Parquet column are distinguished and sorted as texts are', async () => {
  await withDesk(async (desk) => {
    using engine = await Engine.open()
    const rows = `SELECT name AS asset, money AS currency, TIMESTAMP '2000-01-01' + INTERVAL (n) DAY AS t, n + length(name) AS value
      FROM (SELECT unnest(['b', 'Z', 'é', 'a b', 'A']) AS name), (SELECT unnest(['usd', 'EUR']) AS money),
        (SELECT unnest(range(900)) AS n) ORDER BY hash(n), name DESC, money`
    const file = join(desk.folder, 'n.parquet')
    await engine.run(`COPY (${rows}) TO '${file}' (FORMAT parquet)`)
    const flags = ['--as', 'n', '--currency', 'currency', '--value', 'value']
    expect(await desk.take([file, ...flags])).toMatchObject({ code: 0 })
    const held = `SELECT asset, currency, epoch(t) AS t, v FROM read_parquet('${join(desk.folder, 'lake/points/**/*.parquet')}')`
    const sorted = `SELECT asset, currency, epoch(t) AS t, CAST(value AS DOUBLE) AS v FROM (${rows}) ORDER BY ALL`
    const told = async (sql: string) => JSON.stringify(await engine.rows(sql))
    expect((await told(held)) === (await told(sorted))).toBe(true)
  })
})

test('files that are torn, of several kinds or too large are refused', async () => {
  await withDesk(async (desk) => {
    const parquet = await written(desk, 'parquet', good)
    truncateSync(parquet, 200)
    const refused = async (argv: readonly string[]): Promise<string> => {
      const { code, message } = await desk.take([...argv, '--as', 'p'])
      expect([code, message.split('\n').length], message).toEqual([2, 1])
      return message
    }
    expect(await refused([parquet])).toMatch(/p\.parquet: expected a file that is whole/)
    const torn = desk.put('torn.csv', 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02\n')
    expect(await refused([torn])).toMatch(/torn\.csv: line 3/)
    const half = desk.put('half.jsonl', '{"asset":"BTC","t":"2024-03-01","value":1}\n{"asset":"BT')
    expect(await refused([half])).toMatch(/half\.jsonl/)
    const bytes = desk.put('half.csv.gz', gzipSync('asset,t,value\nBTC,2024-03-01,1\n').subarray(0, 20))
    expect(await refused([bytes])).toMatch(/half\.csv\.gz/)
    const csv = await written(desk, 'csv', good)
    expect(await refused([csv, half])).toMatch(/expected csv, as .*p\.csv, got json/)
    expect(await refused([csv, '--max-bytes', '0.00001kb'])).toMatch(/at most 10000 files/)
    expect(await refused([join(desk.folder, 'none*.csv')])).toMatch(/no such file/)
    expect(await refused([csv, '--t', 'when'])).toMatch(
      /--t: expected a column of the file \(asset, t, value\), got when/,
    )
    const [one, other] = ['1', 'x'].map((v, n) =>
      desk.put(`${n}.csv`, `asset,t,value\nA${n},2024-03-01,1\nA${n},2024-03-02,${v}\n`),
    )
    expect(await refused([one ?? '', other ?? ''])).toMatch(/1\.csv: row 2: value: expected a finite number, got "x"/)
    // One row a series tells no interval; why there is but one is told first.
    const twice = desk.put('twice.csv', 'asset,t,value\nBTC,2024-03-01,1\nETH,2024-03-01,2\n')
    expect(await refused([twice, '--asset', '=BTC'])).toMatch(/row 2: value: expected one value for BTC at 2024-03-01/)
    const before = 'asset,t,value\nBTC,2024-02-29,5\nETH,2024-02-29,5\nBTC,2024-03-01,1\nETH,2024-03-01,2\n'
    expect(await refused([desk.put('both.csv', before), '--asset', '=BTC'])).toMatch(/row 4: .* BTC at 2024-03-01/)
    expect(await refused([twice])).toMatch(/--interval: expected one of .*got one row a series/)
    expect(await refused([csv, '--value', 'value', '--components', 'value'])).toMatch(/--components: expected either/)
    expect(await refused([csv, '--available', 'soon'])).toMatch(/--available: expected a rule such as/)
    expect(await refused([desk.put('e.csv', '')])).toMatch(/an empty file/)
    const clash = desk.put(
      'c.yaml',
      'endpoints: [{ path: own/p, intervals: [24h] }]\navailability: [{ paths: [own/p], lag: 1h, basis: assumed, reason: r }]\n',
    )
    const config = desk.put('pitlake.yaml', `catalogs: [${clash}]\n`)
    expect(await refused([csv, '--config', config])).toMatch(/own\/p, which stands at .*c\.yaml:1/)
  })
})

test('every format, compressed, a folder, a glob, a SELECT and numbers as instants', async () => {
  await withDesk(async (desk) => {
    const csv = 'asset,t,value\nBTC,1709251200000,1\nBTC,1709337600000,2\n'
    const jsonLines = [1709251200000, 1709337600000]
      .map((t, n) => `{"asset":"BTC","t":${t},"value":${n + 1}}`)
      .join('\n')
    desk.put('a.csv', csv)
    desk.put('b.csv.gz', gzipSync(csv))
    desk.put('c.csv.zst', zstdCompressSync(csv))
    desk.put('F.CSV.GZ', gzipSync(csv))
    desk.put('G.JSONL.ZST', zstdCompressSync(jsonLines))
    const files = { a: 'a.csv', b: 'b.csv.gz', c: 'c.csv.zst', d: '[ab].csv*', f: 'F.CSV.GZ', g: 'G.JSONL.ZST' }
    for (const [name, given] of Object.entries(files)) {
      const { code, message, told } = await desk.take([join(desk.folder, given), '--as', name, '--unit', 'ms'])
      expect([code, message, told['points_added']], given).toEqual([0, '', 2])
    }
    expect((await desk.take([join(desk.folder, 'a.csv'), '--as', 'e'])).message).toMatch(
      /the unit of its numbers|a date such as/,
    )
    for (const [name, text] of [
      ['h.csv', 'asset,t,value\nBTC,1709251200.4,1\n'],
      ['h.jsonl', '{"asset":"BTC","t":1709251200.4,"value":1}\n'],
    ] as const)
      expect((await desk.take([desk.put(name, text), '--as', 'h', '--unit', 's'])).message, name).toMatch(
        /row 1: t: expected .* whole seconds, of the years 1700 to 2199, got "1709251200\.4"/,
      )
    using engine = await Engine.open()
    await engine.run(
      `COPY (SELECT 'BTC' AS asset, unnest(range(TIMESTAMP '2024-03-01', TIMESTAMP '2024-03-02', INTERVAL 1 MINUTE)) AS time, 3.0 AS price, 2.0 AS size) TO '${desk.folder}/trades.parquet'`,
    )
    const bars = `SELECT asset, time_bucket(INTERVAL 1 HOUR, time) AS t, first(price ORDER BY time) AS open, max(price) AS high, min(price) AS low, last(price ORDER BY time) AS close, sum(size) AS volume FROM '${desk.folder}/trades.parquet' GROUP BY ALL`
    const taken = await desk.take([
      bars,
      '--as',
      'bars',
      '--components',
      'open,high,low,close,volume',
      '--available',
      'open=start',
    ])
    expect([taken.message, taken.told['points_added']]).toEqual(['', 24])
    const endpoints = await desk.rows(
      `SELECT metric, source, intervals FROM endpoints WHERE metric IN ('own/a', 'own/bars') ORDER BY 1`,
    )
    expect(endpoints).toEqual([
      { metric: 'own/a', source: 'imported', intervals: ['24h'] },
      { metric: 'own/bars', source: 'imported', intervals: ['1h'] },
    ])
    const listed = await desk.run(['catalog', 'list', 'own/*', '--json'])
    expect(JSON.parse(listed.out)).toHaveLength(7)
    expect((await desk.run(['plan', '--paths', 'own/a', '--assets', 'BTC'])).message).toMatch(
      /own data, which is imported/,
    )
  })
})

test('dated exports are known from the end of their day, in the zone that is said', async () => {
  await withDesk(async (desk) => {
    desk.put('prices-2024-03-01.csv', 'asset,t,value\nBTC,2024-02-28,1\nBTC,2024-02-29,2\n')
    desk.put('prices-2024-03-02.csv', 'asset,t,value\nBTC,2024-02-28,1\nBTC,2024-02-29,2.5\nBTC,2024-03-01,3\n')
    const { code, told, notes, message } = await desk.take([
      join(desk.folder, 'prices-*.csv'),
      '--as',
      'p',
      '--zone',
      'America/New_York',
    ])
    expect(message).toContain('1 stored value differs')
    expect(notes).toContain('dated exports')
    expect([code, told]).toMatchObject([4, { rows: 5, points_added: 3, violations: 1 }])
    const known = await desk.rows(
      `SELECT CAST(CAST(t AS DATE) AS VARCHAR) AS t, v, CAST(epoch_ms(available_at) AS DOUBLE) AS at FROM points ORDER BY t`,
    )
    const [first, second] = ['2024-03-02T05:00:00Z', '2024-03-03T05:00:00Z'].map((at) => Date.parse(at))
    expect(known).toEqual([
      { t: '2024-02-28', v: 1, at: first },
      { t: '2024-02-29', v: 2, at: first },
      { t: '2024-03-01', v: 3, at: second },
    ])
  })
})

test('sources of a catalogue are imported by name; a file of unclear meaning ends in a question', async () => {
  await withDesk(async (desk) => {
    desk.put(
      'p.csv',
      'ticker,date,close,published_at\nBTC,2024-03-01,1,2024-03-02T08:00:00Z\nBTC,2024-03-02,2,2024-03-03T09:30:00Z\n',
    )
    const guess = await desk.run(['import', '--guess', join(desk.folder, 'p.csv'), '--as', 'signal'])
    expect(guess.out).toMatch(
      /sources:\n {2}signal:\n {4}files: .*\n {4}asset: ticker\n {4}t: date\n {4}value: close\n {4}available_at: published_at\n/,
    )
    expect(guess.out).toContain('is `date` the start or the end of the interval?')
    writeFileSync(join(desk.folder, 'own.yaml'), guess.out)
    const config = desk.put('pitlake.yaml', `catalogs: [${join(desk.folder, 'own.yaml')}]\n`)
    const taken = await desk.take(['--config', config])
    expect([taken.message, taken.told]).toMatchObject(['', { imports: [{ points_added: 2 }] }])
    const rows = await desk.rows(`SELECT basis, CAST(epoch_ms(available_at) AS DOUBLE) AS at FROM points ORDER BY t`)
    expect(rows).toEqual(
      ['2024-03-02T08:00:00Z', '2024-03-03T09:30:00Z'].map((at) => ({ basis: 'provider', at: Date.parse(at) })),
    )
    writeFileSync(join(desk.folder, 'own.yaml'), guess.out.replace('    t: date', '    tt: date'))
    expect((await desk.take(['--config', config])).message).toMatch(/own\.yaml:5: sources\.signal\.tt: expected one of/)
    expect(readdirSync(desk.folder)).toContain('lake')
  })
})

test('L4: rows that are imported again make no version, whatever was imported in between', async () => {
  await withDesk(async (desk) => {
    const file = await written(desk, 'csv', good)
    const versions: unknown[] = []
    for (const name of ['nav', 'macro', 'nav', 'macro']) {
      const { code, out, message } = await desk.take([file, '--as', name, '--interval', '24h', '--json'])
      expect(code, message).toBe(0)
      versions.push((JSON.parse(out) as { readonly version: unknown }).version)
    }
    const [, second] = versions
    expect(versions.slice(2)).toEqual([second, second])
  })
})

test('verify compares user data with the imported files that still exist', async () => {
  await withDesk(async (desk) => {
    const file = desk.put('p.csv', 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02,2\n')
    const bars = desk.put('b.csv', 'asset,t,open,close\nBTC,2024-03-01,1,2\n')
    await desk.take([file, '--as', 'p', '--interval', '24h'])
    await desk.take([bars, '--as', 'b', '--interval', '24h', '--components', 'open,close', '--available', 'open=start'])
    const verified = async (...more: readonly string[]) => {
      const { code, out, message } = await desk.run(['verify', '--json', ...more])
      const { own, version } = JSON.parse(out) as {
        version: number
        own: { files: { metric: string; state: string; news: number }[]; differences: Record<string, unknown>[] }
      }
      const states = own.files.map(({ metric, state, news }) => `${metric} ${state} ${news}`).toSorted()
      return { code, message, states, version, differences: own.differences }
    }
    expect(await verified()).toMatchObject({ code: 0, states: ['own/b held 0', 'own/p held 0'], differences: [] })
    desk.put('p.csv', 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02,2.5\nBTC,2024-03-03,3\n')
    rmSync(bars)
    const told = await verified()
    expect(told).toMatchObject({
      code: 4,
      states: ['own/b gone 0', 'own/p differs 1'],
      message: expect.stringMatching(/1 stored value differs in the files from which they came/),
      differences: [{ metric: 'own/p', asset: 'BTC', t: '2024-03-02T00:00:00Z', stored: '2.0', offered: '2.5' }],
    })
    // Told again, recorded once; nothing was taken, and what is not named is left out.
    expect(await verified('--paths', 'own/p')).toMatchObject({
      code: 4,
      states: ['own/p differs 1'],
      version: told.version,
    })
    expect(await desk.rows('SELECT count(*) AS n FROM points')).toEqual([{ n: 3n }])
    expect(await desk.rows('SELECT count(*) AS n FROM violations')).toEqual([{ n: 1n }])
    desk.put('p.csv', 'asset,t,value\nBTC,2024-03-01,one\n')
    const words = await desk.run(['verify'])
    expect(words.out).toMatch(
      /own data +2 files from which it came: .*\n[^]*gone +own\/b[^]*unreadable own\/p: .*p\.csv: row 1/,
    )
  })
})

test('user data become sources of a dbt project', async () => {
  await withDesk(async (desk) => {
    const file = desk.put('p.csv', 'asset,t,open,close\nBTC,2024-03-01,1,2\nBTC,2024-03-02,3,4\n')
    await desk.take([file, '--as', 'desk/bars', '--components', 'open,close', '--interval', '24h'])
    const { code, out, message } = await desk.run(['catalog', 'export', '--dbt'])
    expect([code, message]).toEqual([0, ''])
    const { sources } = parse(out) as {
      sources: {
        name: string
        tables: { name: string; config?: { freshness?: object; meta?: { external_location: string } } }[]
      }[]
    }
    const [table] = sources.find(({ name }) => name === 'lake_endpoints')?.tables ?? []
    expect([table?.name, table?.config?.freshness]).toEqual(['own__desk__bars__24h', undefined])
    const where = table?.config?.meta?.external_location.replace('lake.main.', '')
    expect(await desk.rows(`SELECT count(*) AS n FROM ${where}`)).toEqual([{ n: 2n }])
  })
})

test('Arrow is read as files and as streams; a row that cannot be used is named', async () => {
  await withDesk(async (desk) => {
    const days = [0, 1, 2].map((n) => new Date(Date.UTC(2024, 2, 1 + n)))
    const table = (values: readonly (number | null)[]) =>
      tableFromArrays({
        asset: ['BTC', 'BTC', 'ETH'],
        t: days,
        open: [...values],
        close: [4, 5, 6],
        known: ['a', 'b', 'c'],
      })
    for (const [name, kind] of [
      ['a.arrow', 'file'],
      ['b.arrows', 'stream'],
    ] as const) {
      const file = desk.put(name, Buffer.from(tableToIPC(table([1, 2, null]), kind)))
      const mapped = [
        '--as',
        name[0] ?? '',
        '--interval',
        '24h',
        '--components',
        'open,close',
        '--available',
        'open=start',
      ]
      const { code, message, told } = await desk.take([file, ...mapped])
      expect([code, message, told['rows'], told['points_added']], name).toEqual([0, '', 3, 3])
      const rows = await desk.rows(
        `SELECT asset, o, available_at FROM points WHERE metric = 'own/${name[0]}' ORDER BY t`,
      )
      expect(rows.map((row) => [row['asset'], row['o'], row['available_at']])).toEqual([
        ['BTC', '{"open":1.0,"close":4.0}', '2024-03-02T00:00:00.000000Z'],
        ['BTC', '{"open":2.0,"close":5.0}', '2024-03-03T00:00:00.000000Z'],
        ['ETH', '{"open":null,"close":6.0}', '2024-03-04T00:00:00.000000Z'],
      ])
      const again = await desk.take([file, '--as', name[0] ?? ''])
      expect(again.told).toMatchObject({ points_added: 0, left_because: { held: 3 } })
    }
    const wrong = desk.put('c.arrow', Buffer.from(tableToIPC(table([1, 2, 3]), 'file')))
    const { code, message } = await desk.take([wrong, '--as', 'c', '--value', 'known'])
    expect([code, message]).toEqual([
      2,
      expect.stringMatching(/c\.arrow: row 1: value: expected a finite number, got "?a/),
    ])
  })
})

test('a file that grows during an import is refused whole, and imported once it no longer changes', async () => {
  await withDesk(async (desk) => {
    const row = (n: number): string => `BTC,${new Date(Date.UTC(2000, 0, 1 + n)).toISOString().slice(0, 10)},${n}\n`
    const file = desk.put('p.csv', `asset,t,value\n${Array.from({ length: 2000 }, (_, n) => row(n)).join('')}`)
    let n = 2000
    const writing = setInterval(() => n < 5000 && appendFileSync(file, row(n++)), 1)
    const refused = await desk.take([file, '--as', 'p'])
    clearInterval(writing)
    expect([refused.code, refused.message]).toEqual([
      6,
      expect.stringMatching(/p\.csv: expected a file that does not change during the import/),
    ])
    expect(existsSync(join(desk.folder, 'lake', 'points'))).toBe(false)
    const { code, told } = await desk.take([file, '--as', 'p'])
    expect([code, told['points_added']]).toEqual([0, n])
  })
})

test('the mapping that is proposed for a file of bars has a clock for each part', async () => {
  await withDesk(async (desk) => {
    const rows = 'BTC,2024-03-01,1,4,0,2,9\nBTC,2024-03-02,2,5,1,3,8\n'
    const file = desk.put('b.csv', `ticker,date,Open,High,Low,Close,Volume\n${rows}`)
    const guess = await desk.run(['import', '--guess', file, '--as', 'bars'])
    expect(guess.out).toContain('    components: [Open, High, Low, Close, Volume]\n')
    expect(guess.out).not.toMatch(/^ +(?:value|available):/m)
    const each = 'Open=start,High=end,Low=end,Close=end,Volume=end'
    expect(guess.out).toContain(`# when was each part of a bar known?   available: ${each}\n`)
    const flags = /--components \S+ --available [^)\s]+/.exec(guess.out)?.[0].split(' ') ?? []
    expect(flags[3]).toBe(each)
    await desk.take([file, '--as', 'bars', '--asset', 'ticker', '--t', 'date', '--interval', '24h', ...flags])
    const opens = await desk.rows(
      `SELECT CAST(epoch_ms(available_at) AS DOUBLE) AS at FROM components WHERE component = '/Open' ORDER BY t`,
    )
    expect(opens.map(({ at }) => at)).toEqual([Date.UTC(2024, 2, 1), Date.UTC(2024, 2, 2)])
    const short = desk.put('s.csv', `s,ts,o,h,l,c\n${rows.replaceAll(/,\d\n/g, '\n')}`)
    expect((await desk.run(['import', '--guess', short])).out).toContain('components: [o, h, l, c]')
    const part = desk.put('p.csv', 'asset,t,close,volume\nBTC,2024-03-01,1,2\n')
    expect((await desk.run(['import', '--guess', part])).out).toMatch(/ {4}value: close\n[^]*when was a value known\?/)
  })
})
