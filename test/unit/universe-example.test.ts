import { expect, test } from 'vitest'
import { panelOptions } from '../../src/query/options.ts'
import { recordsOf, viewAt } from '../../src/sandbox/registry/state.ts'

/** Column and value of each comparison in a condition such as `asset_class = 'stocks' AND status = 'active'`. */
function comparisonsIn(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...text.matchAll(/(\w+) = '([^']*)'/g)].map(([, name = '', value = '']) => [name, value]))
}

test('the condition that the help of --universe shows as its example finds products in the sandbox', () => {
  const { asset_class, ...rest } = comparisonsIn(panelOptions.universe.about)
  expect([asset_class, rest]).toEqual([expect.any(String), { status: expect.any(String) }])
  const view = viewAt({ seed: 1, scale: 'demo' }, Date.parse('2024-07-01') / 1000)
  const assets = new Map([...recordsOf(view, 'asset')].map((asset) => [asset['id'], asset['asset_class']]))
  const members = [...recordsOf(view, 'product')].filter(
    (product) => assets.get(product['asset_id']) === asset_class && product['status'] === rest['status'],
  )
  expect(members.length).toBeGreaterThan(0)
})
