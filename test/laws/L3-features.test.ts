// @module-tag full
// @module-tag alone
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { mortal } from '../helpers/mortal-steps.ts'
import { rounds, sample } from '../helpers/tiers.ts'
import type * as values from '../../src/trust/features/values.ts'

/* A computing of features that is killed, or before which another commit comes: what it gives is what it would have given. */

const between = vi.hoisted(() => ({ done: 0, work: async (_n: number): Promise<void> => undefined }))

vi.mock('../../src/trust/features/values.ts', async (original) => {
  const real = await original<typeof values>()
  const valuesOf: typeof real.valuesOf = async (...args) => {
    const computed = await real.valuesOf(...args)
    await between.work(++between.done)
    return computed
  }
  return { ...real, valuesOf }
})

beforeEach(() => Object.assign(between, { done: 0, work: async () => undefined }))

const days = Array.from({ length: 20 }, (_, n) => new Date(Date.UTC(2024, 2, 1 + n)).toISOString().slice(0, 10))
const rowsOf = (many: number): string =>
  days
    .slice(0, many)
    .map((t, n) => `BTC,${t},${(n * n) / 7}\n`)
    .join('')

/**
 * Two features, one of which reads the other, over a price of so many days; the lake as it was before they were
 * computed.
 */
async function declared(desk: Desk): Promise<readonly string[]> {
  const row = (name: string, sql: string): string =>
    `  ${name}:\n    why: a test\n    grid: 24h\n    since: 2024-03-03\n    assets: [BTC]\n    sql: ${sql}\n`
  const step = `SELECT ts, asset, v - lag(v) OVER (PARTITION BY asset ORDER BY ts) AS v FROM pit_join('grid', 'own/p', '24h')`
  const twice = `SELECT ts, asset, 2 * v AS twice, v / 3 AS third FROM pit_join('grid', 'feature/step', '24h')`
  const yaml = desk.put('f.yaml', `features:\n${row('twice', twice)}${row('step', step)}`)
  desk.put('c.yaml', `catalogs: [${yaml}]\n`)
  await bring(desk, 12, '2024-03-13T06:00:00Z')
  return ['features', '--config', join(desk.folder, 'c.yaml')]
}

async function bring(desk: Desk, many: number, at: string): Promise<void> {
  const file = desk.put('p.csv', `asset,t,value\n${rowsOf(many)}`)
  expect(await desk.take([file, '--as', 'p', '--available', 'end'], at)).toMatchObject({ code: 0 })
}

const content = async (desk: Desk): Promise<string> => {
  const rows = await desk.rows(
    `SELECT * EXCLUDE (observed_at) FROM points WHERE metric LIKE 'feature/%' AND t < '2024-03-15' ORDER BY ALL`,
  )
  return JSON.stringify(rows, (_, one: unknown) => (typeof one === 'bigint' ? `${one}n` : one))
}

const kills = rounds('PITLAKE_KILLS', 1, 4)

async function killed(): Promise<void> {
  await withDesk(async (desk) => {
    const argv = await declared(desk)
    const lake = join(desk.folder, 'lake')
    const before = join(desk.folder, 'before')
    cpSync(lake, before, { recursive: true })
    // The process that dies has a clock of its own.
    const at = new Date().toISOString()
    expect(await desk.run(argv, at)).toMatchObject({ code: 0 })
    const whole = await content(desk)
    expect(JSON.parse(whole)).toHaveLength(26)
    for (let n = 0; n < kills; n++) {
      rmSync(lake, { recursive: true })
      cpSync(before, lake, { recursive: true })
      const step = 3 + Math.floor((n * steps) / kills)
      expect(await mortal('pitlake', [...argv, '--data', lake], step), `step ${step}`).toBeNull()
      expect(await desk.run(argv, at), `step ${step}`).toMatchObject({ code: 0, message: '' })
      expect(await content(desk), `step ${step}`).toBe(whole)
      expect((await desk.run(['doctor'], at)).code).toBe(0)
      expect((await desk.run(['features', '--check'], at)).code).toBe(0)
    }
  })
}

/** So many steps of the disk there are at least, from the third on, in which it may die. */
const steps = 40

async function betweenCommits(): Promise<void> {
  await withDesk(async (desk) => {
    const argv = await declared(desk)
    const other = async (n: number): Promise<void> => {
      using ledger = await Ledger.open(join(desk.folder, 'lake'))
      const draft = { job: 'test', run: `r${n}`, provider: { synthetic: false }, state: { turn: between.done } }
      await commit(ledger, draft, commitDeps({ nowMicros: () => Date.UTC(2024, 2, 13, 7) * 1000 }))
    }
    const at = '2024-03-13T08:00:00Z'
    between.work = async (n) => (n <= 2 ? await other(n) : undefined)
    const told = JSON.parse((await desk.run([...argv, '--json'], at)).out) as { features: object[] }
    expect(told.features).toMatchObject([{ rows_added: 11 }, { rows_added: 11 }])
    // Twice in vain, then once for each of the two.
    expect(between.done).toBe(4)
    const versions = await desk.rows(`SELECT version, job FROM versions ORDER BY version`)
    expect(versions.map(({ job }) => job)).toEqual(['import', 'test', 'test', 'features', 'features'])
    expect((await desk.run(['features', '--check'], at)).code).toBe(0)
    await bring(desk, 13, '2024-03-14T06:00:00Z')
    between.work = other
    const busy = await desk.run(argv, '2024-03-14T07:00:00Z')
    expect([busy.code, busy.message]).toEqual([7, 'feature/step: a lake that others change; pitlake features'])
    between.work = async () => undefined
    expect(await desk.run(argv, '2024-03-14T07:00:00Z')).toMatchObject({ code: 0 })
    expect(JSON.parse(await content(desk))).toHaveLength(24)
  })
}

test.each(
  sample(
    [
      [
        'killed at a step of a computing, and then again: the features are those of an undisturbed one, bit for bit',
        killed,
      ],
      [
        'what was computed while another commit came is computed again, over that one; and not for ever',
        betweenCommits,
      ],
    ] as const,
    1,
  ),
)('%s', async (_, work) => await expect(work()).resolves.toBeUndefined())
