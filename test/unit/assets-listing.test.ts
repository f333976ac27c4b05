import { expect, test } from 'vitest'
import { readAssets } from '../../src/sources/metrics/assets.ts'

const ids = (value: unknown): unknown => readAssets(JSON.stringify(value))?.map(({ id }) => id) ?? null

test.each([
  ['ids', ['BTC', 'ETH', 'BTC'], ['BTC', 'ETH']],
  ['numbers as ids', [1, '00'], ['1', '00']],
  ['objects', [{ id: 'a', symbol: 'A' }, { symbol: 'B' }], ['a', 'B']],
  ['under data', { data: ['x'], next: null }, ['x']],
  ['under assets', { assets: [{ id: 'x' }] }, ['x']],
  ['nothing', [], []],
  ['rows without names among others', [{ name: 'none' }, null, '', 'x', '*'], ['x']],
  ['rows without any name', [{ name: 'none' }], null],
  ['an object without a list', { error: 'no' }, null],
  ['a text', 'BTC', null],
])('a listing of %s gives the expected assets', (_, value, expected) => expect(ids(value)).toEqual(expected))

test('text that is no JSON is no listing', () => {
  expect(readAssets('<html>')).toBeNull()
  expect(readAssets('')).toBeNull()
})

test.each([
  [{ chain_id: '1', address: '0xa' }, [{ chain_id: '1', address: '0xa' }]],
  [{ chain_id: 1, address: '0xa' }, [{ chain_id: '1', address: '0xa' }]],
  [{ addresses: [{ chain: 'solana', address: 'S' }, { chain: 'x' }] }, [{ chain_id: 'solana', address: 'S' }]],
  [
    { platforms: { 'eip155:1': '0xa', '8453': { address: '0xb' } } },
    [
      { chain_id: '8453', address: '0xb' },
      { chain_id: 'eip155:1', address: '0xa' },
    ],
  ],
  [
    {
      blockchains: [
        { blockchain: 'ETH', address: '0xa', decimals: 18 },
        { blockchain: 'xyz', address: 'Y' },
      ],
    },
    [
      { chain_id: 'eip155:1', address: '0xa' },
      { chain_id: 'xyz', address: 'Y' },
    ],
  ],
  [{ address: '0xa' }, null],
  [{}, null],
])('contracts of an asset are read from %j', (row, expected) => {
  const [asset] = readAssets(JSON.stringify([{ id: 'x', ...row }]), new Map([['eth', 'eip155:1']])) ?? []
  expect(asset?.addresses).toEqual(expected)
  expect(asset?.record).toEqual({ id: 'x', ...row })
})
