import { join } from 'node:path'
import { expect, test } from 'vitest'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import type { Fields } from '../../src/sources/registry/json.ts'
import { quoteList } from '../../src/lake/store/engine.ts'
import { withRegistryRig } from '../helpers/registry-rig.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { reading } from '../helpers/ledgers.ts'

const start = Date.UTC(2026, 5, 1, 12) / 1000
const tables = ['issuers', 'products', 'deployments'] as const

/** What the world shows, as the dated tables name it. */
function shown(small: SmallRegistry): Record<string, string[]> {
  const rows = Object.fromEntries(
    tables.map((table) => {
      const keys = [...small.world.rows.keys()].filter((key) => key.startsWith(`${table} `)).toSorted()
      return [table, keys.map((key) => JSON.stringify(small.world.record(key)))]
    }),
  )
  const sources = (rows['deployments'] ?? []).flatMap((text) => {
    const { id, provenance } = JSON.parse(text) as { id: string; provenance: Fields[] }
    return provenance.map((source, n) => `${id} ${n} ${JSON.stringify(source)}`)
  })
  return { ...rows, provenance: sources.toSorted() }
}

async function layersOf(root: string, table: string): Promise<string[]> {
  using ledger = await Ledger.openToRead(root)
  return liveFiles(ledger, { table })
    .map(({ label, meta }) => `${label.slice(8)} ${meta['layer'] === 'base' ? 'base' : 'delta'}`)
    .toSorted()
}

test('every date shows its state after bases, deltas, removals, a new base and no news', async () => {
  const small = new SmallRegistry()
  const { world } = small
  const source = (n: number): Fields => ({ kind: 'explorer', n })
  const deployment = (n: number, provenance: Fields[]): Fields => ({
    product_id: `p${n % 20}`,
    status: 'new',
    provenance,
  })
  const days: (() => void)[] = [
    () => undefined,
    () => world.put('deployments', 'd1', deployment(1, [source(1), source(7)])),
    () => world.put('deployments', 'd2', null),
    () => undefined,
    () => {
      for (let n = 4; n < 12; n++) world.put('deployments', `d${n}`, deployment(n, [source(n + 50)]))
      world.put('issuers', 'i1', { name: 'renamed' })
    },
    () => world.put('products', 'p3', null),
  ]
  await withRegistryRig(
    start,
    async (rig) => {
      const truth: [string, Record<string, string[]>][] = []
      for (const change of days) {
        change()
        const { snapshot_date } = await rig.snapshot()
        truth.push([String(snapshot_date), shown(small)])
        rig.clock.now += 86_400
      }
      const layers = '01 base, 02 base, 02 delta, 03 base, 03 delta, 04 base, 04 delta, 05 base, 06 base, 06 delta'
      expect((await layersOf(rig.root, 'provenance')).join(', ')).toBe(layers)
      await makeViews(rig.root)
      const listed = await reading(rig.root, (ledger) => [
        ...new Set(liveFiles(ledger, { table: 'snapshots' }).map(({ path }) => join(rig.root, path))),
      ])
      await withViews(rig.root, async (engine) => {
        // Only a whole layer says how many rows it has.
        const counts = await engine.rows<{ line: string }>(
          `SELECT concat_ws(' ', resource, string_agg(DISTINCT rows::INT::VARCHAR, ',')) AS line FROM read_parquet(${quoteList(listed)}) WHERE delta IS NULL
             AND resource IN ('issuers', 'provenance') GROUP BY resource ORDER BY resource`,
        )
        expect(counts.map(({ line }) => line)).toEqual(['issuers 30', 'provenance 40'])
        for (const [date, wanted] of truth) {
          const where = `WHERE snapshot_date = DATE '${date}'`
          for (const table of tables) {
            const rows = await engine.rows(`SELECT record FROM snapshots.${table} ${where} ORDER BY id`)
            expect(
              rows.map(({ record }) => record),
              `${table} ${date}`,
            ).toEqual(wanted[table])
          }
          const rows = await engine.rows<{ line: string }>(
            `SELECT concat_ws(' ', parent_id, ordinal, record) AS line FROM snapshots.provenance ${where}`,
          )
          const lines = rows.map(({ line }) => line)
          expect(lines.toSorted(), `provenance ${date}`).toEqual(wanted['provenance'])
        }
      })
    },
    { instead: small.answer },
  )
})
