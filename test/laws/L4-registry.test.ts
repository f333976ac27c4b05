// @module-tag full
import { describe, expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { parseInstant } from '../../src/base/time.ts'
import { contentOf, standing, withRegistryRig } from '../helpers/registry-rig.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { registryStateAt } from '../helpers/registry-truth.ts'

const start = parseInstant('2026-06-01T12:00Z') as number
const day = 86_400

describe('L4: doing it again adds nothing', () => {
  test.each([
    ['events that repeat themselves', ['repeated-events', 'registry-shape:layout=data,events=changes']],
    ['empty pages and a null cursor', ['empty-pages', 'null-cursor', 'registry-shape:embedded=array']],
  ] as const)('%s', (_, faults) =>
    withRegistryRig(start, async (rig) => {
      rig.faults(...faults)
      expect((await rig.sync()).opened).toBeGreaterThan(1500)
      rig.clock.now += 3 * day
      const changed = await rig.sync()
      expect(changed.updated).toBeGreaterThan(0)
      const settled = await rig.sync()
      expect(settled.opened + settled.updated + settled.closed).toBe(0)
      const before = await standing(rig.root)
      await rig.sync()
      await rig.snapshot()
      const dated = await standing(rig.root)
      await rig.snapshot()
      await rig.sync()
      expect(await standing(rig.root)).toEqual(dated)
      expect(dated.version).toBe(before.version + 1)
    }),
  )
})

test('every layout of the bodies gives the same tables', async () => {
  const shapes = [
    ['registry-shape:layout=data,events=events'],
    ['registry-shape:layout=next_cursor,events=changes,embedded=array'],
    ['registry-shape:embedded=products'],
  ]
  const contents: Record<string, string[]>[] = []
  for (const faults of shapes)
    await withRegistryRig(start, async (rig) => {
      rig.faults(...faults)
      await rig.sync()
      rig.clock.now += 8 * day
      await rig.sync()
      contents.push(await contentOf(rig.root))
    })
  const [first, ...others] = contents
  expect(first?.['products']?.length).toBeGreaterThan(300)
  expect(first?.['provenance']?.length).toBeGreaterThan(1000)
  for (const other of others) {
    for (const table of Object.keys(first ?? {})) expect(other[table], table).toEqual(first?.[table])
  }
})

test('L1: the views at each poll are the registry as the provider showed it then', () =>
  withRegistryRig(start, async (rig) => {
    const polls: number[] = []
    for (const days of [0, 3, 40]) {
      rig.clock.now += days * day
      if (days === 3) await rig.snapshot()
      await rig.sync()
      polls.push(rig.clock.now)
    }
    await makeViews(rig.root)
    await withViews(rig.root, async (engine) => {
      for (const poll of polls) {
        const truth = registryStateAt({ seed: 5, scale: 'demo' }, poll)
        const at = new Date((poll + 3600) * 1000).toISOString()
        await engine.run(`SET VARIABLE as_of = '${at}'`)
        for (const table of ['issuers', 'assets', 'products', 'deployments', 'venues', 'derivatives']) {
          const rows = await engine.rows(`SELECT id, record FROM ${table} ORDER BY id`)
          const wanted = [...(truth.get(table) ?? new Map()).values()]
          expect(rows.map(({ id }) => id)).toEqual(wanted.map(({ id }) => id as string).toSorted())
          const shown = await engine.rows(
            `SELECT id, record FROM history.${table} WHERE valid_to = 'infinity' ORDER BY id`,
          )
          expect(shown).toEqual(rows)
        }
        const retired = await engine.rows(`SELECT count(*)::INTEGER AS n FROM universe WHERE status = 'inactive'`)
        const inactive = [...(truth.get('products') ?? new Map()).values()].filter(
          ({ status }) => status === 'inactive',
        )
        expect(retired[0]?.['n']).toBe(inactive.length)
      }
    })
  }))

test('dated snapshots show what was there, also where files are shared between dates', () =>
  withRegistryRig(start, async (rig) => {
    const taken: { date: string; at: number }[] = []
    for (let n = 0; n < 4; n++) {
      const { snapshot_date } = await rig.snapshot()
      taken.push({ date: String(snapshot_date), at: rig.clock.now })
      rig.clock.now += day
    }
    expect(new Set(taken.map(({ date }) => date)).size).toBe(4)
    await makeViews(rig.root)
    await withViews(rig.root, async (engine) => {
      for (const { date, at } of taken) {
        const truth = registryStateAt({ seed: 5, scale: 'demo' }, at)
        for (const table of ['products', 'deployments', 'issuers']) {
          const rows = await engine.rows<{ id: string; record: string }>(
            `SELECT id, record FROM snapshots.${table} WHERE snapshot_date = DATE '${date}' ORDER BY id`,
          )
          const wanted = [...(truth.get(table) ?? new Map()).values()]
          expect(rows.map(({ record }) => JSON.parse(record) as unknown)).toEqual(
            wanted.toSorted((a, b) => ((a['id'] as string) < (b['id'] as string) ? -1 : 1)),
          )
        }
        const embedded = await engine.rows(
          `SELECT count(*)::INTEGER AS n FROM snapshots.provenance WHERE snapshot_date = DATE '${date}'`,
        )
        const sources = [...(truth.get('deployments') ?? new Map()).values()].flatMap(
          (row) => row['provenance'] as unknown[],
        )
        expect(embedded[0]?.['n']).toBe(sources.length)
      }
    })
  }))

test('several snapshots of one day stay apart: the last one is shown, and the earlier one under an earlier as_of', async () => {
  const monday = parseInstant('2026-06-01T05:00Z') as number
  await withRegistryRig(monday, async (rig) => {
    await rig.snapshot()
    rig.clock.now = monday + 8 * 3600
    await rig.snapshot()
    await makeViews(rig.root)
    await withViews(rig.root, async (engine) => {
      const count = async (): Promise<unknown> =>
        await engine.rows(
          'SELECT snapshot_date, count(*)::INTEGER AS n, min(observed_at) AS at FROM snapshots.issuers GROUP BY 1',
        )
      const last = await count()
      await engine.run(`SET VARIABLE as_of = '2026-06-01T09:00:00Z'`)
      const first = await count()
      expect(first).toMatchObject([{ snapshot_date: '2026-06-01' }])
      expect(last).toMatchObject([{ snapshot_date: '2026-06-01' }])
      expect(last).not.toEqual(first)
    })
  })
})

test('L7: an engine reads back every double of a record as it was sent', async () => {
  const odd =
    '{"id":"x","name":"n","a":-0.0,"b":5e-324,"c":1.7976931348623157e308,"d":9007199254740993,"e":1e400,"f":0.1}'
  const body = `{"issuers":[${odd}],"assets":[],"products":[],"deployments":[],"venues":[],"derivatives":[],"cursor":"c","as_of":"2026-06-01T14:00:00+02:00"}`
  const instead = (request: Request): Response | undefined =>
    request.url.endsWith('/snapshot') ? new Response(body) : undefined
  await withRegistryRig(
    start,
    async (rig) => {
      await rig.snapshot()
      await makeViews(rig.root)
      await withViews(rig.root, async (engine: Engine) => {
        const [row] = await engine.rows<{ record: string; as_of: string; as_of_at: string }>(
          'SELECT record, as_of, as_of_at FROM issuers',
        )
        const back = JSON.parse(row?.record ?? '') as Record<string, number>
        expect(Object.is(back['a'], -0)).toBe(true)
        expect([back['b'], back['c'], back['d'], back['e'], back['f']]).toEqual([
          5e-324,
          Number.MAX_VALUE,
          2 ** 53,
          Infinity,
          0.1,
        ])
        expect([row?.['as_of'], row?.['as_of_at']]).toEqual([
          '2026-06-01T14:00:00+02:00',
          '2026-06-01T12:00:00.000000Z',
        ])
      })
    },
    { instead },
  )
})
