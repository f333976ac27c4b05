import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { need } from '../helpers/needs.ts'
import { scratch } from '../helpers/scratch.ts'
import { readUserRows, refusalOf, writeWithPython } from '../helpers/user-files.ts'

const folder = scratch('arrow')
const at = (name: string): string => join(folder, name)
const day = (n: number): bigint => BigInt(Date.UTC(2024, 2, n) / 1000)

/** Files as other programs write them without being asked for anything, each of them three days of one value. */
const usual: Readonly<Record<string, string>> = {
  'polars.arrow': `pl.DataFrame(plain).write_ipc('polars.arrow')`,
  'polars-zstd.arrow': `pl.DataFrame(plain).write_ipc('polars-zstd.arrow', compression='zstd')`,
  'polars.arrows': `pl.DataFrame(plain).write_ipc_stream('polars.arrows')`,
  'pandas.feather': `pd.DataFrame(plain).to_feather('pandas.feather')`,
  'pyarrow.feather': `feather.write_feather(pa.table(plain), 'pyarrow.feather')`,
  'blocks.feather': `feather.write_feather(pa.table(plain), 'blocks.feather', compression='lz4', chunksize=2)`,
  'indices.feather': `feather.write_feather(pa.table({**plain, 't': pa.array(plain['t'], pa.timestamp('ms')).dictionary_encode(), 'asset': pa.array(plain['asset']).dictionary_encode()}), 'indices.feather')`,
  'zoned.arrow': `write('zoned.arrow', {**plain, 't': pa.array(plain['t'], pa.timestamp('ns', 'UTC'))})`,
  'decimals.arrow': `write('decimals.arrow', {**plain, 'value': pa.array([D('0.5'), D('-1.25'), D(3)], pa.decimal256(50, 20))})`,
  'large.arrow': `write('large.arrow', {**plain, 'asset': pa.array(plain['asset'], pa.large_string()), 'value': pa.array([0.5, -1.25, 3], pa.float32())})`,
  'unused.arrow': `write('unused.arrow', {**plain, 'bytes': [b'a'] * 3, 'took': pa.array([1] * 3, pa.duration('s')), 'list': pa.array([[1], None, []], pa.large_list(pa.int8()))})`,
}

test('Arrow files as polars, pandas and pyarrow write them hold what was written', async (context) => {
  writeWithPython(
    context,
    folder,
    `import pandas as pd, polars as pl, pyarrow.feather as feather, pyarrow.ipc as ipc
plain = {'asset': ['A', 'A', 'A'], 't': [day(1), day(2), day(3)], 'value': [0.5, -1.25, 3.0]}
def write(name, columns):
    table = pa.table(columns)
    with ipc.new_file(name, table.schema) as file: file.write_table(table)
${Object.values(usual).join('\n')}
write('swapped-1.arrow', {'asset': ['A'], 't': [day(1)], 'open': [1.0], 'close': [2.0]})
write('swapped-2.arrow', {'close': [4], 't': [day(2)], 'open': [3], 'asset': ['A']})
write('lacking.arrow', {'asset': ['A'], 't': [day(3)], 'open': [5.0]})
write('exact.arrow', {'asset': ['A'] * 4, 't': [day(n) for n in range(1, 5)], 'value': pa.array([2**53 + 1, 2**64 - 1, 0, 7], pa.uint64())})
write('nanos.arrow', {'asset': ['A'], 't': pa.array([1709251200000000001], pa.timestamp('ns')), 'value': [1.0]})
write('bytes.arrow', {'asset': ['A'], 't': [day(1)], 'value': [b'1']})
write('object.arrow', {'asset': ['A'], 't': [day(1)], 'value': [{'a': -0.0, 'b': [2**53 + 1], 'c': 'x"'}]})
write('nan.arrow', {'asset': ['A'], 't': [day(1)], 'value': [{'a': math.nan}]})
write('zero.arrow', {'asset': ['A'], 't': [day(1)], 'value': [-0.0]})
feather.write_feather(pa.table({'asset': ['A'] * 5000, 't': [datetime.datetime(2000, 1, 1) + datetime.timedelta(n) for n in range(5000)], 'value': [float(n * n % 97) for n in range(5000)]}), 'many.feather')
feather.write_feather(pa.table({'asset': ['A'], 't': [day(1)], 'value': [1.0]}), 'first.feather', version=1)`,
  )
  for (const name of Object.keys(usual)) {
    const expected = [0.5, -1.25, 3].map((v, n) => ({ asset: 'A', mark: day(n + 1), v }))
    expect(await readUserRows([at(name)], {}), name).toMatchObject(expected)
  }
})

test('columns of several Arrow files are matched by name, and one that is missing is named', async (context) => {
  need(context, 'peers')
  const rows = await readUserRows([at('swapped-1.arrow'), at('swapped-2.arrow')], { components: ['open', 'close'] })
  expect(rows.map(({ o }) => o)).toEqual(['{"open":1.0,"close":2.0}', '{"open":3.0,"close":4.0}'])
  const paths = [at('swapped-1.arrow'), at('lacking.arrow')]
  expect(await refusalOf(paths, { value: 'close' })).toMatch(/lacking\.arrow: column close: .*no such column/)
  expect(await readUserRows(paths, { value: 'open' })).toHaveLength(2)
})

test('integers of Arrow keep their digits, and what cannot be read is refused by its name', async (context) => {
  need(context, 'peers')
  expect((await readUserRows([at('exact.arrow')], {})).map(({ extra }) => extra)).toEqual([
    '{"v":9007199254740993}',
    '{"v":18446744073709551615}',
    null,
    null,
  ])
  expect(await readUserRows([at('object.arrow')], {})).toMatchObject([
    { o: '{"a":-0.0,"b":[9007199254740993],"c":"x\\""}' },
  ])
  expect(Object.is((await readUserRows([at('zero.arrow')], {}))[0]?.['v'], -0)).toBe(true)
  for (const [name, refused] of [
    ['nanos.arrow', /nanos\.arrow: row 1: t: .*got "2024-03-01T00:00:00\.000000001"/],
    ['bytes.arrow', /bytes\.arrow: column value: expected numbers, .*got Binary/],
    ['nan.arrow', /nan\.arrow: row 1: value: expected a finite number/],
    ['first.feather', /first\.feather: expected an Arrow file or stream, got version 1 of Feather/],
  ] as const)
    expect(await refusalOf([at(name)], {})).toMatch(refused)
})

test('an Arrow file that is cut or damaged anywhere is refused in one line, or holds what was written', async (context) => {
  need(context, 'peers')
  const whole = await readUserRows([at('many.feather')], {})
  expect(whole.map(({ v }) => v)).toEqual(Array.from({ length: 5000 }, (_, n) => (n * n) % 97))
  for (const name of ['many.feather', 'polars.arrows']) {
    const bytes = readFileSync(at(name))
    for (let cut = 1; cut < 10; cut++) {
      const torn = at(`torn-${name}`)
      writeFileSync(torn, bytes.subarray(0, Math.floor((bytes.length * cut) / 10)))
      expect(await refusalOf([torn], {}), `${name} ${cut}`).toMatch(/torn-.*: expected a file that is whole, got .*/)
    }
  }
})
