import { expect, test } from 'vitest'
import type { Catalogue } from '../../src/catalog/catalogue.ts'
import type { Link } from '../../src/catalog/schema.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import type { LakeCommit } from '../helpers/lakes/lake-recipe.ts'
import { scratch } from '../helpers/scratch.ts'

const link = (more: Partial<Link>): Link => ({
  metricAsset: '',
  productId: null,
  chainId: null,
  address: null,
  from: null,
  until: null,
  ...more,
})

const withLinks = (links: readonly Link[]): Catalogue => ({ ...catalogue, links })

const product = (
  id: string,
  symbol: string | null,
  op: string | null = 'snapshot',
  closed_by: string | null = null,
) => ({ id, symbol, op, closed_by, inferred: false, record: '{}' })

const deployment = (id: string, product_id: string, chain_id: string, address: string) => ({
  ...product(id, null),
  product_id,
  chain_id,
  address,
})

const first = '2024-01-10'
const second = '2024-02-10'
const third = '2024-03-10'

/** Three polls: a snapshot, a change of symbols, a deletion. */
const steps: LakeCommit[] = [
  {
    at: first,
    points: [
      { metric: 'm/x', asset: 'ONDO', interval: '24h', t: '2024-01-01', available_at: '2024-01-02', v: 1 },
      { metric: 'own/bars', asset: 'byhand', interval: '24h', t: '2024-01-01', available_at: '2024-01-02', v: 1 },
      { metric: 'own/bars', asset: 'ONDO', interval: '24h', t: '2024-01-01', available_at: '2024-01-02', v: 1 },
      { metric: 'm/x', asset: 'late', interval: '24h', t: '2024-02-01', available_at: '2024-02-20', v: 1 },
    ],
    tables: {
      metric_assets: [
        { id: 'usdy', symbol: 'USDY', addresses: null, record: '{}' },
        { id: 'coin', symbol: 'COIN', addresses: '[{"chain_id":"eip155:1","address":"0xABCd"}]', record: '{}' },
        { id: 'mapped', symbol: 'USDY', addresses: null, record: '{}' },
        { id: 'byhand', symbol: null, addresses: null, record: '{}' },
      ],
      snapshots: [{ snapshot_date: first, resource: 'products', base: 'b', rows: 3 }],
      'history.products': [
        product('p1', 'usdy'),
        product('p2', 'OLD'),
        product('p3', 'ondo'),
        product('p4', 'COIN'),
        product('p5', 'late'),
      ],
      'history.deployments': [deployment('d1', 'p1', '1', '0xabcD'), deployment('d2', 'p2', 'solana', 'CaseMatters')],
    },
  },
  { at: second, tables: { 'history.products': [product('p2', 'USDY', 'updated'), product('p1', 'usdy', 'updated')] } },
  { at: third, tables: { 'history.products': [product('p2', null, null, 'deleted')] } },
]

const mapping = withLinks([
  link({
    metricAsset: 'mapped',
    productId: 'p3',
    from: Date.UTC(2024, 1, 1) / 1000,
    until: Date.UTC(2024, 4, 1) / 1000,
  }),
  link({ metricAsset: 'byhand', chainId: 'Solana', address: 'CaseMatters' }),
  link({ metricAsset: 'nowhere', chainId: 'solana', address: 'casematters' }),
])

type Linked = Record<'metric_asset' | 'product_id' | 'basis' | 'valid_from' | 'valid_to', string> &
  Record<'ambiguous' | 'assumed', boolean>

/** `asset product basis from to`, `?` where it is ambiguous, `~` where it is assumed. */
async function links(engine: Engine): Promise<string[]> {
  const rows = await engine.rows<Linked>('FROM links ORDER BY metric_asset, product_id, valid_from')
  const date = (text: string): string => text.replace(/T00:00:00.000000Z$/, '')
  return rows.map((row) => {
    const marks = `${row.ambiguous ? '?' : ''}${row.assumed ? '~' : ''}`
    return `${row.metric_asset} ${row.product_id} ${row.basis}${marks} ${date(row.valid_from)} ${date(row.valid_to)}`
  })
}

const { root } = lakeOfFile({ name: 'links', commits: steps, catalogue: mapping })

test('links come from the mapping, the contract or else the symbol, each with its period', () =>
  withViews(root, async (engine) => {
    expect(await links(engine)).toEqual([
      `ONDO p3 symbol ${first} infinity`,
      `byhand p2 mapping ${first} infinity`,
      `coin p1 address ${first} infinity`,
      `late p5 symbol ${first} infinity`,
      `mapped p3 mapping 2024-02-01 2024-05-01`,
      `usdy p1 symbol? ${first} infinity`,
      `usdy p2 symbol? ${second} ${third}`,
    ])
  }))

test('assets of user data are linked by mapping or name, and through their product to those of the metrics API', () =>
  withViews(root, async (engine) => {
    const own = (asset: string, basis: string, also: string | null) => ({ asset, basis, also })
    const rows = await engine.rows(
      `SELECT DISTINCT l.metric_asset AS asset, l.basis, m.metric_asset AS also
       FROM (SELECT DISTINCT asset FROM points WHERE metric = 'own/bars') AS p JOIN links AS l ON l.metric_asset = p.asset
       LEFT JOIN links AS m ON m.product_id = l.product_id AND m.metric_asset <> l.metric_asset ORDER BY ALL`,
    )
    expect(rows).toEqual([own('ONDO', 'symbol', 'mapped'), own('byhand', 'mapping', 'usdy')])
  }))

test('as known at as_of: later matches are unknown, later closings read as open', () =>
  withViews(root, async (engine) => {
    await engine.run(`SET VARIABLE as_of = '2024-02-15'`)
    expect(await links(engine)).toEqual([
      `ONDO p3 symbol ${first} infinity`,
      `byhand p2 mapping ${first} infinity`,
      `coin p1 address ${first} infinity`,
      `mapped p3 mapping 2024-02-01 2024-05-01`,
      `usdy p1 symbol? ${first} infinity`,
      `usdy p2 symbol? ${second} infinity`,
    ])
    await engine.run(`SET VARIABLE as_of = '2024-02-09'`)
    expect(await links(engine)).toEqual([
      `ONDO p3 symbol ${first} infinity`,
      `byhand p2 mapping ${first} infinity`,
      `coin p1 address ${first} infinity`,
      `mapped p3 mapping 2024-02-01 2024-05-01`,
      `usdy p1 symbol ${first} infinity`,
    ])
    await engine.run(`SET VARIABLE as_of = '2024-01-09'`)
    expect(await links(engine)).toEqual([])
  }))

test('registry_backfill lets the first snapshot stand in, flagged', () =>
  withViews(root, async (engine) => {
    await engine.run(`SET VARIABLE as_of = '2024-01-09'; SET VARIABLE registry_backfill = true`)
    expect(await links(engine)).toEqual([
      'ONDO p3 symbol~ -infinity infinity',
      'byhand p2 mapping~ -infinity infinity',
      'coin p1 address~ -infinity infinity',
      'mapped p3 mapping~ 2024-02-01 2024-05-01',
      'usdy p1 symbol~ -infinity infinity',
    ])
    await engine.run(`SET VARIABLE as_of = NULL`)
    const seen = await links(engine)
    expect(seen.filter((line) => line.startsWith('usdy'))).toEqual([
      `usdy p1 symbol~ -infinity ${first}`,
      `usdy p1 symbol? ${first} infinity`,
      `usdy p2 symbol? ${second} ${third}`,
    ])
    await engine.run(`SET VARIABLE observed_as_of = '2024-01-09'`)
    expect(await links(engine)).toEqual([])
  }))

const variantRoot = scratch('links-variants')

test('an asset without a contract or an equal symbol is linked by a variant that the catalogue lists, and by none while several products have it', async () => {
  const asset = (id: string, symbol: string, addresses: string | null = null) => ({
    id,
    symbol,
    addresses,
    record: '{}',
  })
  await makeLake(variantRoot, [
    {
      at: first,
      tables: {
        metric_assets: [
          asset('AAPLX', 'AAPL.XS', '[{"chain_id":"eip155:1","address":"0xAA"}]'),
          asset('NVDAX', 'NVDA.xs'),
          asset('SPYX', 'SPY.XT'),
          asset('BARE', '.XS'),
        ],
        snapshots: [{ snapshot_date: first, resource: 'products', base: 'b', rows: 4 }],
        'history.products': [product('q1', 'AAPLx'), product('q3', 'nvdaX'), product('q5', 'SPY'), product('q6', 'x')],
        'history.deployments': [],
      },
    },
    {
      at: second,
      tables: {
        metric_assets: [asset('NEWER', 'AAPLx')],
        'history.products': [product('q4', 'NVDAx'), product('q2', 'OTHER')],
        'history.deployments': [deployment('e1', 'q2', '1', '0xaa')],
      },
    },
    { at: third, tables: { 'history.products': [product('q4', null, null, 'deleted')] } },
  ])
  const symbolVariants = [...catalogue.symbolVariants, { metrics: '.XT', registry: '' }]
  await makeViews(variantRoot, { catalogue: { ...catalogue, symbolVariants } })
  await withViews(variantRoot, async (engine) => {
    // The contract comes first from when it is known; until then the variant holds.
    expect(await links(engine)).toEqual([
      `AAPLX q1 symbol ${first} ${second}`,
      `AAPLX q2 address ${second} infinity`,
      `NEWER q1 symbol ${first} infinity`,
      `NVDAX q3 symbol ${first} ${second}`,
      `NVDAX q3 symbol ${third} infinity`,
      `NVDAX null symbol? ${second} ${third}`,
      `SPYX q5 symbol ${first} infinity`,
    ])
    // The end of a link by a variant makes no succession, although NEWER is linked to q1 from then on.
    const followed = 'FROM links WHERE successor IS NOT NULL OR predecessor IS NOT NULL'
    expect(await engine.rows(followed)).toEqual([])
    await engine.run(`SET VARIABLE as_of = '2024-02-09'`)
    expect(await links(engine)).toEqual([
      `AAPLX q1 symbol ${first} infinity`,
      `NVDAX q3 symbol ${first} infinity`,
      `SPYX q5 symbol ${first} infinity`,
    ])
  })
})
