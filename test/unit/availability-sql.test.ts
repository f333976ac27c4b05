import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { availableAt, type Rule, ruleFor } from '../../src/catalog/availability.ts'
import {
  availableSql,
  basisSql,
  floorSql,
  rowInstantSql,
  ruleRows,
  trustedSql,
} from '../../src/catalog/availability-sql.ts'
import { endSql, stepSql } from '../../src/base/intervals-sql.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { end, floor, type Interval, intervals, step } from '../../src/base/time.ts'

let engine: Engine
beforeAll(async () => (engine = await Engine.open(':memory:', { threads: 1 })))
afterAll(() => engine.close())

const instants = fc.integer({ min: -3_000_000_000, max: 7_000_000_000 })
const frame = {
  basis: fc.constantFrom('stated' as const, 'assumed' as const, 'override' as const),
  quote: fc.constant(null),
  reason: fc.constant(null),
  trust: fc.constantFrom('provider' as const, 'rule' as const),
}
const rule: fc.Arbitrary<Rule> = fc.oneof(
  fc.record({ ...frame, until: fc.constant(null), kind: fc.constant('lag' as const), seconds: fc.nat(400_000) }),
  fc.record({
    ...frame,
    until: fc.constant(null),
    kind: fc.constant('clock' as const),
    minuteOfDay: fc.nat(1439),
    days: fc.nat(9),
  }),
)
const rules = fc.tuple(fc.array(fc.tuple(rule, instants), { maxLength: 3 }), rule).map(([dated, open]): Rule[] => {
  const untils = dated.map(([, until]) => until).toSorted((a, b) => a - b)
  return [...dated.map(([r], i) => ({ ...r, until: untils[i] ?? 0 })), open]
})

test('a rule says the same in SQL as in TypeScript', async () => {
  const property = fc.asyncProperty(
    rules,
    fc.constantFrom<Interval>(...intervals),
    fc.array(instants, { minLength: 1, maxLength: 30 }),
    async (list, interval, moments) => {
      const starts = moments.map((at) => floor(at, interval))
      const sql = `SELECT CAST(t AS BIGINT) AS t, ${availableSql(list, 't', interval)} AS a, ${basisSql(list, 't')} AS b,
        ${trustedSql(list, 't')} AS trusted, ${floorSql(list, 't', interval)} AS f, ${endSql('t', interval)} AS e,
        ${stepSql('t', interval, -1)} AS before
        FROM (SELECT unnest([${starts.join(', ')}]::BIGINT[]) AS t)`
      const rows = await engine.rows(sql)
      const expected = starts.map((t) => {
        const held = ruleFor(list, t)
        const available = availableAt(list, t, interval)
        const close = end(t, interval)
        return {
          t: BigInt(t),
          a: BigInt(available),
          b: held.basis,
          trusted: held.trust === 'rule',
          f: BigInt(held.basis === 'stated' ? available : close),
          e: BigInt(close),
          before: BigInt(step(t, interval, -1)),
        }
      })
      expect(rows).toEqual(expected)
    },
  )
  await fc.assert(property, { numRuns: 80 })
})

test('SQL gives the same instants as TypeScript if rule and interval are columns', async () => {
  const pair = fc.tuple(rules, fc.constantFrom<Interval>(...intervals), instants)
  const property = fc.asyncProperty(fc.array(pair, { minLength: 1, maxLength: 20 }), async (cases) => {
    const starts = cases.map(([, interval, at]) => floor(at, interval))
    const points = cases.map(([, interval], n) => ({ n, t: starts[n], interval }))
    const ruled = cases.flatMap(([list], n) => ruleRows(list).map((row) => ({ n, ...row })))
    const rows = await engine.rows(`SELECT n, ${rowInstantSql('t', 'close')} AS a, basis AS b, trusted
      FROM (SELECT *, ${endSql('t', '"interval"')} AS close FROM ${table(points)})
      JOIN ${table(ruled)} USING (n) WHERE t >= begins AND t < ends ORDER BY n`)
    const expected = cases.map(([list, interval], n) => {
      const t = starts[n] ?? 0
      const { basis, trust } = ruleFor(list, t)
      return { n: BigInt(n), a: BigInt(availableAt(list, t, interval)), b: basis, trusted: trust === 'rule' }
    })
    expect(rows).toEqual(expected)
  })
  await fc.assert(property, { numRuns: 60 })
})

function table(rows: readonly object[]): string {
  const types = `[{"n": "BIGINT", "t": "BIGINT", "interval": "VARCHAR", "begins": "BIGINT", "ends": "BIGINT",
    "kind": "VARCHAR", "seconds": "BIGINT", "basis": "VARCHAR", "trusted": "BOOLEAN"}]`
  const own = Object.keys(rows[0] ?? {}).map((name) => `"${name}"`)
  return `(SELECT ${own.join(', ')} FROM (SELECT unnest(from_json('${JSON.stringify(rows)}', '${types}'), recursive := true)))`
}

test('a list of rules without an open end is refused', () => expect(() => basisSql([], 't')).toThrow('without `until`'))
