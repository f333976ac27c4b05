import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'
import { scratch } from '../helpers/scratch.ts'
import { readUserRows, refusalOf, writeWithPython } from '../helpers/user-files.ts'

/** A column of two files: what pyarrow makes of it in each, and what the lake is to store, or the refusal. */
interface MixedColumn {
  readonly first: string
  readonly second: string
  readonly stored?: readonly (number | null)[]
  readonly extra?: readonly (string | null)[]
  readonly refused?: RegExp
}

const folder = scratch('parquet')

const mixed: Readonly<Record<string, MixedColumn>> = {
  'int64, then double': { first: 'pa.array([1])', second: 'pa.array([1.5])', stored: [1, 1.5] },
  'double, then int64 beyond the doubles': {
    first: 'pa.array([1.5])',
    second: 'pa.array([9007199254740993])',
    stored: [1.5, 9007199254740992],
    extra: [null, '{"v":9007199254740993}'],
  },
  'float32, then double': {
    first: 'pa.array([0.1], pa.float32())',
    second: 'pa.array([0.1])',
    stored: [Math.fround(0.1), 0.1],
  },
  'float32, then text': {
    first: 'pa.array([0.1], pa.float32())',
    second: "pa.array(['0.1'])",
    stored: [Math.fround(0.1), 0.1],
  },
  'decimals of two scales': {
    first: "pa.array([D('1.25')], pa.decimal128(10, 2))",
    second: "pa.array([D('0.9999')], pa.decimal128(10, 4))",
    stored: [1.25, 0.9999],
  },
  'int8, then uint64': {
    first: 'pa.array([-1], pa.int8())',
    second: 'pa.array([2**64 - 1], pa.uint64())',
    stored: [-1, 2 ** 64],
    extra: [null, '{"v":18446744073709551615}'],
  },
  'a number, then a boolean': {
    first: 'pa.array([1])',
    second: 'pa.array([True])',
    refused: /2\.parquet: column value: expected BIGINT, as in .*1\.parquet, .*got BOOLEAN/,
  },
  'objects of two forms': {
    first: "pa.array([{'a': 1}])",
    second: "pa.array([{'a': 1.5}])",
    refused: /2\.parquet: column value: expected STRUCT\(a BIGINT\), .*got STRUCT\(a DOUBLE\)/,
  },
}

test('Parquet files whose types differ are read as they are, or refused with file and column', async (context) => {
  const writes = Object.values(mixed).flatMap(({ first, second }, n) =>
    [first, second].map(
      (array, k) =>
        `pq.write_table(pa.table({'asset': ['A'], 't': [day(${k + 1})], 'value': ${array}}), '${n}-${k + 1}.parquet')`,
    ),
  )
  writeWithPython(context, folder, writes.join('\n'))
  for (const [n, [title, { stored, extra, refused }]] of Object.entries(mixed).entries()) {
    if (refused) expect(await refusalOf([join(folder, `${n}-*.parquet`)], {}), title).toMatch(refused)
    else
      for (const names of [[`${n}-*.parquet`], [`${n}-2.parquet`, `${n}-1.parquet`]]) {
        const paths = names.map((name) => join(folder, name))
        const rows = await readUserRows(paths, {})
        expect(
          rows.map((row) => row['v']),
          title,
        ).toEqual(stored)
        expect(
          rows.map((row) => row['extra'] ?? null),
          title,
        ).toEqual(extra ?? stored?.map(() => null))
      }
  }
})

test('a later file with instants instead of dates keeps its hours, and columns are matched by name', async (context) => {
  await withDesk(async (desk) => {
    writeWithPython(
      context,
      desk.folder,
      `pq.write_table(pa.table({'asset': ['A'], 't': [datetime.date(2024, 3, 1)], 'open': [1], 'close': [2.0]}), '1.parquet')
pq.write_table(pa.table({'close': [4], 'asset': ['A'], 'open': [3.5], 't': [day(2, hour=12)]}), '2.parquet')
pq.write_table(pa.table({'asset': ['A'], 't': [day(3)], 'close': [5.0]}), '3.parquet')`,
    )
    const flags = ['--interval', '1h', '--components', 'open,close', '--available', 'end']
    const glob = join(desk.folder, '[12].parquet')
    const taken = await desk.take([glob, '--as', 'bars', ...flags])
    expect([taken.code, taken.message]).toEqual([0, ''])
    const rows = await desk.rows(`SELECT CAST(epoch_ms(t) AS DOUBLE) AS t, o FROM points ORDER BY t`)
    expect(rows).toEqual([
      { t: Date.UTC(2024, 2, 1), o: '{"open":1.0,"close":2.0}' },
      { t: Date.UTC(2024, 2, 2, 12), o: '{"open":3.5,"close":4.0}' },
    ])
    const all = join(desk.folder, '[123].parquet')
    const lacking = await desk.take([all, '--as', 'more', ...flags])
    expect([lacking.code, lacking.message]).toEqual([
      2,
      expect.stringMatching(/3\.parquet: column open: .*no such column/),
    ])
    // A column that the mapping does not use may be missing.
    expect(await readUserRows([all], { interval: '1h', value: 'close' })).toHaveLength(3)
  })
})

test('decimals become the nearest double or are refused, whatever their digits', async (context) => {
  writeWithPython(
    context,
    folder,
    `import random
random.seed(${Number(process.env['PITLAKE_SEED'] ?? 17)})
values = [D(random.randrange(-10**37, 10**37)).scaleb(-random.randrange(0, 13)).quantize(D(1).scaleb(-12), context=__import__('decimal').Context(prec=60)) for _ in range(600)]
values = [value for value in values if abs(value) < D(10)**25]
small = [D(random.randrange(-10**16, 10**16)).scaleb(-9) for _ in values]
table = lambda cells, kind: pa.table({'asset': ['A'] * len(cells), 't': [datetime.date(2000, 1, 1) + datetime.timedelta(n) for n in range(len(cells))], 'value': pa.array(cells, kind)})
pq.write_table(table(values, pa.decimal128(38, 12)), 'wide.parquet')
pq.write_table(table(small, pa.decimal128(17, 9)), 'small.parquet')
pq.write_table(table([D(1.5)], pa.decimal256(50, 20)), 'huge.parquet')
json.dump({'wide': [str(v) for v in values], 'small': [str(v) for v in small]}, open('values.json', 'w'))`,
  )
  const texts = JSON.parse(readFileSync(join(folder, 'values.json'), 'utf8')) as Record<string, string[]>
  for (const [name, spelt] of Object.entries(texts)) {
    const rows = await readUserRows([join(folder, `${name}.parquet`)], {})
    // Python's own parser, and JavaScript's: the nearest double.
    expect(rows.map(({ v }) => v)).toEqual(spelt.map(Number))
  }
  const refusal = await refusalOf([join(folder, 'huge.parquet')], {})
  expect(refusal).toMatch(/huge\.parquet: column value: expected .*38 digits, .*got decimals of 50 digits/)
})

test('nanoseconds that would be cut are refused by the name of their column', async (context) => {
  writeWithPython(
    context,
    folder,
    `ns = lambda kind: pa.array([1709251200000000001], kind)
table = lambda t: pa.table({'asset': ['A'], 't': t, 'value': [1.0]})
pq.write_table(table(ns(pa.timestamp('ns', 'UTC'))), 'zoned.parquet', version='2.6')
pq.write_table(table(ns(pa.timestamp('ns'))), 'old.parquet', use_deprecated_int96_timestamps=True)
pq.write_table(table(ns(pa.timestamp('ns'))), 'plain.parquet', version='2.6')
pq.write_table(table([day(1)]).append_column('unused', ns(pa.timestamp('ns', 'UTC'))), 'unused.parquet', version='2.6')`,
  )
  for (const [name, refused] of [
    ['zoned', /zoned\.parquet: column t: .*got nanoseconds with a zone/],
    ['old', /old\.parquet: column t: .*INT96/],
    ['plain', /plain\.parquet: row 1: t: expected .*instant/],
  ] as const)
    expect(await refusalOf([join(folder, `${name}.parquet`)], {})).toMatch(refused)
  expect(await readUserRows([join(folder, 'unused.parquet')], {})).toHaveLength(1)
})

test('an object with a value that JSON has not is refused, and its integers keep their digits', async (context) => {
  writeWithPython(
    context,
    folder,
    `table = lambda value: pa.table({'asset': ['A'], 't': [day(1)], 'value': [value]})
pq.write_table(table({'a': 1.0, 'b': math.nan}), 'nan.parquet')
pq.write_table(table({'a': [math.inf]}), 'inf.parquet')
pq.write_table(table({'a': 'NaN, ]', 'b': 9007199254740993, 'c': -0.0}), 'texts.parquet')
pq.write_table(pa.table({'asset': ['A'], 't': [day(1)], 'x': [9007199254740993], 'y': [1.5]}), 'parts.parquet')`,
  )
  writeFileSync(join(folder, 'nan.jsonl'), '{"asset":"A","t":"2024-03-01","value":{"a":NaN}}\n')
  writeFileSync(join(folder, 'nan.csv'), 'asset;t;value\nA;2024-03-01;{"a":NaN}\n')
  writeFileSync(join(folder, 'comma.csv'), 'asset;t;value\nA;2024-03-01;{"a":1,}\n')
  for (const name of ['nan.parquet', 'inf.parquet', 'nan.jsonl', 'nan.csv', 'comma.csv'])
    expect(await refusalOf([join(folder, name)], {}), name).toMatch(/row 1: value: expected a finite number/)
  expect(await readUserRows([join(folder, 'texts.parquet')], {})).toMatchObject([
    { o: '{"a":"NaN, ]","b":9007199254740993,"c":-0.0}' },
  ])
  expect(await readUserRows([join(folder, 'parts.parquet')], { components: ['x', 'y'] })).toMatchObject([
    { o: '{"x":9007199254740993,"y":1.5}' },
  ])
})
