import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { argue, planOf } from '../../src/lookahead/proof/prove.ts'
import { openShadow, shadowSql } from '../../src/lookahead/proof/tables.ts'
import { bareLake } from '../helpers/bare-lake.ts'
import { need } from '../helpers/needs.ts'
import { groupRules } from '../helpers/proof-rules-groups.ts'
import { onGrid, proofRules } from '../helpers/proof-rules.ts'

type Plan = Parameters<typeof argue>[0]
type Told = { readonly plan: Plan; readonly names: readonly string[] } | { readonly why: string }

/** Each rule's query and its twin that looks ahead. */
const queries = [...proofRules, ...groupRules].flatMap(([, honest, leak]) => [onGrid(honest), onGrid(leak)])

test('the proof judges the plans of the next engine as it judges those of its own', async (context) => {
  const python = need(context, 'python-newest')
  const lake = await bareLake()
  const shadow = await openShadow(lake)
  try {
    const said = execFileSync(python, [join(import.meta.dirname, '../python/plans.py')], {
      input: JSON.stringify({ setup: await shadowSql(lake), queries }),
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    })
    const { version, plans } = JSON.parse(said) as { readonly version: string; readonly plans: readonly Told[] }
    expect(version).toMatch(/^2\./)
    const proved = (told: Told): boolean =>
      'plan' in told && argue(told.plan, told.names, { ts: 'ts', labels: [] }).proved
    const judged: (readonly [own: boolean, next: boolean, sql: string])[] = []
    for (const [n, sql] of queries.entries())
      judged.push([proved(await planOf(shadow, sql)), proved(plans[n] ?? { why: 'none' }), sql])
    expect(judged.filter(([own, next]) => next && !own)).toEqual([])
    // What it tells otherwise and no rule reads is not proved: of the honest ones a few.
    const honest = judged.filter(([own]) => own)
    expect(honest.length).toBeGreaterThan(70)
    expect(honest.filter(([, next]) => !next).length, JSON.stringify(honest.filter(([, next]) => !next))).toBeLessThan(
      8,
    )
  } finally {
    shadow.close()
    lake.close()
  }
})
