import type { Interval } from '../../../src/base/time.ts'
import type { LakeCommit, PointRow } from './lake-recipe.ts'

// The lake that every case of test/views/cases is asked: what cases need is added here, under an asset of its own.

const day = (text: string): string => (/^\d\d-/.test(text) ? `2024-${text}` : text)
const point = (asset: string, t: string, available_at: string, v: number | null, more: Partial<PointRow> = {}) => ({
  metric: 'indicators/sopr_adjusted_pit',
  asset,
  interval: '24h' as Interval,
  t: day(t),
  available_at: day(available_at),
  v,
  ...more,
})

/** Values that are objects, by the asset that bears them. */
const objects: Readonly<Record<string, string>> = {
  flat: '{"1w":0.5,"a/b":-1e-3,"c~d":null,"":9007199254740993}',
  nested: '{"x":{"y":[1,{"z":null},"text",true,[]],"e":{}},"k":-0.0}',
  list: '[3,null,[4.5,{"a.b\\"":5e-324}]]',
  deep: `${'['.repeat(63)}7${']'.repeat(63)}`,
  mixed: '{"p/q":[1,null,"[5",-2,[]],"a~b":[{"c~d":[3,[4]]},{"c~d":5}],"s":"{","n":null,"o":{"x/y":6}}',
  listed: '[[1,2],["[",null,7],{"k":[8]},"{",9]',
  same: '{"a":1,"a":2}',
  empty: '{}',
}

const supply = (currency: string, t: string, v: number | null, available_at: string): PointRow =>
  point('BTC', t, available_at, v, {
    metric: 'supply/current_pit',
    currency,
    basis: currency === 'usd' ? 'stated' : 'provider',
  })

/** Points of which only the places in time matter. */
const shape = (asset: string, interval: Interval, ts: readonly string[]): PointRow[] =>
  ts.map((t) => point(asset, t, '06-01', 1, { metric: 'm/x', interval }))

const values: PointRow[] = [
  ...Object.entries(objects).map(([asset, o]) => point(asset, '03-01', '06-01', null, { metric: 'm/o', o })),
  supply('usd', '03-01', 100, '03-02 00:10'),
  supply('native', '03-01', 4, '03-02 00:20'),
  supply('usd', '03-02', 100, '03-03 00:10'),
  supply('native', '03-02', 0, '03-03 00:05'),
  supply('usd', '03-03', null, '03-04 00:10'),
  supply('native', '03-03', 4, '03-04 00:05'),
  supply('usd', '03-04', 5, '03-05 00:10'),
  ...shape('spring', '24h', ['03-09', '03-10', '03-11']),
  ...shape('autumn', '24h', ['11-02', '11-03', '11-04']),
  ...shape('hours', '1h', ['2024-01-31T23:00', '2024-02-01T02:00']),
  ...shape('weeks', '1w', ['2023-12-25', '2024-01-01', '2024-01-15']),
  ...shape('months', '1month', ['2023-11-01', '2024-02-01', '2024-03-01']),
  ...['usd', null].map((currency) => point('dims', '03-01', '06-01', 1, { metric: 'm/x', currency })),
]

/** An hour of each mixture of dimensions, told by its value. */
const dimensions: PointRow[] = [
  ['usd', 'a', 'eth'],
  ['native', 'a', 'eth'],
  ['usd', 'b', 'eth'],
  ['usd', 'a', 'sol'],
  [null, null, null],
  ['usd', 'a', null],
  [null, 'a', 'eth'],
  ['usd', null, 'eth'],
].map(([currency = null, exchange = null, network = null], n) =>
  point('DIMS', '03-01', '06-01', 2 ** n, { metric: 'm/dims', interval: '1h', currency, exchange, network }),
)

/** Supplies that another network or exchange must not be divided by. */
const supplies: PointRow[] = [
  ['usd', 'eth', 'a', 10],
  ['native', 'eth', 'a', 2],
  ['usd', 'sol', 'a', 9],
  ['native', 'sol', 'a', 3],
  ['usd', 'eth', 'b', 14],
  ['native', 'eth', 'b', 2],
].map(([currency, network, exchange, v]) =>
  point('PLACES', '03-01', '06-01', Number(v), {
    metric: 'supply/current_pit',
    currency: String(currency),
    network: String(network),
    exchange: String(exchange),
  }),
)

/** A supply of which the lake had one half before the other. */
const half = (currency: string, t: string, v: number): PointRow =>
  point('HALVES', t, '06-01', v, { metric: 'supply/current_pit', currency })

const hours = Array.from({ length: 24 }, (_, h) => String(h).padStart(2, '0'))

/** What joins are asked. */
const joined: PointRow[] = [
  point('TWO', '03-01', '03-02 00:10', 100),
  point('TWO', '03-02', '03-03 00:10', 200),
  point('NULLS', '03-02', '03-03 00:10', 200),
  point('NULLS', '03-03', '03-04 00:10', null),
  point('LATE', '03-01', '03-05', 100),
  point('LATE', '03-02', '03-03 00:10', 200),
  point('MIX', '02-29', '03-01', 29),
  point('MIX', '03-01', '03-02', 1),
  point('MIX', '2024-03-01T22:00', '03-01 23:00', 22, { interval: '1h' }),
  point('MIX', '2024-03-01T23:00', '03-02', 23, { interval: '1h' }),
  point('BACK', '2020-01-01', '2023-06-01', 7, { available_rule_at: '2020-01-02T00:30:00Z' }),
  ...hours.flatMap((h) => [
    point('PARTS', `2024-03-01T${h}:00`, h === '07' ? '03-09' : `03-02 00:${h}`, 1, { interval: '1h' }),
    ...(h === '05' ? [] : [point('PARTS', `2024-03-02T${h}:00`, `03-03 00:${h}`, 1, { interval: '1h' })]),
  ]),
]

/** A day of hours, of which the lake had the later half first; its values are the hours. */
const turned = (from: number, to: number): PointRow[] =>
  hours
    .slice(from, to)
    .map((h) => point('TURNED', `2024-03-01T${h}:00`, `03-02 00:${h}`, Number(h), { interval: '1h' }))

const row = { inferred: false, closed_by: null, record: '{}', op: 'updated' }
const record = (id: string, more: object): Readonly<Record<string, unknown>> => ({ ...row, id, ...more })
const first = { op: 'snapshot', status: 'active' }

const layer = (layer: string, id: string, more: object = {}): Readonly<Record<string, unknown>> => ({
  layer,
  entity: id,
  id,
  removed: false,
  record: '{}',
  ...more,
})
const snapshotOf = (snapshot_date: string, base: string, delta: string | null) => ({
  snapshot_date,
  resource: 'venues',
  base,
  delta,
  as_of: `${base} ${delta}`,
  source: 'snapshot',
  rows: 2,
})
const event = (position: number, entity_id: string) => ({
  position,
  entity_type: 'product',
  resource: 'products',
  entity_id,
  op: 'updated',
  event: '{}',
})
const seenKey = (path: string, initial: boolean) => ({ resource: 'products', path, initial })
const finding = (id: string) => ({ kind: 'again', resource: 'products', id, detail: id })

/** A product that retires, one that is removed, one that gives its symbol away, a corrected address. */
const registry: LakeCommit[] = [
  {
    at: '2024-11-01T06:00:00Z',
    tables: {
      snapshots: [
        // Rows of a file stand in no order that anybody relies on: a later one before the first.
        { snapshot_date: '2024-12-01', resource: 'assets', base: 'late', rows: 0, observed_at: '2024-12-01T00:00:00Z' },
        { snapshot_date: '2024-11-01', resource: 'products', base: 'b', rows: 3 },
        snapshotOf('2024-11-01', 'b1', null),
      ],
      'venues@2024-11-01': [layer('b1', 'v1', { name: 'One' }), layer('b1', 'v2', { name: 'Two' })],
      schema_changes: [seenKey('$.id', true), seenKey('$.both', true)],
      // Merged with its successor: the step says since when that one stands in for it.
      'history.assets': [record('merged', { ...first, ticker: 'OLD', superseded_at: '2024-11-10T09:00:00Z' })],
      'history.products': [
        record('retires', { ...first, symbol: 'R' }),
        record('goes', { ...first, symbol: 'G' }),
        record('before', { ...first, symbol: 'SAME', issuer_id: 'i1', asset_id: 'merged' }),
      ],
      metric_assets: [
        { id: 'CARRIED', symbol: null, addresses: '[{"chain_id":"eip155:1","address":"0x9"}]', record: '{}' },
        { id: 'TAKEN', symbol: 'SAME', addresses: null, record: '{}' },
      ],
      'history.deployments': [
        record('old', { ...first, product_id: 'retires', address: '0x1' }),
        record('long', { ...first, product_id: 'retires', chain_id: '1', address: '0x9' }),
      ],
    },
  },
  {
    at: '2024-11-10T09:00:00Z',
    tables: {
      // A second contract of the same address, that comes and goes while the first is there.
      'history.deployments': [record('short', { op: 'created', product_id: 'retires', chain_id: '1', address: '0x9' })],
      events: [event(1, 'retires')],
      schema_changes: [seenKey('$.late', false), seenKey('$.both', false)],
      registry_findings: [finding('retires')],
      'history.assets': [record('merged', { ticker: 'NEW' })],
      'history.issuers': [record('i1', { op: 'created', name: 'Late' })],
      'history.products': [record('retires', { symbol: 'R', status: 'inactive' })],
    },
  },
  {
    at: '2024-11-12T10:00:00Z',
    tables: {
      'history.deployments': [record('short', { op: null, closed_by: 'deleted', record: null })],
      events: [event(1, 'goes'), event(2, 'goes')],
      schema_changes: [seenKey('$.late', false)],
      registry_findings: [finding('goes')],
      snapshots: [snapshotOf('2024-11-12', 'b2', null)],
      'venues@2024-11-12': [layer('b2', 'v1', { name: 'Uno' }), layer('b2', 'v2', { name: 'Due' })],
      'history.products': [record('goes', { op: null, closed_by: 'deleted', record: null })],
    },
  },
  {
    at: '2024-11-12T20:00:00Z',
    tables: {
      snapshots: [snapshotOf('2024-11-12', 'b2', 'd2')],
      'venues@2024-11-12': [
        layer('d2', 'v1', { name: 'Ein' }),
        layer('d2', 'v2', { removed: true, id: null }),
        layer('d2', 'v3', { name: 'Drei' }),
      ],
    },
  },
  {
    at: '2024-11-20T00:00:00Z',
    tables: {
      'history.products': [
        record('before', { symbol: 'OTHER', issuer_id: 'i1', status: 'active' }),
        record('after', { op: 'created', symbol: 'SAME', issuer_id: 'i2', status: 'active' }),
      ],
      'history.deployments': [
        record('old', { product_id: 'retires', address: '0x1', status: 'inactive' }),
        record('long', { op: null, closed_by: 'deleted', record: null }),
        record('new', { op: 'created', product_id: 'retires', address: '0x2', status: 'active' }),
      ],
    },
  },
]

/** The commits of the lake of the cases, in their order. */
export const viewCaseCommits: readonly LakeCommit[] = [
  {
    at: '2024-07-01',
    points: [
      ...values,
      ...dimensions,
      ...supplies,
      half('usd', '03-01', 6),
      half('native', '03-02', 2),
      ...turned(12, 24),
    ],
  },
  ...registry,
  {
    at: '2030-01-01T00:00:00Z',
    points: [...joined, half('native', '03-01', 2), half('usd', '03-02', 8), ...turned(0, 12)],
  },
  { at: '2030-02-01T00:00:00Z', points: [point('SEEN', '03-01', '03-02 00:10', 1)] },
]
