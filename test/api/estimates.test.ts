import { expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { storedArrivals } from '../../src/trust/availability-audit.ts'
import { withRig } from '../helpers/fetching.ts'
import { makeViews, withViews } from '../helpers/views.ts'

const path = 'estimates/idle_rate'
const text = `endpoints:
  - { path: ${path}, intervals: [24h, 1month], takes: [since, until], revisable: true }
availability:
  - { paths: [${path}], lag: 1d, basis: assumed, reason: a test }
`
const own = loadCatalogue([], undefined, [{ name: 'estimates.yaml', text }])
const catalogue = { ...own, wire: { ...own.wire, metadata: null } }
const day = 86_400
const start = Date.UTC(2024, 0, 1) / 1000

test('estimates of the sandbox are revised twice, tell no clock, and stay as vintages of their points', () =>
  withRig(Date.UTC(2024, 5, 3, 12) / 1000, async (rig) => {
    const selection = { assets: ['BTC', 'ETH'], paths: [path], intervals: ['1month' as const], since: start }
    const said = new Map<string, string[]>()
    let vintages = 0
    for (let look = 0; look < 6; look++) {
      for (const asset of selection.assets) {
        const query = new URLSearchParams({ a: asset, i: '1month', s: String(start) })
        const asked = { headers: { 'x-api-key': 'a-key-that-must-not-be-written' } }
        const reply = await rig.sandbox.handle(new Request(`${rig.url}/v1/metrics/${path}?${query}`, asked))
        for (const point of (await reply.json()) as { t: number; v: number | null; computed_at?: number }[]) {
          expect(Object.keys(point)).toEqual(['t', 'v'])
          const key = `${asset} ${point.t}`
          const before = said.get(key) ?? []
          if (before.at(-1) !== String(point.v)) said.set(key, [...before, String(point.v)])
        }
      }
      const done = await rig.fetch(selection, { input: { catalogue } })
      expect(done).toMatchObject({ violations: 0, windows: { failed: 0 } })
      vintages += done.vintages_added
      rig.clock.now += 25 * day
    }
    expect(vintages).toBeGreaterThan(8)
    using ledger = await Ledger.open(rig.root)
    const [held] = await storedArrivals(ledger, catalogue, (one) => one === path)
    // The first values were seen with the polls, and say nothing of when they were told: nothing speaks against the
    // rule.
    expect(held?.arrivals).toMatchObject({ points: said.size, late: 0 })
    await makeViews(rig.root, { catalogue })
    await withViews(rig.root, async (engine) => {
      const rows = await engine.rows<{ key: string; told: string }>(
        `SELECT asset || ' ' || epoch(t)::BIGINT AS key, string_agg(coalesce(CAST(v AS VARCHAR), 'null'), ' ' ORDER BY ordinal) AS told
         FROM vintages GROUP BY asset, t`,
      )
      const held = rows.map(
        ({ key, told }) =>
          `${key}: ${told
            .split(' ')
            .map((v) => String(v === 'null' ? null : Number(v)))
            .join(' ')}`,
      )
      expect(held.toSorted()).toEqual([...said].map(([key, values]) => `${key}: ${values.join(' ')}`).toSorted())
    })
  }))
