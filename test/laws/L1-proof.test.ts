import { describe, expect, test } from 'vitest'
import { argue, planOf } from '../../src/trust/lookahead/proof/prove.ts'
import { openShadow } from '../../src/trust/lookahead/proof/tables.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { randomQuery } from '../helpers/proof-grammar.ts'
import { rounds } from '../helpers/tiers.ts'
import { smallLake } from './small-lake.ts'
import { seeded } from '../helpers/random.ts'

/** The first instant at which the rows up to it differ on the lake cut there; undefined where none does. */
async function refuted(lake: Engine, sql: string): Promise<string | undefined> {
  await lake.run(`CREATE OR REPLACE TEMP TABLE whole AS ${sql}`)
  const cuts = await lake.rows<{ at: string }>(
    `SELECT DISTINCT strftime(timezone('UTC', instant), '%Y-%m-%d %H:%M:%S.%f+00') AS at
     FROM (SELECT ts AS instant FROM whole UNION SELECT available_at - INTERVAL 1 MICROSECOND FROM stored_points UNION SELECT polled FROM stored_steps)
     WHERE instant IS NOT NULL AND isfinite(instant) ORDER BY hash(instant) LIMIT 12`,
  )
  for (const { at } of cuts) {
    await lake.run(`SET VARIABLE as_of = '${at}'`)
    try {
      await lake.run(`CREATE OR REPLACE TEMP TABLE cut AS ${sql}`)
    } finally {
      await lake.run('SET VARIABLE as_of = NULL')
    }
    const side = (table: string): string => `(SELECT * FROM ${table} WHERE ts <= TIMESTAMPTZ '${at}')`
    const rows = await lake.rows(
      `(${side('whole')} EXCEPT ALL ${side('cut')}) UNION ALL (${side('cut')} EXCEPT ALL ${side('whole')}) LIMIT 1`,
    )
    if (rows.length > 0) return at
  }
  return undefined
}

/** What came of some queries. */
interface Tally {
  proved: number
  tried: number
  leaks: number
  refused: number
}

/** Draws queries by their numbers and tries each that is proved, and every fourth that is not. */
async function drawn(seed: number, numbers: readonly number[]): Promise<Tally> {
  const told: Tally = { proved: 0, tried: 0, leaks: 0, refused: 0 }
  const lake = await smallLake(seeded(seed * 1_000_003 + (numbers[0] ?? 0)))
  const shadow = await openShadow(lake)
  try {
    for (const n of numbers) {
      const sql = randomQuery(seeded(seed * 7_000_003 + n))
      const plan = await planOf(shadow, sql)
      if ('why' in plan) {
        told.refused++
        continue
      }
      const { proved, chain } = argue(plan.plan, plan.names, { ts: 'ts', labels: [] })
      told.proved += proved ? 1 : 0
      if (!proved && n % 4 > 0) continue
      const at = await refuted(lake, sql)
      if (proved) expect(at, `${n}: ${sql}\n${chain.join('\n')}`).toBeUndefined()
      told.tried++
      told.leaks += at === undefined ? 0 : 1
    }
  } finally {
    shadow.close()
    lake.close()
  }
  return told
}

describe('a proof from the plan', () => {
  test('a proof from the plan of random queries and leaks is refuted by no cut-off', async () => {
    const many = rounds('PITLAKE_PROOFS', 80, 120)
    const seed = Number(process.env['PITLAKE_SEED'] ?? 1)
    const all: Tally = { proved: 0, tried: 0, leaks: 0, refused: 0 }
    for (let first = 0; first < many; first += 40) {
      const numbers = Array.from({ length: Math.min(40, many - first) }, (_, i) => first + i)
      const told = await drawn(seed, numbers)
      for (const name of ['proved', 'tried', 'leaks', 'refused'] as const) all[name] += told[name]
    }
    // Neither all honest nor all leaks, and all of them queries.
    expect(all.proved, JSON.stringify(all)).toBeGreaterThan(many / 5)
    expect(all.leaks, JSON.stringify(all)).toBeGreaterThan(many / 20)
    expect(all.refused, JSON.stringify(all)).toBe(0)
    if (process.env['PITLAKE_PROOFS'] !== undefined) process.stderr.write(`${JSON.stringify({ many, ...all })}\n`)
  }, 7_200_000)
})
