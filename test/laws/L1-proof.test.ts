import { describe, expect, test } from 'vitest'
import { argueFromPlan } from '../../src/query/proof/prove.ts'
import type { Engine } from '../../src/store/engine.ts'
import { randomQuery } from '../helpers/proof-grammar.ts'
import { times } from '../helpers/shares.ts'
import { smallLake } from '../helpers/small-lake.ts'
import { seeded } from '../helpers/sql-grammar.ts'

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

describe('a proof from the plan', () => {
  test('is refuted by no cut-off: random queries, honest ones and leaks', async () => {
    const many = times('PITLAKE_PROOFS', 60, 500)
    const seed = Number(process.env['PITLAKE_SEED'] ?? 1)
    const told = { proved: 0, refuted: 0, failed: 0 }
    for (let n = 0; n < many; n++) {
      const random = seeded(seed * 1_000_003 + n)
      const sql = randomQuery(random)
      const lake = await smallLake(random)
      try {
        const { proved, chain } = await argueFromPlan(lake, { sql, ts: 'ts', labels: [] })
        const at = await refuted(lake, sql)
        if (proved) expect(at, `${n}: ${sql}\n${chain.join('\n')}`).toBeUndefined()
        told.proved += proved ? 1 : 0
        told.refuted += at === undefined ? 0 : 1
      } catch (error) {
        if (!(error instanceof Error) || !/ Error: /.test(error.message)) throw error
        told.failed++
      } finally {
        lake.close()
      }
    }
    // Neither all honest nor all leaks, and few that the engine refuses.
    if (process.env['PITLAKE_PROOFS'] !== undefined) process.stderr.write(`${JSON.stringify({ many, ...told })}\n`)
    expect(told.proved).toBeGreaterThan(many / 6)
    expect(told.refuted).toBeGreaterThan(many / 6)
    expect(told.failed).toBeLessThan(many / 10)
  })
})
