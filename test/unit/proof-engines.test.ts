// @module-tag full
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { argue, planOf } from '../../src/trust/lookahead/proof/prove.ts'
import { shadowSql } from '../../src/trust/lookahead/proof/tables.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { bareViews } from '../helpers/lakes/bare-views.ts'
import { need } from '../helpers/needs.ts'
import { randomQuery } from '../helpers/proof-grammar.ts'
import { onGrid, proofRules } from '../helpers/proof-rules.ts'
import { nodesOf } from '../../src/query/parse-tree.ts'
import { seeded } from '../helpers/random.ts'
import { rounds } from '../helpers/tiers.ts'

type Plan = Parameters<typeof argue>[0]
type Told = { readonly plan: Plan; readonly names: readonly string[] } | { readonly why: string }

/** The plans of queries as Python's DuckDB 2.0 tells them, over the same catalogue. */
function plansOfNext(python: string, setup: string, queries: readonly string[]): readonly Told[] {
  const said = execFileSync(python, [join(import.meta.dirname, '../python/plans.py')], {
    input: JSON.stringify({ setup, queries }),
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  const { version, plans } = JSON.parse(said) as { readonly version: string; readonly plans: readonly Told[] }
  expect(version).toMatch(/^2\./)
  expect(plans).toHaveLength(queries.length)
  return plans
}

function proved(told: Told): boolean {
  return 'plan' in told && argue(told.plan, told.names, { ts: 'ts', labels: [] }).proved
}

/**
 * Whether the plan is still proved where one of its operators says a word more; those that it has are tried one after
 * the other.
 */
function provedWithMore(told: Told): boolean {
  if (!('plan' in told)) return false
  const operators = [...nodesOf(told.plan)].filter(({ type }) => String(type).startsWith('LOGICAL_'))
  return operators.some((one) => {
    const plan = structuredClone(told.plan)
    const at = operators.indexOf(one)
    const same = [...nodesOf(plan)].filter(({ type }) => String(type).startsWith('LOGICAL_'))[at]
    Object.assign(same ?? {}, { looks_at_next_rows: true })
    return proved({ ...told, plan })
  })
}

/** Of each query whether the plan of this engine and that of the next one prove it. */
async function judged(python: string, queries: readonly string[]) {
  using lake = await bareViews()
  const setup = await shadowSql(lake)
  using shadow = await Engine.open(':memory:', { threads: 1 })
  await shadow.run(setup)
  const plans = plansOfNext(python, setup, queries)
  const both: { readonly sql: string; readonly own: boolean; readonly next: boolean }[] = []
  for (const [n, sql] of queries.entries())
    both.push({ sql, own: proved(await planOf(shadow, sql)), next: proved(plans[n] ?? { why: 'none' }) })
  const more = plans.flatMap((told, n) => (both[n]?.next && n % 10 === 0 && provedWithMore(told) ? [queries[n]] : []))
  expect(more).toEqual([])
  return both
}

test('every rule, its leak, and every kind of leak: the plans of the next engine prove nothing that those of this one do not', async (context) => {
  const python = need(context, 'python-newest')
  const rules = proofRules.flatMap(([, honest, leak]) => [onGrid(honest), onGrid(leak)])
  const both = await judged(python, rules)
  expect(both.filter(({ own, next }) => next && !own)).toEqual([])
  // What it tells otherwise and no rule reads is not proved, but tried.
  const honest = both.filter(({ own }) => own)
  expect(honest.length).toBeGreaterThan(70)
  const lost = honest.filter(({ next }) => !next).map(({ sql }) => sql)
  // Of these, six date the rows of a series (`range`, `generate_series`), which the plans of 2.0 say in other words.
  expect(lost.length, lost.join('\n')).toBeLessThan(13)
})

test('random queries: the plans of the next engine prove nothing that those of this one do not', async (context) => {
  const python = need(context, 'python-newest')
  const queries = Array.from({ length: rounds('PITLAKE_PROOFS', 150, 230) }, (_, n) =>
    randomQuery(seeded(7_000_003 + n)),
  )
  const both = await judged(python, queries)
  expect(both.filter(({ own, next }) => next && !own)).toEqual([])
  const own = both.filter((one) => one.own)
  const next = both.filter((one) => one.next)
  expect(own.length).toBeGreaterThan(queries.length / 5)
  expect(next.length).toBeGreaterThan(0.8 * own.length)
})
