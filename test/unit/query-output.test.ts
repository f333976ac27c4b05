import { createRequire } from 'node:module'
import { readdir, readFile, writeFile as put } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { RecordBatchReader, tableFromIPC } from 'apache-arrow'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Engine } from '../../src/lake/store/engine.ts'
import { runScript } from '../../src/query/run.ts'
import { layTable } from '../../src/query/table.ts'
import { outFile } from '../../src/lake/store/output.ts'
import { type Format, formatFacts, formatOf, formats, writeFile, writeTo } from '../../src/query/write.ts'
import { scratch } from '../helpers/scratch.ts'

type WriteOptions = Parameters<typeof writeFile>[0]['options']

let engine: Engine
const home = scratch('output')
beforeAll(async () => {
  engine = await Engine.open()
})
afterAll(async () => {
  engine.close()
})

const deps = { folder: 'lake', sleep: setTimeout }

async function text(sql: string, format: Format, more: Partial<WriteOptions> = {}): Promise<string> {
  return (await bytes(sql, format, more)).toString(format === 'arrow' ? 'latin1' : 'utf8')
}

async function bytes(sql: string, format: Format, more: Partial<WriteOptions> = {}): Promise<Buffer> {
  const parts: (string | Uint8Array)[] = []
  const ready = await runScript(engine, sql, deps)
  const sink = async (part: string | Uint8Array) => void parts.push(part)
  await writeTo({ engine, ready, options: { format, width: 80, rows: Infinity, ...more }, deps }, sink)
  return Buffer.concat(parts.map((part) => Buffer.from(part)))
}

async function file(sql: string, name: string, more: Partial<WriteOptions> = {}): Promise<string> {
  const ready = await runScript(engine, sql, deps)
  const path = join(home, name)
  const options = { format: formatOf(name) ?? 'table', width: 80, rows: Infinity, ...more }
  await writeFile({ engine, ready, options, deps }, outFile(path, join(home, 'lake')), name)
  return path
}

/** One value of every kind that SQL gives, then a row of NULLs. */
const kinds =
  `SELECT '-0.0'::DOUBLE AS zero, 5e-324::DOUBLE AS tiny, 1.7976931348623157e308::DOUBLE AS huge, 0.1::FLOAT AS single,
 'nan'::DOUBLE AS nan, '-infinity'::DOUBLE AS low, 9007199254740993 AS whole, 9007199254740992 AS edge, 7::UTINYINT AS small,
 170141183460469231731687303715884105::HUGEINT AS wide, 1.50::DECIMAL(18,2) AS price, true AS yes,
 'a,"b"' || chr(10) || 'ü' AS words, '' AS empty, '\\xAA\\x00'::BLOB AS bytes, DATE '2024-02-29' AS day,
 make_timestamptz(1709211600000001) AS at, 'infinity'::TIMESTAMPTZ AS open, make_timestamp(1709211600000001) AS plain,
 [1, NULL, 3] AS list, {'a': 1, 'b': ['x']} AS struct, MAP {'k': 2} AS map, [1, 2]::INTEGER[2] AS pair,
 '{"a": 1.0}'::JSON AS doc, 'x'::ENUM('x', 'y') AS enum, uuid_nil() AS id, INTERVAL '1 month 2 days' AS span, TIME '10:00:00.000001' AS hour`.replace(
    'uuid_nil()',
    `'00000000-0000-0000-0000-000000000000'::UUID`,
  )
const withNulls = `${kinds} UNION ALL BY NAME SELECT NULL::DOUBLE AS zero`

describe('json and jsonl', () => {
  const line =
    '{"zero":-0.0,"tiny":5e-324,"huge":1.7976931348623157e+308,"single":0.10000000149011612,"nan":"NaN","low":"-Infinity",' +
    '"whole":"9007199254740993","edge":9007199254740992,"small":7,"wide":"170141183460469231731687303715884105","price":"1.50",' +
    '"yes":true,"words":"a,\\"b\\"\\nü","empty":"","bytes":"qgA=","day":"2024-02-29","at":"2024-02-29T13:00:00.000001Z",' +
    '"open":"infinity","plain":"2024-02-29T13:00:00.000001","list":[1,null,3],"struct":{"a":1,"b":["x"]},' +
    '"map":[{"key":"k","value":2}],"pair":[1,2],"doc":{"a": 1.0},"enum":"x","id":"00000000-0000-0000-0000-000000000000",' +
    '"span":"1 month 2 days","hour":"10:00:00.000001"}'
  test('JSON output loses no value, and each row is valid', async () => {
    const [first = '', second = '', rest] = (await text(withNulls, 'jsonl')).split('\n')
    expect(first).toBe(line)
    expect(Object.values(JSON.parse(second) as object).every((value) => value === null)).toBe(true)
    expect(rest).toBe('')
    expect(JSON.parse(await text(withNulls, 'json'))).toEqual([JSON.parse(first), JSON.parse(second)])
  })

  test('JSON output has no rows, several chunks and repeated names as asked', async () => {
    expect(await text('SELECT 1 AS a LIMIT 0', 'json')).toBe('[]\n')
    expect(await text('SELECT 1 AS a LIMIT 0', 'jsonl')).toBe('')
    const rows = JSON.parse(await text('SELECT range AS i FROM range(5000)', 'json')) as readonly { i: number }[]
    expect(rows.map(({ i }) => i)).toEqual(Array.from({ length: 5000 }, (_, i) => i))
    expect(await text('SELECT 1 AS a, 2 AS a, 3 AS "A"', 'jsonl')).toBe('{"a":1,"a_1":2,"A_2":3}\n')
    expect(await text(`SELECT E'{"a":\\n1}'::JSON AS j`, 'jsonl')).toBe('{"j":{"a": 1}}\n')
  })
})

describe('csv', () => {
  test('a file and standard output have the same bytes', async () => {
    const nasty = `SELECT * FROM (VALUES (1, 'a,b'), (2, 'a"b'), (3, E'a\\nb'), (4, E'a\\rb'), (5, ''), (6, NULL), (7, ' a '), (8, '#a'), (12, 'a#b'), (9, 'NULL'), (10, E'a\\tb'), (11, '''a''')) AS t(n, s)`
    for (const sql of [
      withNulls,
      nasty,
      'SELECT 1 AS "a,b", 2 AS """", 3 AS b, 4 AS b',
      'SELECT 1 AS a LIMIT 0',
      '(DESCRIBE SELECT 1 AS a)',
    ]) {
      expect(await text(sql, 'csv')).toBe(await readFile(await file(sql, 'x.csv'), 'utf8'))
    }
    expect(await text('SELECT make_timestamptz(1709211600000001) AS at, NULL AS n', 'csv')).toBe(
      'at,n\n2024-02-29T13:00:00.000001Z,\n',
    )
  })

  test('DuckDB reads the same values back', async () => {
    const path = await file(
      `SELECT 0.1 + 0.2::DOUBLE AS v, '' AS empty, NULL::VARCHAR AS none, E'a\\nb' AS lines`,
      'back.csv',
    )
    const rows = await engine.rows(
      `FROM read_csv('${path}', header = true, all_varchar = true, nullstr = '', allow_quoted_nulls = false)`,
    )
    expect(rows).toEqual([{ v: '0.30000000000000004', empty: '', none: null, lines: 'a\nb' }])
  })
})

describe('parquet', () => {
  test('keeps every value and no name twice', async () => {
    const path = await file(withNulls, 'x.parquet')
    const back = `SELECT * REPLACE (wide::HUGEINT AS wide, span::INTERVAL AS span) FROM '${path}'`
    const form = (sql: string): string => `SELECT to_json(x)::VARCHAR AS row, typeof(x) AS type FROM (${sql}) AS x`
    const read = await engine.rows(form(back))
    const given = await engine.rows(form(withNulls))
    const unkept = /"pair":(?:\[1,2\]|null),|"enum":"x",?/g
    expect(read.map((row) => row['row'])).toEqual(given.map((row) => row['row']))
    expect((read[0]?.['row'] as string).match(unkept)).not.toBeNull()
    const twice = await file('SELECT 1 AS a, 2 AS a', 'twice.parquet')
    expect(await engine.rows(`FROM '${twice}'`)).toEqual([{ a: 1, a_1: 2 }])
  })

  test('an integer that no Parquet type holds is an error, not a rounded number', async () => {
    await expect(file('SELECT 170141183460469231731687303715884105727::HUGEINT AS a', 'over.parquet')).rejects.toThrow(
      /DECIMAL/,
    )
    expect(await readdir(home)).not.toContain('over.parquet')
  })

  test('nested wide integers, and the order of rows', async () => {
    const sql = `SELECT {'a': [sum(range)], 'b c': 1} AS s, MAP {1: sum(range)} AS m FROM range(10)`
    const path = await file(sql, 'nested.parquet')
    expect(await engine.rows(`SELECT s.a[1]::VARCHAR AS a, s."b c" AS b, m[1]::VARCHAR AS m FROM '${path}'`)).toEqual([
      { a: '45', b: 1, m: '45' },
    ])
    const sorted = await file('SELECT range AS i FROM range(300000) ORDER BY i DESC', 'sorted.parquet')
    expect(
      await engine.rows(`SELECT count(*) AS n FROM (SELECT i, lag(i) OVER () AS p FROM '${sorted}') WHERE p <= i`),
    ).toEqual([{ n: 0n }])
  })

  test('the compatible form is read by a small reader', async () => {
    const path = await file(withNulls, 'small.parquet', { compat: true })
    const rows = await readSmall(path)
    expect(rows).toHaveLength(2)
    expect(rows[0]).toMatchObject({
      zero: -0,
      tiny: 5e-324,
      huge: 1.7976931348623157e308,
      whole: 9007199254740993n,
      small: 7,
      price: '1.50',
      yes: true,
      words: 'a,"b"\nü',
      empty: '',
      wide: '170141183460469231731687303715884105',
      list: '[1,null,3]',
      struct: '{"a":1,"b":["x"]}',
      doc: '{"a": 1.0}',
      enum: 'x',
      at: new Date('2024-02-29T13:00:00Z'),
      day: new Date('2024-02-29T00:00:00Z'),
      span: '1 month 2 days',
      hour: '10:00:00.000001',
    })
    expect(Object.values(rows[1] ?? {}).filter((value) => value !== null)).toEqual([])
    const many = await file(
      `SELECT range AS i, (range % 7)::VARCHAR AS s, CASE WHEN range % 3 = 0 THEN NULL ELSE range / 2 END AS v FROM range(50000)`,
      'many.parquet',
      { compat: true },
    )
    const read = await readSmall(many)
    expect(read).toHaveLength(50_000)
    for (const i of [0, 1, 20_479, 20_480, 49_999]) {
      expect(read[i]).toEqual({ i: BigInt(i), s: String(i % 7), ...(i % 3 === 0 ? {} : { v: i / 2 }) })
    }
    expect(await readSmall(await file('SELECT 1 AS a LIMIT 0', 'none.parquet', { compat: true }))).toEqual([])
  })
})

/** The small reader, which tells nothing of its types. */
interface SmallReader {
  readonly getCursor: () => { readonly next: () => Promise<Record<string, unknown> | null> }
  readonly close: () => Promise<void>
}
const parquet = createRequire(import.meta.url)('parquetjs-lite') as {
  readonly ParquetReader: { readonly openFile: (path: string) => Promise<SmallReader> }
}

async function readSmall(path: string): Promise<Record<string, unknown>[]> {
  const reader = await parquet.ParquetReader.openFile(path)
  try {
    const cursor = reader.getCursor()
    const rows: Record<string, unknown>[] = []
    for (let row = await cursor.next(); row; row = await cursor.next()) rows.push({ ...row })
    return rows
  } finally {
    await reader.close()
  }
}

describe('arrow', () => {
  test('file and stream hold the same table, in batches', async () => {
    const sql = `SELECT range AS i, 'text ' || (range // 3) AS s FROM range(150000)`
    const stream = Buffer.from(await text(sql, 'arrow'), 'latin1')
    const whole = await readFile(await file(sql, 'x.arrow'))
    expect(whole.subarray(0, 6).toString()).toBe('ARROW1')
    expect(await readFile(await file(sql, 'x.arrows'))).toEqual(stream)
    for (const bytes of [stream, whole]) {
      const table = tableFromIPC(bytes)
      expect([table.numRows, table.batches.length > 1]).toEqual([150_000, true])
      expect(table.get(149_999)?.toJSON()).toEqual({ i: 149_999n, s: 'text 49999' })
    }
    const empty = RecordBatchReader.from(await readFile(await file('SELECT 1 AS a LIMIT 0', 'none.arrow')))
    expect([...empty].reduce((n, batch) => n + batch.numRows, 0)).toBe(0)
  })
})

describe('a file appears whole or not at all', () => {
  test('a failing query leaves the old file and no rest', async () => {
    for (const name of ['old.csv', 'old.jsonl', 'old.parquet', 'old.arrow']) {
      await put(join(home, name), 'old')
      const late = `SELECT CASE WHEN range = 99999 THEN error('late') ELSE range END AS i FROM range(100000)`
      await expect(file(late, name)).rejects.toThrow(/late/)
      expect(await readFile(join(home, name), 'utf8')).toBe('old')
    }
    expect((await readdir(home)).filter((name) => name.endsWith('.part'))).toEqual([])
  })
})

describe('CSV for spreadsheets', () => {
  const sql = `SELECT '=1+1' AS "=name", ' @x' AS b, -5 AS c, '-5' AS d, 'a' || chr(27) || '[31m' || chr(10) || 'b' AS e,
    ['=x'] AS f, NULL AS g, chr(9) || 'x' AS h, '＝1' AS i, 'plain = text' AS j`
  const safe = `'=name,b,c,d,e,f,g,h,i,j\n'=1+1,' @x,-5,'-5,"a[31m\nb",['=x'],,'\tx,'＝1,plain = text\n`

  test('a text that one would run gets a quote and loses control signs, in a file and as a stream', async () => {
    expect(await text(sql, 'csv', { safe: true })).toBe(safe)
    expect(await readFile(await file(sql, 'safe.csv', { safe: true }), 'utf8')).toBe(safe)
  })

  test('CSV without the option keeps every sign', async () => {
    expect(await text(sql, 'csv')).toContain('=name,b,c,d,e,f,g,h,i,j\n=1+1, @x,-5,-5,"a\u001b[31m\nb"')
  })
})

describe('a table for people', () => {
  test('the title of a column cannot act on the terminal either', async () => {
    const shown = await text('SELECT 1 AS "\u001b]0;owned\u0007"', 'table')
    expect(shown).toContain(String.raw`\u001b]0;owned\u0007`)
    // oxlint-disable-next-line no-control-regex
    expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/)
  })

  test('numbers to the right, NULL visible, instants short, long texts cut', async () => {
    const sql = `SELECT * FROM (VALUES ('BTC', 1.5, TIMESTAMPTZ '2024-01-01 00:00:00+00', NULL), ('a text that is much too long for forty places of a line', 22, TIMESTAMPTZ '2024-01-02 00:00:00+00', 3)) AS t(asset, v, t, n)`
    expect(await text(sql, 'table')).toBe(
      [
        'asset                                        v  t              n',
        '----------------------------------------  ----  ----------  ----',
        'BTC                                        1.5  2024-01-01  NULL',
        'a text that is much too long for forty …  22.0  2024-01-02     3',
        '',
      ].join('\n'),
    )
  })

  test('a table fits the width and shows all columns', async () => {
    const columns = Array.from({ length: 20 }, (_, i) => `'value ${i}' AS column_${i}`).join(', ')
    const table = await text(`SELECT ${columns}`, 'table')
    expect(Math.max(...table.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    for (let i = 0; i < 20; i++) expect(table).toContain(`value ${i}`)
  })

  test('signs that move the cursor are shown, wide signs counted', () => {
    const table = layTable(
      ['s', 'n'],
      ['VARCHAR', 'INTEGER'],
      [
        ['\u001b[31m', '日本', 'é'],
        [1, 2, 3],
      ],
      { width: 80 },
    )
    expect(table.split('\n')).toEqual([
      's           n',
      '----------  -',
      String.raw`\u001b[31m  1`,
      '日本        2',
      'é           3',
      '',
    ])
  })

  test('a table computes and shows only the requested rows', async () => {
    const endless = 'SELECT range AS i FROM range(1000000000000)'
    expect((await text(endless, 'table', { rows: 3 })).split('\n')).toHaveLength(6)
    expect(await text('SET VARIABLE a = 1', 'table')).toBe('')
    expect(await text('EXPLAIN SELECT 1', 'table')).toContain('PROJECTION')
  })
})

describe('what the name of a file asks for', () => {
  test.each([
    ['a.csv.gz', 'csv.gz'],
    ['a.JSONL.GZ', 'jsonl.gz'],
    ['a.json.gz', 'json.gz'],
    ['a.pq', 'parquet'],
    ['a.parquet.gz', undefined],
    ['a.xlsx', undefined],
    ['a.tsv', undefined],
    ['a.txt', undefined],
    ['a', undefined],
  ])('%s: %s', (name, format) => expect(formatOf(name)).toBe(format))

  test('a name that ends in .gz with a format that does not compress is refused', async () => {
    for (const format of ['csv', 'table', 'parquet'] as const)
      await expect(file('SELECT 1 AS i', 'plain.gz', { format })).rejects.toThrow(
        /^--format \w+: expected a file whose name does not end in \.gz, got plain\.gz; --format csv\.gz/,
      )
    expect((await readdir(home)).filter((name) => name.startsWith('plain.gz'))).toEqual([])
  })
})

describe('a compressed format', () => {
  const sql = 'SELECT i FROM range(100000) AS r(i)'
  const compressed = formats.filter((format) => formatFacts[format].compression !== undefined)

  test('there is one for each format of text that has an ending', () =>
    expect(compressed).toEqual(['csv.gz', 'json.gz', 'jsonl.gz']))

  test.each(compressed)('%s writes the same compressed bytes to a stream and to a file of any name', async (format) => {
    const plain = format.replace('.gz', '') as Format
    const named = await readFile(await file(sql, `z.${format}`))
    expect(gunzipSync(named).toString()).toBe(await text(sql, plain))
    expect((await bytes(sql, format)).equals(named)).toBe(true)
    expect((await readFile(await file(sql, 'z.download', { format }))).equals(named)).toBe(true)
  })

  test('an error of the query or of the reader ends it', async () => {
    await expect(text("SELECT error('no') FROM range(5)", 'csv.gz')).rejects.toThrow(/no/)
    const ready = await runScript(engine, 'SELECT random() AS r FROM range(1000000)', deps)
    const full = async () => Promise.reject(new Error('nobody reads'))
    const options = { format: 'csv.gz', width: 80, rows: Infinity } as const
    await expect(writeTo({ engine, ready, options, deps }, full)).rejects.toThrow('nobody reads')
  })
})
