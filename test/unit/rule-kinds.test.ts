// @module-tag alone
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ruleKinds } from '../../src/catalog/rule-kinds.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { floor, day, intervals } from '../../src/base/time.ts'

/** From noon on, so many days after the day in which the interval ended: a kind that the program does not have. */
const noons = {
  keys: { noons: ruleKinds.clock.keys['days'], shift: ruleKinds.lag.keys['lag'] },
  read: ({ noons: days = 0, shift = 0 }: { noons?: number; shift?: number }) => ({ days, shift }),
  seconds: ({ days, shift }: { days: number; shift: number }) => days * day + day / 2 + shift,
  describe: ({ days }: { days: number }) => `noon, ${days} days later`,
  isLag: false,
  at: (_: number, close: number, seconds: number) => Math.floor(close / day) * day + seconds,
  sql: (_: string, close: string, seconds: string) =>
    `(${close} - ((${close} % ${day}) + ${day}) % ${day} + ${seconds})`,
  undue: (at: string, seconds: string, start: (at: string) => string) => start(`(${at} - ${seconds})`),
}

let engine: Engine
beforeAll(async () => {
  // Before whatever makes a schema of the table is loaded.
  Object.assign(ruleKinds, { noons })
  engine = await Engine.open(':memory:', { threads: 1 })
})
afterAll(() => engine.close())

const text = `availability:
  - { paths: [own/noon], noons: 2, shift: 20m, basis: assumed, reason: r }
endpoints:
  - { path: own/noon, intervals: [1h, 24h, 1month] }
`

test('a kind of rule is one row of a table: it is parsed, described and exported', async () => {
  const { loadCatalogue } = await import('../../src/catalog/load.ts')
  const { exportCatalogue } = await import('../../src/catalog/export.ts')
  const load = (own: string) => loadCatalogue([], undefined, [{ name: 'own.yaml', text: own }])
  const catalogue = load(text)
  expect(catalogue.endpoints.get('own/noon')?.rules['24h']).toMatchObject([{ kind: 'noons', days: 2, shift: 1200 }])
  const row = exportCatalogue(catalogue).find(({ path }) => path === 'own/noon')
  expect(row?.availability).toEqual({ rule: 'noon, 2 days later', basis: 'assumed', reason: 'r' })
  expect(Object.keys(row?.availability_by_interval ?? {})).toEqual(['1h', '24h', '1month'])
  expect(() => load(text.replace('noons: 2, ', ''))).toThrow(
    'either `lag` or `daily_at` with `days` or `noons` with `shift`',
  )
  expect(() => load(text.replace('noons: 2, ', 'lag: 1h, '))).toThrow('`shift` only with `noons`')
  expect(() => load(text.replace('shift: 20m', 'days: 1'))).toThrow('`days` only with `daily_at`')
})

test('a kind of rule is accepted in the configuration without further code', async () => {
  const { parseConfig } = await import('../../src/catalog/config.ts')
  const parse = (rule: string) => parseConfig('a.yaml', `metrics: { availability: { own/noon: { ${rule} } } }`)
  expect(parse('noons: 3, 24h: { noons: 1, trust: rule }').config.metrics?.availability).toEqual({
    'own/noon': { noons: 3, '24h': { noons: 1, trust: 'rule' } },
  })
  expect(() => parse('lag: 1h, noons: 3')).toThrow('either `lag` or `daily_at` with `days` or `noons` with `shift`')
  expect(() => parse('shift: 1h, 24h: { lag: 1h }')).toThrow(
    '`days`, `shift`, `intervals`, `until` and `trust` only beside `lag` or `daily_at` or `noons`',
  )
})

test('a kind of rule gives the same instants in SQL, fixed or from columns, as in TypeScript', async () => {
  const { availableAt } = await import('../../src/catalog/availability.ts')
  const { availableSql, rowInstantSql, ruleRows } = await import('../../src/catalog/availability-sql.ts')
  const { endSql } = await import('../../src/base/intervals-sql.ts')
  const { timeOf } = await import('../../src/catalog/rule-kinds.ts')
  const frame = { basis: 'assumed', quote: null, reason: null, until: null, trust: 'provider' } as const
  const written: object = { noons: 1, shift: 60 }
  const rules = [{ ...frame, ...timeOf(written) }]
  const [{ kind, seconds } = { kind: 'lag', seconds: 0 }] = ruleRows(rules)
  for (const interval of intervals)
    for (const t of [-1_209_600, 0, 1_709_251_200].map((instant) => floor(instant, interval, 'monday'))) {
      const row = `'${kind}' AS kind, ${seconds} AS seconds, CAST(${t} AS BIGINT) AS t, ${endSql(`CAST(${t} AS BIGINT)`, interval)} AS close`
      const told = await engine.rows(
        `SELECT CAST(${availableSql(rules, 't', interval)} AS BIGINT) AS a, CAST(${rowInstantSql('t', 'close')} AS BIGINT) AS b FROM (SELECT ${row})`,
      )
      const at = BigInt(availableAt(rules, t, interval))
      expect(told).toEqual([{ a: at, b: at }])
      expect(((at % 86_400n) + 86_400n) % 86_400n).toBe(43_260n)
    }
})

test('joins report gaps of series with a new kind of rule', async () => {
  const { unsettledText } = await import('../../src/query/views/joins-beyond.ts')
  const sources = { weekStart: 'monday', coverage: 'c', uncovered: 'u' } as const
  const [, behind] = unsettledText(sources, 'rules', 'unit', false)
  expect(behind.split("WHEN ''noons'' THEN ")).toHaveLength(3)
})
