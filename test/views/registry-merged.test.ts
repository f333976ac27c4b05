// @module-tag full
import { expect, test } from 'vitest'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import type { RunEnd } from '../../src/lake/ledger/job.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { tableFiles } from '../../src/sources/registry/status.ts'
import { relation } from '../../src/sources/registry/columns.ts'
import { contentOf, withRegistryRig } from '../helpers/registry-rig.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { temporaryFolder } from '../helpers/folders.ts'

const start = Date.UTC(2026, 5, 1, 12) / 1000
const day = 86_400
const polls = 8

const questions = [
  ...['issuers', 'products', 'deployments', 'provenance'].flatMap((name) => [
    `SELECT * FROM ${name} ORDER BY ALL`,
    `SELECT * FROM history.${name} ORDER BY ALL`,
    `SELECT * FROM snapshots.${name} ORDER BY ALL`,
  ]),
  'SELECT * FROM universe ORDER BY ALL',
  `SELECT * FROM pit_universe('decisions') ORDER BY ALL`,
]

/**
 * What a lake answers in every state of knowledge: now, and at each poll, by both clocks and with the registry's
 * backfill.
 */
async function told(root: string, instants: readonly number[]): Promise<Record<string, string>> {
  return await withViews(root, async (engine) => {
    const times = instants.map((at) => `make_timestamptz(${at * 1_000_000}::BIGINT)`)
    await engine.run(`CREATE TEMP TABLE decisions AS SELECT unnest([${times.join(', ')}]) AS ts`)
    const states = ['', ...times.flatMap((at) => [`as_of = ${at}`, `observed_as_of = ${at}`])]
    const answers: Record<string, string> = {}
    for (const state of states)
      for (const backfill of state === '' || state.endsWith(`${times[0]}`) ? [false, true] : [false]) {
        await engine.run('RESET VARIABLE as_of; RESET VARIABLE observed_as_of')
        await engine.run(`SET VARIABLE registry_backfill = ${backfill}`)
        if (state !== '') await engine.run(`SET VARIABLE ${state}`)
        for (const sql of questions) {
          const rows = await engine.rows(sql)
          answers[`${state} ${backfill} ${sql}`] = JSON.stringify(rows, (_, cell: unknown) =>
            typeof cell === 'bigint' ? String(cell) : cell,
          )
        }
      }
    return answers
  })
}

async function historyOf(root: string): Promise<{ files: number; rows: number; superseded: number }> {
  using ledger = await Ledger.openToRead(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  const files = tableFiles(ledger, 'history.products')
  const [row] = await engine.rows<{ rows: number; superseded: number }>(
    `SELECT count(*)::INTEGER AS rows, count(superseded_at)::INTEGER AS superseded FROM ${relation('history.products', files)}`,
  )
  return { files: files.length, rows: Number(row?.rows), superseded: Number(row?.superseded) }
}

/** A world in which records change, go and come back from poll to poll. */
function mutate(provider: SmallRegistry, n: number): void {
  const { world } = provider
  for (let k = 0; k < 6; k++) {
    const id = (n * 7 + k * 3) % 20
    const gone = (n + k) % 5 === 0
    world.put('products', `p${id}`, gone ? null : { name: `Product ${id} of ${n}`, issuer_id: `i${(id + n) % 30}` })
    world.put('issuers', `i${(n * 5 + k) % 30}`, {
      name: `Issuer of ${n}`,
      custodian: k % 2 === 0 ? null : 'Some Bank',
    })
    if (gone) continue
    const deployment = { product_id: `p${id}`, status: `state ${n}`, verification_status: 'verified' }
    world.put('deployments', `d${id}`, { ...deployment, provenance: [{ kind: 'explorer', n }] })
  }
}

test('merging a history changes no answer, and says which steps are superseded', async () => {
  const provider = new SmallRegistry()
  using mergedFolder = temporaryFolder('merged')
  const merged = mergedFolder.path
  await withRegistryRig(
    start,
    async (rig) => {
      const instants: number[] = [start - day]
      const nowMicros = (): number => rig.clock.now * 1_000_000
      const deps = { ...commitDeps({ nowMicros }), signal: new AbortController().signal }
      const atEnd = async ({ ledger }: RunEnd): Promise<void> => void (await mergeSmallFiles(ledger, deps))
      for (let n = 0; n < polls; n++) {
        if (n > 0) mutate(provider, n)
        const take = n % 4 === 3 ? rig.snapshot : rig.sync
        await take({ deps: { nowMicros } })
        // Every third poll leaves its files as they are.
        await take({ root: merged, deps: { nowMicros, ...(n % 3 !== 0 && { atEnd }) } })
        if (n === 5) instants.push(rig.clock.now, rig.clock.now - 1)
        rig.clock.now += day
      }
      expect(await contentOf(merged)).toEqual(await contentOf(rig.root))
      const plain = await historyOf(rig.root)
      const less = await historyOf(merged)
      expect(plain).toMatchObject({ files: polls, superseded: 0 })
      expect(less.rows).toBe(plain.rows)
      expect(less.files).toBeLessThan(polls / 2)
      expect(less.superseded).toBeGreaterThan(20)
      await makeViews(rig.root)
      const expected = await told(rig.root, instants)
      expect(Object.values(expected).join('').length).toBeGreaterThan(100_000)
      for (const whole of [false, true]) {
        if (whole) await compact(merged, deps)
        await makeViews(merged)
        const answers = await told(merged, instants)
        for (const [question, answer] of Object.entries(expected)) expect(answers[question], question).toBe(answer)
      }
      expect(await historyOf(merged)).toMatchObject({ files: 1, rows: plain.rows })
    },
    { instead: provider.answer },
  )
})
