import { expect, test } from 'vitest'
import { isinCheckDigit } from '../../src/sandbox/registry/entities.ts'
import { viewAt } from '../../src/sandbox/registry/state.ts'
import { worldAssets } from '../../src/sandbox/world/assets.ts'
import { day, floor, formatInstant, hour, parseInstant } from '../../src/base/time.ts'
import { addedFields, registryStateAt } from '../helpers/registry-truth.ts'

type State = ReturnType<typeof registryStateAt>
const demo = { seed: 11, scale: 'demo' } as const
const autumn = at('2026-10-20T12:00:00Z')

function at(text: string): number {
  return parseInstant(text) ?? Number.NaN
}

const rows = (state: State, table: string): Record<string, unknown>[] => [...(state.get(table)?.values() ?? [])]

const count = (state: State, table: string): number => state.get(table)?.size ?? 0

/** Pushes every kept world out, so that the next call writes it from the start. */
function forget(): void {
  for (let seed = 900; seed < 906; seed++) viewAt({ seed, scale: 'demo' }, at('2024-01-02'))
}

test('the demo has about 400 products in late 2026, the full registry 5,800 and 21,600 deployments', () => {
  const small = registryStateAt(demo, autumn)
  expect(count(small, 'products')).toBeGreaterThan(350)
  expect(count(small, 'products')).toBeLessThan(450)
  expect(count(small, 'deployments') / count(small, 'products')).toBeCloseTo(3.7, 0)
  const full = registryStateAt({ seed: 11, scale: 'full' }, autumn)
  expect(Math.abs(count(full, 'products') - 5800)).toBeLessThan(250)
  expect(Math.abs(count(full, 'deployments') - 21_600)).toBeLessThan(1000)
})

test('a world is a function of seed, scale and instant, however it was reached', () => {
  const instants = ['2024-01-01', '2024-07-03T07:30:00Z', '2025-03-03', '2026-10-20T08:00:00Z'].map(at)
  forget()
  const stepwise = instants.map((instant) => registryStateAt(demo, instant))
  forget()
  const backwards = instants.toReversed().map((instant) => registryStateAt(demo, instant))
  expect(backwards.toReversed()).toEqual(stepwise)
  expect(registryStateAt({ ...demo, seed: 12 }, autumn)).not.toEqual(registryStateAt(demo, autumn))
})

test('the registry is empty before its start and has records from then on', () => {
  expect(count(registryStateAt(demo, at('2023-12-31T23:59:59Z')), 'products')).toBe(0)
  expect(count(registryStateAt(demo, at('2024-01-01')), 'products')).toBeGreaterThan(100)
})

test('entries of the log are in order of time and fall on weekday mornings', () => {
  const { store } = viewAt(demo, autumn)
  let before = 0
  for (const { at: instant } of store.audit) {
    expect(instant).toBeGreaterThanOrEqual(before)
    before = instant
    if (instant === at('2024-01-01')) continue
    const hours = (instant - floor(instant, '24h')) / hour
    expect(hours >= 6 && hours < 9, formatInstant(instant)).toBe(true)
    expect((instant - floor(instant, '1w')) / day).toBeLessThan(5)
  }
})

test('every reference leads to a record, and embedded deployments are the records themselves', () => {
  const state = registryStateAt(demo, autumn)
  const table = (name: string): ReadonlyMap<string, unknown> => state.get(name) ?? new Map()
  for (const product of rows(state, 'products')) {
    expect(table('issuers').has(product['issuer_id'] as string)).toBe(true)
    expect(table('assets').has(product['asset_id'] as string)).toBe(true)
    for (const deployment of product['deployments'] as Record<string, unknown>[]) {
      expect(deployment).toEqual(table('deployments').get(deployment['id'] as string))
      expect(deployment['product_id']).toBe(product['id'])
    }
  }
  const embedded = rows(state, 'products').flatMap((product) => product['deployments'] as unknown[])
  expect(embedded).toHaveLength(table('deployments').size)
})

test('issuer listings and venue listings mirror each other', () => {
  const state = registryStateAt(demo, autumn)
  const pairs = (name: string, key: string, mirrored: boolean): string[] =>
    rows(state, name).flatMap((row) =>
      (row['listings'] as Record<string, unknown>[]).map((listing) =>
        (mirrored ? [listing[key], row['id']] : [row['id'], listing[key]]).join(' on '),
      ),
    )
  const fromIssuers = pairs('issuers', 'venue_id', false).sort()
  expect(fromIssuers.length).toBeGreaterThan(10)
  expect(pairs('venues', 'issuer_id', true).sort()).toEqual(fromIssuers)
})

test('identifiers look real: slugs, ISINs with their check digit, addresses of several forms', () => {
  expect(isinCheckDigit('US037833100')).toBe(5)
  const state = registryStateAt(demo, autumn)
  for (const [name, table] of state) {
    for (const id of table.keys()) expect(id, name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/)
  }
  const isins = [...rows(state, 'assets'), ...rows(state, 'products')]
    .map((row) => row['isin'])
    .filter((v) => v !== null)
  expect(isins.length).toBeGreaterThan(50)
  for (const isin of isins as string[]) expect(isinCheckDigit(isin.slice(0, 11))).toBe(Number(isin.at(-1)))
  const chains = new Set(rows(state, 'deployments').map((row) => row['chain_id']))
  for (const chain of ['1', 'eip155:1', 'solana', 'stellar']) expect(chains).toContain(chain)
})

test('custodian, governing law and regulator give all four kinds of answer', () => {
  const issuers = rows(registryStateAt({ seed: 11, scale: 'full' }, autumn), 'issuers')
  for (const field of ['custodian', 'governing_law', 'regulator']) {
    const values = issuers.map((issuer) => issuer[field])
    expect(values).toContain(null)
    expect(values).toContain('not disclosed')
    expect(values.some((value) => typeof value === 'string' && value.startsWith('None ('))).toBe(true)
    expect(values.some((value) => typeof value === 'string' && /^(?!not |None )/.test(value))).toBe(true)
  }
})

test('new values, new kinds and added fields appear on their dates', () => {
  const has = (table: string, field: string, value: string, when: string): boolean =>
    rows(registryStateAt(demo, at(when)), table).some((row) => row[field] === value)
  expect(has('assets', 'asset_class', 'carbon-credits', '2025-06-15')).toBe(false)
  expect(has('assets', 'asset_class', 'carbon-credits', '2025-06-17')).toBe(true)
  expect(has('venues', 'venue_type', 'otc-desk', '2025-11-02')).toBe(false)
  expect(has('venues', 'venue_type', 'otc-desk', '2025-11-04')).toBe(true)
  expect(has('products', 'status', 'suspended', '2026-02-08')).toBe(false)
  expect(has('products', 'status', 'suspended', '2026-02-10')).toBe(true)
  expect(has('deployments', 'status', 'paused', '2026-05-03')).toBe(false)
  expect(has('deployments', 'status', 'paused', '2026-05-05')).toBe(true)
  expect(count(registryStateAt(demo, at('2025-02-09')), 'committees')).toBe(0)
  expect(count(registryStateAt(demo, at('2025-02-11')), 'committees')).toBeGreaterThan(0)
  expect(addedFields('product', at('2025-03-02'))).toEqual([])
  for (const row of rows(registryStateAt(demo, at('2025-03-02')), 'products'))
    expect(row).not.toHaveProperty('share_class')
  for (const row of rows(registryStateAt(demo, at('2025-03-03')), 'products')) expect(row).toHaveProperty('share_class')
})

test('a removed id never comes back, a removed product leaves no deployment, retired ones stay', () => {
  const removed = new Set<string>()
  let before: State | undefined
  for (let month = 0; month < 33; month++) {
    const state = registryStateAt(demo, Date.UTC(2024, month, 15) / 1000)
    for (const table of ['products', 'deployments']) {
      for (const id of before?.get(table)?.keys() ?? []) if (!state.get(table)?.has(id)) removed.add(`${table}/${id}`)
      for (const id of state.get(table)?.keys() ?? []) expect(removed).not.toContain(`${table}/${id}`)
    }
    before = state
  }
  expect([...removed].filter((key) => key.startsWith('products/')).length).toBeGreaterThan(0)
  expect(rows(registryStateAt(demo, autumn), 'products').some((row) => row['status'] === 'inactive')).toBe(true)
})

test('an address is never edited in place', () => {
  const early = registryStateAt(demo, at('2024-06-01'))
  const late = registryStateAt(demo, autumn)
  let compared = 0
  for (const [id, deployment] of early.get('deployments') ?? []) {
    const now = late.get('deployments')?.get(id)
    if (!now) continue
    compared++
    expect([now['address'], now['chain_id']]).toEqual([deployment['address'], deployment['chain_id']])
  }
  expect(compared).toBeGreaterThan(300)
})

test('products lead to metric assets by address, by symbol alone, and by a symbol of two issuers', () => {
  const state = registryStateAt(demo, autumn)
  const key = (chain: unknown, address: unknown): string =>
    `${String(chain).replace('eip155:', '')}/${String(address).toLowerCase()}`
  const contracts = new Set(rows(state, 'deployments').map((row) => key(row['chain_id'], row['address'])))
  const products = rows(state, 'products')
  const ways = new Set<string>()
  for (const asset of worldAssets.filter(({ address }) => address !== undefined)) {
    const byAddress = contracts.has(key(asset.chain_id, asset.address))
    const issuers = new Set(products.filter((row) => row['symbol'] === asset.symbol).map((row) => row['issuer_id']))
    ways.add(`${byAddress ? 'address' : 'no address'}, ${Math.min(issuers.size, 2)} issuers`)
  }
  for (const way of ['address, 1 issuers', 'address, 0 issuers', 'no address, 1 issuers', 'no address, 2 issuers']) {
    expect(ways).toContain(way)
  }
})
