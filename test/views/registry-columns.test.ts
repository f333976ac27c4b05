import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { noted, openLake, type Panel } from '../../src/index.ts'
import { openQuery } from '../../src/query/lake.ts'
import { noteTexts } from '../../src/query/note-texts.ts'
import { randomOf } from '../helpers/random.ts'
import { scratch } from '../helpers/scratch.ts'
import { at, from, historyRows, hour, knownRecords, polls, type State, world } from '../helpers/universe-world.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'

/*
 * Columns of the registry at 10,000 decisions, against a walk through all that happened. BTC and ETH are known by their
 * first point, XYZ from the twentieth poll on, TOK by its listing: with one contract from the third poll on, with
 * a different one from the thirtieth on.
 */

const supply = 'supply/current_pit'
const contracts = [
  { chain_id: '1', address: '0xa' },
  { chain_id: '137', address: '0xb' },
]
const listedAt = [3, 30] as const
const pointsOf = { BTC: '2024-01-09T00:10:00Z', ETH: '2024-01-09T00:10:00Z', XYZ: at(20) } as const
const root = join(scratch('registry-columns'), 'lake')

beforeAll(async () => {
  const tables = Object.fromEntries(
    Object.entries(world).map(([name, steps]) => [`history.${name}`, historyRows(steps)]),
  )
  const snapshot = {
    snapshot_date: '2024-01-10',
    observed_at: at(0),
    source: 'snapshot',
    resource: 'products',
    base: 'a',
    delta: null,
    rows: 8,
  }
  const listings = listedAt.map((poll, n) => ({
    id: 'TOK',
    symbol: 'TOK',
    addresses: JSON.stringify(contracts.slice(n, n + 1)),
    record: '{}',
    observed_at: at(poll),
  }))
  const points = Object.entries(pointsOf).map(([asset, available_at], n) => ({
    metric: supply,
    interval: '24h' as const,
    currency: 'native',
    asset,
    t: '2024-01-08',
    available_at,
    v: n,
  }))
  await makeLake(root, [
    { at: '2024-03-01T00:00:00Z', points, tables: { ...tables, snapshots: [snapshot], metric_assets: listings } },
  ])
  await makeViews(root)
})

/** The products to which an asset was linked. */
function productsOf(asset: string, ms: number): string[] {
  const carried = contracts.filter((_, n) => from + (listedAt[n] ?? 0) * hour <= ms).slice(-1)
  const isListed = (one: State): boolean =>
    carried.some(({ chain_id, address }) => one['chain_id'] === chain_id && one['address'] === address)
  const deployed = [...knownRecords(world.deployments, ms).values()].filter(isListed)
  const holders = new Set(deployed.map((one) => one['product_id']))
  const start = Object.entries(pointsOf).find(([name]) => name === asset)?.[1]
  const isKnown = start !== undefined && Date.parse(start) <= ms
  return [...knownRecords(world.products, ms)]
    .filter(([id, { symbol }]) => (asset === 'TOK' ? holders.has(id) : isKnown && symbol === asset))
    .map(([id]) => id)
}

const textColumns = [
  'product_id',
  'name',
  'symbol',
  'isin',
  'status',
  'issuer_id',
  'issuer_name',
  'issuer_status',
  'jurisdiction',
  'asset_id',
  'asset_name',
  'asset_class',
  'ticker',
] as const

/** What was known of the products of an asset, as text: of several each different value. */
function columnsOf(products: readonly string[], ms: number): Record<string, string | null> {
  const issuers = knownRecords(world.issuers, ms)
  const assets = knownRecords(world.assets, ms)
  const all = knownRecords(world.products, ms)
  const states = products.map((id): State => {
    const { id: product_id = null, ...product } = all.get(id) ?? {}
    const issuer = issuers.get(product['issuer_id'] ?? '')
    const asset = assets.get(product['asset_id'] ?? '')
    return {
      ...product,
      product_id,
      issuer_name: issuer?.['name'] ?? null,
      issuer_status: issuer?.['status'] ?? null,
      jurisdiction: issuer?.['jurisdiction'] ?? null,
      asset_name: asset?.['name'] ?? null,
      asset_class: asset?.['asset_class'] ?? null,
      ticker: asset?.['ticker'] ?? null,
    }
  })
  const texts = textColumns.map((name): [string, string | null] => {
    const values = [...new Set(states.map((state) => state[name] ?? null))].filter((one) => one !== null)
    return [name, values.length === 0 ? null : values.toSorted().join(', ')]
  })
  const deployed = [...knownRecords(world.deployments, ms).values()]
  const own = deployed.filter((one) => products.includes(one['product_id'] ?? ''))
  const chains = [...new Set(own.map((one) => one['chain_id'] ?? ''))].toSorted().join(' ')
  return { ...Object.fromEntries(texts), chains: products.length === 0 ? null : chains }
}

const random = randomOf(7)
/** Decisions around each poll, to the millisecond, and in between. */
const decisions = Array.from({ length: 10_000 }, (_, n) => {
  const poll = from + Math.floor(random() * (polls + 6) - 3) * hour
  const off = [-1, 0, 1, Math.floor(random() * hour)][n % 4] ?? 0
  return { asset: ['BTC', 'ETH', 'XYZ', 'TOK', 'NONE'][Math.floor(random() * 5)] ?? '', ms: poll + off }
})
const columns = [...textColumns, 'chains'] as const

test('a panel of 10,000 decisions has the columns of the registry that a walk through all that happened finds', async () => {
  const lake = await openLake(root)
  try {
    const asked = decisions.map(({ asset, ms }) => ({ asset, ts: new Date(ms).toISOString() }))
    const table = await lake.panel({ decisions: asked, metrics: { v: supply }, with: columns })
    expect(table.schema.fields.map(({ name }) => name)).toEqual(['asset', 'ts', ...columns, 'v'])
    const found = table.toArray().map((row): Record<string, unknown> => {
      const { chains, ...rest } = row.toJSON() as Record<string, unknown>
      for (const name of ['v', 'ts']) Reflect.deleteProperty(rest, name)
      return { ...rest, chains: chains === null ? null : [...(chains as Iterable<string>)].join(' ') }
    })
    const expected = decisions.map(
      ({ asset, ms }): Record<string, string | null> => ({ asset, ...columnsOf(productsOf(asset, ms), ms) }),
    )
    expect(found).toEqual(expected)
    const several = expected.filter((row) => String(row['product_id']).includes(', '))
    const missing = expected.filter((row) => row['product_id'] === null)
    expect([several.length > 500, missing.length > 2000, new Set(expected.map((row) => row['status'])).size]).toEqual([
      true,
      true,
      4,
    ])
  } finally {
    await lake.close()
  }
})

test('pit_registry at ts equals pit_registry of a lake that stands at ts', async () => {
  using lake = await openQuery(root, {})
  for (const { asset, ms } of decisions.slice(0, 12)) {
    const ts = new Date(ms).toISOString()
    const query = `WITH d AS (SELECT '${asset}' AS asset, TIMESTAMPTZ '${ts}' AS ts) FROM pit_registry('d')`
    const whole = await lake.rows(query)
    await lake.run(`SET VARIABLE as_of = '${ts}'`)
    expect(await lake.rows(query), `${asset} ${ts}`).toEqual(whole)
    await lake.run('RESET VARIABLE as_of')
  }
})

test('pit_registry of a named product has the columns of the view universe at that time', async () => {
  for (const poll of [0, 17, 41, 59]) {
    using lake = await openQuery(root, { asOf: at(poll) })
    const universe = await lake.rows('FROM universe ORDER BY product_id')
    const asked = `WITH d AS (SELECT NULL AS asset, TIMESTAMPTZ '${at(poll)}' AS ts, product_id AS named FROM universe)`
    const found = await lake.rows(`${asked} SELECT * EXCLUDE (asset, ts, named)
      FROM pit_registry('d', product := named) ORDER BY product_id`)
    expect(found).toEqual(universe)
    expect(universe.length).toBeGreaterThan(5)
  }
})

test('pit_registry refuses decisions with a column that it adds', async () => {
  using lake = await openQuery(root, {})
  const query = `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-01-11' AS ts, 1 AS status) FROM pit_registry('d')`
  await expect(lake.rows(query)).rejects.toThrow(/status/)
})

test('columns of the registry that are NULL everywhere get a note with what there is', async () => {
  const lake = await openLake(root)
  try {
    const notesOn = async (panel: Partial<Panel>): Promise<readonly string[]> => {
      const decisions = [{ asset: 'NONE', ts: '2024-01-11' }]
      await lake.panel({ decisions, metrics: { v: supply }, with: ['status'], ...panel })
      return noteTexts(noted(lake), 'typescript')
    }
    expect(await notesOn({})).toContain(
      "no asset of these decisions was linked to a product of the registry at its ts (status); there are 'BTC', 'ETH', 'TOK', 'XYZ'",
    )
    const universe = {
      decisions: [{ ts: '2024-01-11' }],
      universe: 'asset_class IS NULL',
      with: ['asset_class'] as const,
    }
    expect(await notesOn(universe)).toContain(
      "no product of these decisions had asset_class at its ts; there are 'equity', 'treasury'",
    )
    expect(await notesOn({ decisions: [{ asset: 'BTC', ts: '2024-01-11' }] })).toEqual([])
  } finally {
    await lake.close()
  }
})
