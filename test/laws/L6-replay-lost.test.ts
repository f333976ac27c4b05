// @module-tag full
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { filesOnDisk } from '../../src/lake/ledger/index-queries.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { apisAt, withRig } from '../helpers/fetching.ts'
import { reading } from '../helpers/ledgers.ts'
import { scratch } from '../helpers/scratch.ts'

/*
 * L6: a stamped result runs again as long as the files are there that its query reads, whatever else the lake goes on
 * without.
 */

const now = Date.UTC(2026, 2, 10, 12) / 1000
const decisions = `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '2026-03-08 12:00:00Z' AS ts)`
const queries = {
  points: `SELECT asset, t, v FROM points WHERE metric = 'supply/current_pit' ORDER BY ALL`,
  join: `${decisions} SELECT * FROM pit_join('d', 'supply/current_pit', '24h')`,
  assets: 'SELECT id, record FROM metric_assets ORDER BY ALL',
  products: 'SELECT id, record FROM products ORDER BY ALL',
} as const
type Stamped = keyof typeof queries
const names = Object.keys(queries) as Stamped[]

const home = scratch('replay-lost')
const kept = scratch('replay-lost-kept')
const lake = join(home, 'lake')
const run = async (...argv: readonly string[]): Promise<Ended> =>
  await pitlake(home, [...argv, '--data', lake], {}, { now: () => (now + 3600) * 1000 })

function mustEnd({ code, message }: Ended): void {
  if (code !== 0) throw new Error(message)
}

beforeAll(async () =>
  withRig(now, async (rig) => {
    const world = { now: () => now * 1000 }
    const asked = ['--assets', 'BTC', '--paths', 'supply/current_pit', '--since', '2026-03-01', '--data', lake]
    mustEnd(await pitlake(home, ['fetch', ...asked], apisAt(rig.url), world))
    mustEnd(await pitlake(home, ['registry', 'sync', '--data', lake], apisAt(rig.url), world))
    for (const name of names) {
      writeFileSync(join(home, `${name}.sql`), queries[name])
      mustEnd(await run('stamp', `${name}.sql`, '--out', `${name}.parquet`))
    }
    cpSync(lake, kept, { recursive: true })
  }),
)

/** Files that a lake goes on without, by how their paths begin, and the results that read them. */
const losses: readonly (readonly [begins: string, readers: readonly Stamped[]])[] = [
  ['registry/raw/', []],
  ['assets/', ['assets']],
  ['points/', ['points', 'join']],
]

test.each(losses)(
  'after --forget-lost of %s only results that read it are refused by replay',
  async (begins, readers) => {
    rmSync(lake, { recursive: true })
    cpSync(kept, lake, { recursive: true })
    const files = await reading(lake, (ledger) => filesOnDisk(ledger).map(({ path }) => path))
    const lost = files.filter((path) => path.startsWith(begins))
    expect(lost.length).toBeGreaterThan(0)
    for (const path of lost) rmSync(join(lake, path))
    expect((await run('doctor')).message).toContain('--forget-lost')
    await run('doctor', '--forget-lost')
    for (const name of names) {
      const { code, message } = await run('replay', `${name}.parquet`)
      const said = readers.includes(name) ? /the lake goes on without it since version \d+; put it back/ : /^$/
      expect([name, code, message]).toEqual([name, readers.includes(name) ? 4 : 0, expect.stringMatching(said)])
    }
  },
)

test('after a loss only a result that reads the lost file is neither certified nor stressed', async () => {
  rmSync(lake, { recursive: true })
  cpSync(kept, lake, { recursive: true })
  const files = await reading(lake, (ledger) => filesOnDisk(ledger).map(({ path }) => path))
  for (const path of files.filter((one) => one.startsWith('assets/'))) rmSync(join(lake, path))
  await run('doctor', '--forget-lost')
  const key = join(home, 'key')
  expect(await run('keygen', '--out', key)).toMatchObject({ code: 0 })
  const gone = /the lake goes on without it since version/
  for (const [name, code, said] of [
    ['points', 0, /^$/],
    ['assets', 4, gone],
  ] as const) {
    const certified = await run('certify', `${name}.parquet`, '--key', key, '--out', `${name}.cert`)
    expect([name, certified.code, certified.message]).toEqual([name, code, expect.stringMatching(said)])
    const statistic = 'SELECT count(*) AS n FROM result'
    const stressed = await run('stress', `${name}.parquet`, '--statistic', statistic, '--lag', '1h')
    expect([name, stressed.message]).toEqual([
      name,
      code === 0 ? expect.not.stringMatching(gone) : expect.stringMatching(gone),
    ])
  }
})
