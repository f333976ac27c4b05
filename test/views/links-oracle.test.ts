// @module-tag full
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import type { LakeCommit } from '../helpers/lakes/lake-recipe.ts'
import { temporaryFolder } from '../helpers/folders.ts'

/** Days of January 2024; 0 stands for before all time, 99 for never. */
type Day = number
const always = 0
const never = 99
const days = [3, 6, 9, 12]
const iso = (day: Day): string => `2024-01-${String(day).padStart(2, '0')}`
const told = (day: Day): string =>
  day === always ? '-infinity' : day === never ? 'infinity' : `${iso(day)}T00:00:00.000000Z`

/** What a poll showed of a record: null that it is gone. */
interface Shown {
  readonly poll: Day
  readonly id: string
  readonly symbol?: string | null
  readonly product?: string | null
  readonly chain?: string
  readonly address?: string
}
interface Listed {
  readonly poll: Day
  readonly id: string
  readonly symbol: string | null
  readonly addresses: readonly (readonly [chain: string, address: string])[] | null
}
interface Mapped {
  readonly asset: string
  readonly product: string | null
  readonly contract: readonly [chain: string, address: string] | null
  readonly from: Day | null
  readonly until: Day | null
}
interface World {
  readonly products: readonly Shown[]
  readonly deployments: readonly Shown[]
  readonly listings: readonly Listed[]
  readonly mapping: readonly Mapped[]
}
interface Clock {
  readonly asOf: Day | null
  readonly observed: Day | null
  readonly backfill: boolean
}

const symbols = fc.constantFrom('AA', 'aa', 'Bb', 'CC', null)
const contracts = fc.constantFrom(
  ...([
    ['eip155:1', '0xAB'],
    ['1', '0xab'],
    ['EIP155:1', '0XaB'],
    ['solana', 'Xy'],
    ['Solana', 'Xy'],
    ['solana', 'xY'],
    ['10', '0xab'],
  ] as const),
)
const poll = fc.constantFrom(...days)
const productIds = fc.constantFrom('p1', 'p2', 'p3')
const world: fc.Arbitrary<World> = fc.record({
  products: fc
    .uniqueArray(fc.record({ poll, id: productIds, symbol: symbols, gone: fc.integer({ max: 4 }) }), {
      selector: (one) => `${one.poll} ${one.id}`,
      maxLength: 9,
    })
    .map((list) => list.map(({ gone, ...one }) => (gone === 0 ? { poll: one.poll, id: one.id } : one))),
  deployments: fc
    .uniqueArray(
      fc.record({
        poll,
        id: fc.constantFrom('d1', 'd2', 'd3'),
        product: fc.option(productIds, { freq: 6 }),
        contract: contracts,
        gone: fc.nat(5),
      }),
      { selector: (one) => `${one.poll} ${one.id}`, maxLength: 8 },
    )
    .map((list) =>
      list.map(({ gone, contract: [chain, address], ...one }) =>
        gone === 0 ? { poll: one.poll, id: one.id } : { ...one, chain, address },
      ),
    ),
  listings: fc.uniqueArray(
    fc.record({
      poll,
      id: fc.constantFrom('a1', 'a2', 'AA', 'mapped'),
      symbol: symbols,
      addresses: fc.option(fc.uniqueArray(contracts, { maxLength: 2 })),
    }),
    { selector: (one) => `${one.poll} ${one.id}`, maxLength: 8 },
  ),
  mapping: fc
    .array(
      fc.record({
        asset: fc.constantFrom('mapped', 'other'),
        target: fc.oneof(productIds, contracts),
        from: fc.option(fc.constantFrom(4, 6, 7)),
        until: fc.option(fc.constantFrom(6, 8, 12)),
      }),
      { maxLength: 3 },
    )
    .map((list) =>
      list.map(({ target, ...one }) =>
        typeof target === 'string'
          ? { ...one, product: target, contract: null }
          : { ...one, product: null, contract: target },
      ),
    ),
})

/** Points of assets that no listing names, with the day from which they are known; held at the second poll. */
const pointed = [
  { asset: 'cc', known: 2 },
  { asset: 'bb', known: 7 },
  { asset: 'AA', known: 2 },
]

function stepsOf({ products, deployments, listings }: World): LakeCommit[] {
  const record = ({ id, symbol, product, chain, address }: Shown, kind: 'product' | 'deployment') => {
    const isThere = kind === 'product' ? symbol !== undefined : chain !== undefined
    const own = {
      id,
      op: isThere ? 'snapshot' : null,
      closed_by: isThere ? null : 'deleted',
      inferred: false,
      record: isThere ? '{}' : null,
    }
    if (kind === 'product') return { ...own, symbol: symbol ?? null }
    return { ...own, product_id: product ?? null, chain_id: chain ?? null, address: address ?? null }
  }
  return days.map((day, n): LakeCommit => {
    const at = <T extends { readonly poll: Day }>(list: readonly T[]): T[] => list.filter((one) => one.poll === day)
    return {
      at: iso(day),
      ...(n === 1
        ? {
            points: pointed.map(({ asset, known }) => ({
              metric: 'm/x',
              asset,
              interval: '24h' as const,
              t: iso(1),
              available_at: iso(known),
              v: 1,
            })),
          }
        : {}),
      tables: {
        ...(n === 0 ? { snapshots: [{ snapshot_date: iso(day), resource: 'products', base: 'b', rows: 1 }] } : {}),
        metric_assets: at(listings).map(({ id, symbol, addresses }) => ({
          id,
          symbol,
          addresses: addresses && JSON.stringify(addresses.map(([chain_id, address]) => ({ chain_id, address }))),
          record: '{}',
        })),
        'history.products': at(products).map((one) => record(one, 'product')),
        'history.deployments': at(deployments).map((one) => record(one, 'deployment')),
      },
    }
  })
}

const contractOf = (chain: string, address: string): string =>
  `${chain.toLowerCase().replace('eip155:', '')} ${address.toLowerCase().startsWith('0x') ? address.toLowerCase() : address}`

/** On which days a record read as it did, as far as the clock lets see. */
function versionsOf(shown: readonly Shown[], { asOf, observed, backfill }: Clock) {
  const seen = shown.filter(({ poll }) => poll <= (asOf ?? never) && poll <= (observed ?? never))
  const versions = seen.map((one) => {
    const next = seen.filter(({ id, poll }) => id === one.id && poll > one.poll).map(({ poll }) => poll)
    return { one, from: one.poll, to: Math.min(never, ...next), assumed: false }
  })
  const first = days[0]!
  const stands = backfill && (observed === null || observed >= first) ? shown.filter(({ poll }) => poll === first) : []
  const before = stands.map((one) => ({
    one,
    from: always,
    to: asOf !== null && asOf < first ? never : first,
    assumed: true,
  }))
  return [...versions, ...before].filter(({ one }) => one.symbol !== undefined || one.chain !== undefined)
}

interface Match {
  readonly key: readonly [
    asset: string,
    product: string,
    basis: string,
    symbol: string | null,
    chain: string | null,
    address: string | null,
    assumed: boolean,
  ]
  readonly from: Day
  readonly to: Day
}

function matchesOf({ products, deployments, listings, mapping }: World, clock: Clock): Match[] {
  const { asOf, observed, backfill } = clock
  const ofProducts = versionsOf(products, clock)
  const ofDeployments = versionsOf(deployments, clock)
  const seen = listings.filter(({ poll }) => poll <= (observed ?? never))
  const known = seen.filter(
    ({ id, poll }) =>
      poll <= (asOf ?? never) || (backfill && seen.every((other) => other.id !== id || other.poll >= poll)),
  )
  const latest = known.filter((one) => known.every((other) => other.id !== one.id || other.poll <= one.poll))
  const arrived = pointed.filter(({ known: day }) => day <= (asOf ?? never) && days[1]! <= (observed ?? never))
  const ids = new Set([...latest.map(({ id }) => id), ...arrived.map(({ asset }) => asset)])
  for (const { asset } of mapping) ids.delete(asset)
  const matches: Match[] = []
  for (const { asset, product, contract, from, until } of mapping) {
    const cut = (version: { from: Day; to: Day }): Pick<Match, 'from' | 'to'> => ({
      from: Math.max(version.from, from ?? always),
      to: Math.min(version.to, until ?? never),
    })
    for (const version of ofProducts)
      if (version.one.id === product)
        matches.push({ key: [asset, product, 'mapping', null, null, null, version.assumed], ...cut(version) })
    for (const version of ofDeployments) {
      const own = contractOf(version.one.chain!, version.one.address!)
      const [chain = '', address = ''] = own.split(' ')
      if (contract && version.one.product && contractOf(...contract) === own)
        matches.push({
          key: [asset, version.one.product, 'mapping', null, chain, address, version.assumed],
          ...cut(version),
        })
    }
  }
  for (const id of ids) {
    const listed = latest.find((one) => one.id === id)
    const carried = (listed?.addresses ?? []).map((one) => contractOf(...one))
    const symbol = (listed?.symbol ?? id).toLowerCase()
    for (const { one, from, to, assumed } of ofDeployments) {
      const own = contractOf(one.chain!, one.address!)
      const [chain = '', address = ''] = own.split(' ')
      if (one.product && carried.includes(own))
        matches.push({ key: [id, one.product, 'address', null, chain, address, assumed], from, to })
    }
    for (const { one, from, to, assumed } of carried.length > 0 ? [] : ofProducts)
      if (one.symbol?.toLowerCase() === symbol)
        matches.push({ key: [id, one.id, 'symbol', one.symbol, null, null, assumed], from, to })
  }
  return matches
}

/** The rows of `links`, day by day: what holds on neighbouring days is one period. */
function expectedOf(given: World, clock: Clock): string[] {
  const byKey = Map.groupBy(matchesOf(given, clock), ({ key }) => JSON.stringify(key))
  const rows = [...byKey].flatMap(([key, own]) => {
    const holds = (day: Day): boolean => own.some(({ from, to }) => from <= day && day < to)
    const begins = Array.from({ length: never }, (_, day) => day).filter(
      (day) => holds(day) && (day === 0 || !holds(day - 1)),
    )
    return begins.map((from) => {
      let to = from
      while (to < never && holds(to)) to++
      return { key: JSON.parse(key) as Match['key'], from, to }
    })
  })
  return rows
    .map(({ key: [asset, product, ...rest], from, to }) => {
      const rivals = rows.filter(({ key }) => key[0] === asset && key[1] !== product)
      const ambiguous = rivals.some((rival) => rival.from < to && from < rival.to)
      return JSON.stringify([asset, product, ...rest, ambiguous, told(from), told(to)])
    })
    .toSorted()
}

/** Both instants before, at and behind polls, with and without the first snapshot standing in. */
const clocks: readonly Clock[] = [
  { asOf: null, observed: null, backfill: false },
  { asOf: 2, observed: null, backfill: true },
  { asOf: 3, observed: 6, backfill: true },
  { asOf: 7, observed: null, backfill: false },
  { asOf: 9, observed: 7, backfill: false },
  { asOf: null, observed: 2, backfill: true },
  { asOf: null, observed: 9, backfill: true },
]

test('links are what a day by day look at all matches says', { timeout: 300_000 }, async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(world, async (given) => {
      using rootFolder = temporaryFolder('links')
      const root = rootFolder.path
      await makeLake(root, stepsOf(given))
      const seconds = (day: Day | null): number | null => (day === null ? null : Date.parse(iso(day)) / 1000)
      const links = given.mapping.map(({ asset, product, contract, from, until }) => ({
        metricAsset: asset,
        productId: product,
        chainId: contract?.[0] ?? null,
        address: contract?.[1] ?? null,
        from: seconds(from),
        until: seconds(until),
      }))
      await makeViews(root, { catalogue: { ...catalogue, links } })
      await withViews(root, async (engine) => {
        for (const clock of clocks) {
          const day = (one: Day | null): string => (one === null ? 'NULL' : `'${iso(one)}'`)
          await engine.run(
            `SET VARIABLE as_of = ${day(clock.asOf)}; SET VARIABLE observed_as_of = ${day(clock.observed)}; SET VARIABLE registry_backfill = ${clock.backfill}`,
          )
          const rows = await engine.rows<Record<string, string>>('FROM links')
          const got = rows.map((row) =>
            JSON.stringify(
              [
                'metric_asset',
                'product_id',
                'basis',
                'symbol',
                'chain_id',
                'address',
                'assumed',
                'ambiguous',
                'valid_from',
                'valid_to',
              ].map((name) => row[name]),
            ),
          )
          for (const row of rows) seen.add(`${row['basis']} ${row['assumed']}`).add(`ambiguous ${row['ambiguous']}`)
          expect(got.toSorted(), JSON.stringify(clock)).toEqual(expectedOf(given, clock))
        }
      })
    }),
    { numRuns: 8, seed: 22, endOnFailure: true },
  )
  // Every kind of link came by, ambiguous and assumed ones, too.
  expect(seen.size).toBe(8)
})
