import type { Catalogue, Endpoint } from '../../../src/catalog/catalogue.ts'
import { withLag } from '../lags.ts'
import { withProvider } from '../provider.ts'
import { withRegistryRig } from '../registry-rig.ts'
import { SmallRegistry } from '../small-registry.ts'
import { makeViews } from '../views.ts'
import type { WrittenRecipe } from './lake-recipe.ts'

const day = 86_400
const first = Date.UTC(2024, 0, 1) / 1000
const days = 100

/** Ten minutes after their end both metrics are known; the second one is no endpoint of the built-in catalogue. */
const catalogue = withEndpoint(withLag('supply/current_pit', 600), 'indicators/one')

function withEndpoint(from: Catalogue, path: string): Catalogue {
  const like = withLag('indicators/aviv_pit', 600).endpoints.get('indicators/aviv_pit') as Endpoint
  return {
    ...from,
    wire: { ...from.wire, metadata: null },
    endpoints: new Map([...from.endpoints, [path, { ...like, path }]]),
  }
}

/**
 * Two metrics × two assets × 100 days of 2024, fetched in April, and a registry known since February. The jobs that
 * fetch and poll write it, from providers of its own: what an interface answers thus comes from files as users have
 * them.
 */
export const hundredFetchedDays: WrittenRecipe = {
  name: 'fetched',
  write: async (root) => {
    await pollRegistry(root)
    await fetchPoints(root)
    await makeViews(root, { catalogue })
  },
}

async function pollRegistry(root: string): Promise<void> {
  const registry = new SmallRegistry()
  const polled = Date.UTC(2024, 1, 1)
  await withRegistryRig(
    polled / 1000,
    async (rig) => void (await rig.sync({ root, deps: { nowMicros: () => polled * 1000 } })),
    { instead: registry.answer },
  )
}

async function fetchPoints(data: string): Promise<void> {
  await withProvider(first + days * day + day / 2, async (own) => {
    own.answer((path, query) => answer(path, query.get('a') ?? ''))
    const paths = ['supply/current_pit', 'indicators/one']
    const summary = await own.fetch({ assets: ['BTC', 'ETH'], paths, since: first }, { data, input: { catalogue } })
    if (summary.points_added !== 4 * days) throw new Error(`the lake of the queries: ${JSON.stringify(summary)}`)
  })
}

/** What both metrics say of an asset: the number of the day, and thousands that tell them apart. */
function answer(path: string, asset: string): readonly object[] {
  const own = path === 'supply/current_pit' ? 1000 : 2000
  return Array.from({ length: days }, (_, n) => ({
    t: first + n * day,
    v: asset === 'ETH' && n === 3 ? null : n + own,
  }))
}
