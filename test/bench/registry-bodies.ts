import { createSandbox } from '../../src/sandbox/sandbox.ts'
import { registryKey } from '../helpers/registry-rig.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

/** The instant of all bodies, Unix seconds. */
export const start = Date.UTC(2026, 9, 15, 12) / 1000

type Fields = Record<string, unknown>

/** A snapshot as a value that a bench may change. */
export type World = Record<string, Fields[]> & { cursor: unknown; as_of: unknown }

/** A snapshot of the full-size sandbox: 5,800 products, 21,600 deployments. */
export async function fullBody(): Promise<string> {
  const sandbox = createSandbox({
    catalogue,
    seed: 1,
    now: () => start,
    sleep: async () => undefined,
    scale: 'full',
    metricsKey: 'a-metrics-key',
    registryKey,
  })
  const headers = { authorization: `Bearer ${registryKey}` }
  const response = await sandbox.handle(new Request('http://localhost/registry/v1/snapshot', { headers }))
  return (await response.text()).replace(/"cursor":"[^"]*"/, '"cursor":"0"')
}

/** One of so many products, its deployments, and one of so many of everything else. */
export function sampleOf(text: string, every: number): World {
  const body = JSON.parse(text) as World
  const products = (body['products'] ?? []).filter((_, i) => i % every === 0)
  const kept = new Set(products.map(({ id }) => id))
  const deployments = (body['deployments'] ?? []).filter((row) => kept.has(row['product_id']))
  const others = ['issuers', 'assets', 'venues', 'derivatives'].map((name) => [
    name,
    (body[name] ?? []).filter((_, i) => i % every === 0),
  ])
  return { ...body, ...(Object.fromEntries(others) as Record<string, Fields[]>), products, deployments } as World
}

/** Changes 0.2 % of the products with all their deployments, in both places; gives the body. */
export function changed(world: World, n: number): string {
  const products = world['products'] ?? []
  const ofProduct = Map.groupBy(world['deployments'] ?? [], (row) => row['product_id'])
  const every = 500
  for (let i = (n * 37) % every; i < products.length; i += every) {
    const inside = (products[i]?.['deployments'] ?? []) as Fields[]
    for (const row of [...inside, ...(ofProduct.get(products[i]?.['id']) ?? [])]) row['status'] = `state ${n}`
  }
  return JSON.stringify(world)
}

/** Pages of a feed of so many events that change the deployments one after the other, by the cursor that asks for them. */
export function pagesOf(text: string, total: number, size: number): Map<number, string> {
  const deployments = (JSON.parse(text) as World)['deployments'] ?? []
  const pages = new Map<number, string>()
  for (let from = 0; from < total; from += size) {
    const data = Array.from({ length: size }, (_, i) => {
      const n = from + i
      const row = deployments[n % deployments.length] ?? {}
      const record = { ...row, status: `state ${Math.floor(n / deployments.length) + 1}` }
      return { entity_type: 'deployment', entity_id: row['id'], op: 'updated', record }
    })
    pages.set(from, JSON.stringify({ data, next_cursor: String(from + size), has_more: from + size < total }))
  }
  return pages
}
