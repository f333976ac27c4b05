import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sightsOf } from '../../src/sources/points/value-types.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

interface Seen {
  readonly path: string
  readonly type: string
  readonly at: number
}

function placesOf(value: Json, at: number, path = '$'): Seen[] {
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  const inside = Array.isArray(value)
    ? value.flatMap((item) => placesOf(item, at, `${path}[*]`))
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, item]) => placesOf(item, at, `${path}.${key}`))
      : []
  return [{ path, type, at }, ...inside]
}

/** By place and type the first and the last instant. */
function owed(values: readonly Json[]): string[] {
  const seen = values.flatMap((value, at) => placesOf(value, at + 1))
  return [...Map.groupBy(seen, ({ path, type }) => `${path} ${type}`)]
    .map(([place, own]) => `${place} ${Math.min(...own.map(({ at }) => at))} ${Math.max(...own.map(({ at }) => at))}`)
    .toSorted()
}

async function told(engine: Engine, values: readonly Json[]): Promise<string[]> {
  const rows = values.map((value, at) => `(${quote(JSON.stringify(value))}, ${at + 1})`).join(', ')
  const select = `SELECT 'm' AS metric, NULL::DOUBLE AS v, o, moment::BIGINT AS available, 100 - moment::BIGINT AS ruled FROM (VALUES ${rows}) AS r(o, moment)`
  const sights = await sightsOf(engine, [select])
  for (const { available, latest, ruled, latest_ruled } of sights)
    expect([ruled, latest_ruled]).toEqual([100 - latest, 100 - available])
  return sights.map(({ path, type, available, latest }) => `${path} ${type} ${available} ${latest}`).toSorted()
}

const { value: anyValue } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<Json>(null, true, 1, -1, 0.5, 1e300, 'null', 'x:"DOUBLE"', '['),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'null', 'JSON', 'DOUBLE', 'BIGINT'), tie('value'), { maxKeys: 3 }),
  ),
}))

test('L1: values of one form have the same types together as one by one', async () => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const nested = anyValue.filter((value) => typeof value === 'object' && value !== null)
  await fc.assert(
    fc.asyncProperty(fc.array(nested, { minLength: 1, maxLength: 6 }), async (values) => {
      expect(await told(engine, values)).toEqual(owed(values))
    }),
    { numRuns: 150 },
  )
  const lists: Json[] = [[1, null], [1, 2], [[], [1]], [{}, { a: 1 }], [1, 'x'], [{ a: null }, { a: 1 }], [{ a: 2 }]]
  expect(await told(engine, lists)).toEqual(owed(lists))
})
