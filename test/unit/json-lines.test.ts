import { setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runScript } from '../../src/query/run.ts'
import { jsonForm } from '../../src/query/projection.ts'
import { writeTo } from '../../src/query/write.ts'
import { Engine } from '../../src/lake/store/engine.ts'

let engine: Engine
beforeAll(async () => (engine = await Engine.open()))
afterAll(() => engine.close())

const deps = { folder: 'lake', sleep: setTimeout }

async function text(sql: string, format: 'json' | 'jsonl'): Promise<string> {
  const parts: string[] = []
  const sink = async (part: string | Uint8Array) => void parts.push(String(part))
  const ready = await runScript(engine, sql, deps)
  await writeTo({ engine, ready, options: { format, width: 80, rows: Infinity }, deps }, sink)
  return parts.join('')
}

/** Values of the types whose text the engine may make, as SQL; ordinary ones and all bits. */
const literals: Readonly<Record<string, fc.Arbitrary<string>>> = {
  DOUBLE: fc
    .oneof(
      fc.double(),
      fc.float(),
      fc.integer().map(Number),
      fc.tuple(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: -12, max: 12 })).map(([n, e]) => n * 10 ** e),
      fc.constantFrom(-0, 0, 1e15, 1e16, 1e21, 1e-4, 9.999e-5, 2 ** 53, 5e-324, Number.MAX_VALUE),
    )
    .map((value) => `'${Object.is(value, -0) ? '-0.0' : value}'::DOUBLE`),
  FLOAT: fc.float().map((value) => `'${Object.is(value, -0) ? '-0.0' : value}'::FLOAT`),
  VARCHAR: fc
    .oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), fc.string())
    .filter((value) => value.isWellFormed())
    .map((value) => `decode(from_hex('${Buffer.from(value).toString('hex')}'))`),
  BIGINT: fc
    .oneof(
      fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n }),
      fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }),
    )
    .map((value) => `'${value}'::BIGINT`),
  HUGEINT: fc.bigInt({ min: -(2n ** 120n), max: 2n ** 120n }).map((value) => `'${value}'::HUGEINT`),
  UBIGINT: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => `'${value}'::UBIGINT`),
  INTEGER: fc.integer().map((value) => `(${value})::INTEGER`),
  BOOLEAN: fc.boolean().map(String),
  'DECIMAL(18,3)': fc.integer().map((value) => `(${value}::BIGINT / 1000)::DECIMAL(18,3)`),
  TIMESTAMPTZ: fc
    .oneof(
      fc.bigInt({ min: -(2n ** 60n), max: 2n ** 60n }),
      fc.bigInt({ min: 0n, max: 2n ** 51n }),
      fc.constantFrom(253_402_300_799_999_999n, 253_402_300_800_000_000n, -30_610_224_000_000_001n),
    )
    .map((value) => `make_timestamptz('${value}'::BIGINT)`),
  TIMESTAMP: fc.bigInt({ min: -(2n ** 57n), max: 2n ** 58n }).map((value) => `make_timestamp('${value}'::BIGINT)`),
  DATE: fc.integer({ min: -800_000, max: 4_000_000 }).map((days) => `DATE '1970-01-01' + ${days}`),
  JSON: fc.json().map((value) => `decode(from_hex('${Buffer.from(value).toString('hex')}'))::JSON`),
  'VARCHAR[]': fc.constantFrom(`['a', NULL]`, '[]'),
}

test('rows whose text the engine makes are those that are made value by value', async () => {
  const types = Object.keys(literals)
  const row = fc.tuple(...Object.values(literals).map((value) => fc.option(value, { freq: 6, nil: 'NULL' })))
  const nan = `('nan'::DOUBLE), ('inf'::DOUBLE), ('-inf'::DOUBLE), (0::DOUBLE)`
  expect(await text(`SELECT * FROM (VALUES ${nan}) AS t(x)`, 'jsonl')).toBe(
    '{"x":"NaN"}\n{"x":"Infinity"}\n{"x":"-Infinity"}\n{"x":0}\n',
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: types.length }),
      async (rows, most) => {
        // Without the last column, a list, the engine makes the text.
        const names = types.slice(0, most).map((_, k) => `c${k}`)
        const values = rows.map(
          (held) =>
            `(${held
              .slice(0, most)
              .map((value, k) => `CAST(${value} AS ${types[k]})`)
              .join(', ')})`,
        )
        const sql = `SELECT * FROM (VALUES ${values.join(', ')}) AS t(${names.join(', ')})`
        const { chunks } = await engine.stream(sql)
        let expected = ''
        for await (const chunk of chunks)
          for (let i = 0; i < chunk.rows; i++)
            expected += `{${names.map((name, k) => `"${name}":${jsonForm(chunk.columns[k]?.[i] ?? null, types[k] === 'JSON')}`).join(',')}}\n`
        expect(await text(sql, 'jsonl')).toBe(expected)
        expect(await text(sql, 'json')).toBe(`[\n${expected.slice(0, -1).replaceAll('\n', ',\n')}\n]\n`)
      },
    ),
    { numRuns: 150 },
  )
})
