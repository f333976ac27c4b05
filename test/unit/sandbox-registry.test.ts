import { describe, expect, test } from 'vitest'
import type { answerRegistry } from '../../src/sandbox/registry/handler.ts'
import { tables } from '../../src/sandbox/registry/state.ts'
import { day } from '../../src/base/time.ts'
import { type Json, ask, autumn, body, env, refused } from './sandbox-registry-ask.ts'
import { registryStateAt } from '../helpers/registry-truth.ts'

async function listAll(table: string, from: Parameters<typeof answerRegistry>[1], query = ''): Promise<Json[]> {
  const all: Json[] = []
  for (let cursor: string | null | undefined, pages = 0; cursor !== null && pages < 1000; pages++) {
    const page = await body(`/${table}?${query}${cursor === undefined ? '' : `&cursor=${cursor}`}`, from)
    expect(page['has_more']).toBe(page['next_cursor'] !== null)
    all.push(...page['data'])
    cursor = page['next_cursor']
  }
  return all
}

describe('lists', () => {
  test.each(Object.keys(tables))('%s: pages of any size give every id once, in order', async (table) => {
    const from = env(autumn)
    const truth = [...(registryStateAt(from, autumn).get(table)?.values() ?? [])]
    const published = truth.filter((row) => table !== 'deployments' || row['verification_status'] === 'verified')
    for (const limit of [7, 100, 500]) {
      const records = await listAll(table, from, `limit=${limit}`)
      expect(records).toEqual(published)
      expect(records.map(({ id }) => id as string)).toEqual(records.map(({ id }) => id as string).toSorted())
    }
  })

  test('the default page holds 100 and its cursor is the last id', async () => {
    const page = await body('/products', env(autumn))
    expect(Object.keys(page)).toEqual(['data', 'next_cursor', 'has_more', 'as_of'])
    expect(page['data']).toHaveLength(100)
    expect(page['next_cursor']).toBe(page['data'][99].id)
    expect(page['as_of']).toBe('2026-10-20T12:00:00Z')
  })

  test('a page starts after its cursor even when that record has been removed meanwhile', async () => {
    const [first] = await listAll('products', env(autumn))
    const page = await body(`/products?limit=3&cursor=${first?.['id']}-gone`, env(autumn))
    expect(page['data'][0].id > first?.['id']).toBe(true)
  })

  test('filters match exactly, without case where the document says so, and combine', async () => {
    const from = env(autumn)
    const state = registryStateAt(from, autumn)
    const all = (table: string): Json[] => [...(state.get(table)?.values() ?? [])]
    const product = all('products').find((row) => row['isin'] !== null && /[a-z]/.test(row['symbol'])) as Json
    const asset = all('assets').find((row) => row['isin'] !== null && row['ticker'] !== null) as Json
    const perpetual = all('derivatives')[0] as Json
    const { id, issuer_id, asset_id, symbol, isin, status } = product
    const verified = { verification_status: 'verified' }
    const rows: readonly (readonly [table: string, query: string, members: Json])[] = [
      ['issuers', 'jurisdiction=CH', { jurisdiction: 'CH' }],
      ['issuers', 'status=active', { status: 'active' }],
      ['issuers', 'custodian=not+disclosed', { custodian: 'not disclosed' }],
      ['assets', 'asset_class=stocks', { asset_class: 'stocks' }],
      ['assets', `ticker=${asset['ticker'].toLowerCase()}`, { ticker: asset['ticker'] }],
      ['assets', `isin=${asset['isin'].toLowerCase()}`, { isin: asset['isin'] }],
      ['products', `issuer=${issuer_id}`, { issuer_id }],
      ['products', `asset=${asset_id}`, { asset_id }],
      ['products', `symbol=${symbol.toUpperCase()}`, { symbol }],
      ['products', `isin=${isin.toLowerCase()}`, { isin }],
      ['products', `issuer=${issuer_id}&status=${status}`, { issuer_id, status }],
      ['venues', 'venue_type=cex', { venue_type: 'cex' }],
      ['deployments', 'chain=eip155:1', { chain_id: 'eip155:1', ...verified }],
      ['deployments', 'status=deprecated&chain=1', { status: 'deprecated', chain_id: '1', ...verified }],
      ['deployments', `product=${id}`, { product_id: id, ...verified }],
      ['derivatives', `symbol=${perpetual['symbol'].toLowerCase()}`, { symbol: perpetual['symbol'] }],
    ]
    for (const [table, query, members] of rows) {
      const wanted = all(table).filter((row) => Object.entries(members).every(([key, value]) => row[key] === value))
      expect(wanted.length, query).toBeGreaterThan(0)
      expect(await listAll(table, from, query), query).toEqual(wanted)
    }
    expect(await listAll('deployments', from, 'verification_status=unverified')).toEqual([])
    expect(await listAll('issuers', from, 'custodian=NOT+DISCLOSED')).toEqual([])
  })

  test('0x addresses match in any case, all others exactly', async () => {
    const from = env(autumn)
    const rows = (await listAll('deployments', from)).map((row) => row['address'] as string)
    const hex = rows.find((address) => /^0x.*[A-F]/.test(address)) as string
    const mint = rows.find((address) => !address.startsWith('0x') && address !== address.toLowerCase()) as string
    expect(await listAll('deployments', from, `address=0x${hex.slice(2).toLowerCase()}`)).toHaveLength(1)
    expect(await listAll('deployments', from, `address=${mint}`)).toHaveLength(1)
    expect(await listAll('deployments', from, `address=${mint.toLowerCase()}`)).toEqual([])
  })

  test('an entity tag spares the body until the content changes', async () => {
    const first = ask('/products?limit=20', env(autumn))
    const etag = first.headers.get('etag') as string
    const again = ask('/products?limit=20', env(autumn + 3600), { 'if-none-match': `"other", W/${etag}` })
    expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, ''])
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(ask('/products?limit=21', env(autumn), { 'if-none-match': etag }).status).toBe(200)
    expect(ask('/products?limit=500', env(autumn + 60 * day), { 'if-none-match': etag }).status).toBe(200)
  })

  test('every answer says who gave it, when, and that it is private', () => {
    const { headers } = ask('/venues', env(autumn))
    expect(headers.get('cache-control')).toBe('private, no-store')
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers.get('content-type')).toContain('application/json')
  })
})

describe('details', () => {
  test.each(['issuers', 'assets', 'products', 'deployments', 'venues'])(
    'a record of %s is found by its id',
    async (table) => {
      const truth = [...(registryStateAt(env(autumn), autumn).get(table)?.values() ?? [])]
      expect(truth.length).toBeGreaterThan(4)
      for (const record of truth.slice(0, 5)) {
        const answer = await body(`/${table}/${record['id'] as string}`, env(autumn))
        expect(answer).toEqual({ data: record, as_of: '2026-10-20T12:00:00Z' })
      }
      const response = ask(`/${table}/${truth[0]?.['id'] as string}`, env(autumn))
      const etag = response.headers.get('etag') as string
      expect(ask(`/${table}/${truth[0]?.['id'] as string}`, env(autumn), { 'if-none-match': etag }).status).toBe(304)
    },
  )

  test('derivatives, unknown ids and unknown paths have no details', async () => {
    const from = env(autumn)
    const [perpetual] = await listAll('derivatives', from)
    for (const path of [
      `/derivatives/${perpetual?.['id']}`,
      '/issuers/nobody',
      '/issuers/%E0%A4%A',
      '/tokens',
      '/',
      '/issuers/a/b',
    ]) {
      expect(await refused(path, from), path).toEqual([404, 'not_found'])
    }
  })
})

describe('refusals', () => {
  test.each([
    ['/products?colour=red', 'invalid_parameter'],
    ['/products?status=active&status=active', 'invalid_parameter'],
    ['/products?status=gone', 'invalid_parameter'],
    ['/products?chain=1', 'invalid_parameter'],
    ['/products?symbol=', 'invalid_parameter'],
    ['/issuers?jurisdiction=Switzerland', 'invalid_parameter'],
    ['/assets?asset_class=art', 'invalid_parameter'],
    ['/venues?venue_type=bank', 'invalid_parameter'],
    ['/deployments?verification_status=maybe', 'invalid_parameter'],
    ['/products?limit=0', 'invalid_parameter'],
    ['/products?limit=501', 'invalid_parameter'],
    ['/products?limit=ten', 'invalid_parameter'],
    ['/snapshot?limit=5', 'invalid_parameter'],
    ['/changes', 'invalid_parameter'],
    ['/changes?since=x&colour=red', 'invalid_parameter'],
    ['/changes?since=x&limit=501', 'invalid_parameter'],
    ['/changes/head?since=x', 'invalid_parameter'],
    ['/products?cursor=Not%20an%20id', 'invalid_cursor'],
    ['/changes?since=nonsense', 'invalid_cursor'],
  ])('%s: %s', async (path, code) => expect(await refused(path, env(autumn))).toEqual([400, code]))

  test('keys: missing, malformed, unknown, in the address', async () => {
    const from = env(autumn)
    for (const authorization of ['', 'Bearer', 'good', 'Basic good', 'Bearer bad', 'Bearer good x']) {
      expect(await refused('/venues', from, { authorization }), authorization).toEqual([401, 'unauthorized'])
    }
    for (const query of ['api_key=good', 'key=other', 'x=good']) {
      expect(await refused(`/venues?${query}`, from), query).toEqual([401, 'unauthorized'])
    }
  })

  test('the registry refuses methods other than GET', () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'HEAD'])
      expect(ask('/venues', env(autumn), {}, method).status).toBe(405)
  })
})
