// @module-tag full
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LookaheadProof } from '../../src/trust/lookahead/lookahead.ts'
import { openLake } from '../../src/index.ts'
import { bareViews } from '../helpers/lakes/bare-views.ts'
import { argueFromPlan } from '../../src/trust/lookahead/proof/prove.ts'
import { pitlake } from '../helpers/command.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { thirtyProducts } from '../helpers/lakes/late-days-and-products.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'

/*
 * What a verdict rests on beside what was known. Forty days of points, of which the first ten were backfilled a year
 * later; a registry whose first snapshot is of 2024-01-21 with twenty products.
 */

const metric = 'addresses/active_count_pit'
const { currency = null, exchange = null, network = null } = catalogue.endpoints.get(metric)?.defaults ?? {}

function points(): PointRow[] {
  return Array.from({ length: 40 }, (_, day): PointRow => {
    const known = new Date(Date.UTC(2024, 0, 2 + day, 0, 10)).toISOString()
    const own = {
      metric,
      asset: 'BTC',
      currency,
      exchange,
      network,
      interval: '24h' as const,
      t: new Date(Date.UTC(2024, 0, 1 + day)).toISOString(),
    }
    const late = { available_at: '2024-10-01T00:00:00Z', available_rule_at: known, basis: 'provider' }
    return { ...own, v: 100 + day, ...(day < 10 ? late : { available_at: known }) }
  })
}

const { home, root } = lakeOfFile({
  name: 'assumed',
  commits: [{ at: '2024-12-01T00:00:00', points: points(), tables: thirtyProducts() }],
})

const days = `WITH d AS (SELECT ts, 'BTC' AS asset FROM calendar('2024-01-02', '2024-02-11', '1 day'))`
const members = `${days} SELECT ts, product_id FROM pit_universe(d)`
const joined = `${days} SELECT ts, v FROM pit_join(d, '${metric}', '24h')`
const always = 'proved for every lake and every instant'

async function lookahead(sql: string, options: readonly string[]): Promise<string> {
  const file = join(home, 'query.sql')
  writeFileSync(file, sql)
  return (await pitlake(root, ['lookahead', file, '--data', root, ...options])).out
}

const proofOf = async (sql: string, ...options: readonly string[]): Promise<LookaheadProof> =>
  JSON.parse(await lookahead(sql, ['--json', ...options])) as LookaheadProof

async function said(sql: string, ...options: readonly string[]): Promise<{ words: string; proof: LookaheadProof }> {
  return { words: await lookahead(sql, options), proof: await proofOf(sql, ...options) }
}

describe('an assumption in force', () => {
  test('is named with the number of rows that depend on it, set in the script or by a flag', async () => {
    const plain = await said(`${members} WHERE ts >= '2024-01-22'`)
    expect(plain.words).toContain(always)
    expect(plain.proof).toMatchObject({ verdict: 'clean', proved: true, assumes: [] })
    // Nineteen days before the first snapshot, twenty products each; of twenty-one days from it nothing is assumed.
    const assumes = [{ what: 'registry_backfill', rows: 380, absent: 0 }]
    for (const { words, proof } of [
      await said(`SET VARIABLE registry_backfill = true; ${members}`),
      await said(members, '--set', 'registry_backfill=true'),
    ]) {
      expect(proof).toMatchObject({ verdict: 'clean', proved: true, rows: 800, assumes })
      expect(words).toMatch(
        /clean, proved, given that the first snapshot .*registry_backfill\): 380 of 800 rows are assumed\n/,
      )
      expect(words).toMatch(/pit_universe: .* before the first snapshot assumed/)
      expect(words).not.toContain(always)
    }
    const ruled = await said(`SET VARIABLE backfill = 'rule'; ${joined}`)
    expect(ruled.proof).toMatchObject({ proved: true, assumes: [{ what: 'backfill', rows: 10, absent: 0 }] })
    expect(ruled.words).toMatch(/proved, given that backfilled points .*: 10 of 40 rows are assumed\n/)
    expect(ruled.words).toMatch(/where it was backfilled assumed to be by its rule/)
  })

  test('counts the rows that it removes, and is not named if no view heeds it', async () => {
    const gone = `${days} SELECT ts FROM d ANTI JOIN (SELECT ts FROM pit_universe('d')) USING (ts)`
    const both = `${gone.replace('SELECT ts FROM d', 'SELECT ts, 1 AS side FROM d')} UNION ALL SELECT ts, 2 FROM d`
    expect(await proofOf(both, '--set', 'registry_backfill=true')).toMatchObject({
      assumes: [{ what: 'registry_backfill', rows: 0, absent: 19 }],
    })
    const { words, proof } = await said(joined, '--set', 'registry_backfill=true')
    expect(proof.assumes).toEqual([])
    expect(words).toContain(always)
    const other = `${days} SELECT ts, status FROM d, products`
    expect(await proofOf(other, '--set', 'registry_backfill=true')).toMatchObject({
      proved: false,
      assumes: [{ what: 'registry_backfill' }],
    })
  })

  test('is stored in a stamp, repeated by replay and returned by the libraries', async () => {
    const assumes = [{ what: 'registry_backfill', rows: 380, absent: 0 }]
    const file = join(home, 'query.sql')
    const out = join(home, 'stamped.parquet')
    writeFileSync(file, `SET VARIABLE registry_backfill = true; ${members}`)
    const stamped = await pitlake(root, ['stamp', file, '--out', out, '--data', root, '--json'])
    expect(JSON.parse(stamped.out)).toMatchObject({ assumes, verdict: { verdict: 'proved' } })
    const again = await pitlake(root, ['replay', out, '--data', root, '--json'])
    expect([again.code, JSON.parse(again.out)]).toMatchObject([0, { same: true, assumes }])
    expect((await pitlake(root, ['replay', out, '--data', root])).out).toMatch(/380 of 800 rows are assumed/)
    expect((await proofOf(members)).assumes).toEqual([])
    const lake = await openLake(root, { registryBackfill: true })
    try {
      expect(await lake.lookahead(members)).toMatchObject({ proved: true, assumes })
    } finally {
      await lake.close()
    }
  })
})

describe('a proof under registry_backfill', () => {
  const early = `${days}, u AS (SELECT ts AS decided, valid_from AS ts, 'BTC' AS asset FROM pit_universe(d)) SELECT decided AS ts, v FROM pit_join(u, 'm', '24h')`

  test('does not assume that a version was polled before its decision', async () => {
    using lake = await bareViews()
    const proved = async (sql: string): Promise<boolean> =>
      (await argueFromPlan(lake, { sql, ts: 'ts', labels: [] })).proved
    expect([await proved(early), await proved(members)]).toEqual([true, true])
    await lake.run('SET VARIABLE registry_backfill = true')
    expect([await proved(early), await proved(members)]).toEqual([false, true])
  })

  test('reads the condition of a universe, and nothing that it cannot know', async () => {
    using lake = await bareViews()
    const proof = async (condition: string): ReturnType<typeof argueFromPlan> =>
      argueFromPlan(lake, {
        sql: `${days} SELECT ts, product_id, status FROM pit_universe(d, ${condition})`,
        ts: 'ts',
        labels: [],
      })
    expect(await proof(`status = 'active' AND len(deployments) > 0 AND issuer_status = 'active'`)).toMatchObject({
      proved: true,
      unproved: null,
    })
    expect(await proof(`first_seen < '2024-02-01'`)).toMatchObject({ proved: true })
    for (const condition of [
      `_pit_ended > '2024-03-01'`,
      `symbol IN (SELECT asset FROM points)`,
      'random() > 0.5',
      'nothing = 1',
    ])
      expect(await proof(condition), condition).toMatchObject({ proved: false })
  })
})
