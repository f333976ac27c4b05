import { catalogue } from '../helpers/sandbox-client.ts'
import type { Question } from './question.ts'

const supply = 'supply/current_pit'
const sopr = 'indicators/sopr_adjusted_pit'
const objects = 'indicators/cost_basis_distribution_quantiles_pit'
const at = (text: string): string => `2024-${text.replace(' ', 'T')}:00.000000Z`
/** Two days about BTC and ETH. */
const grid = { calendar: { since: '2024-03-03', until: '2024-03-05', step: '1d' }, assets: ['BTC', 'ETH'] }
const late = { decisions: [{ asset: 'BTC', ts: '2024-03-07T00:30:00Z' }], metrics: { v: supply } }
/** One decision about BTC. */
const one = { decisions: [{ asset: 'BTC', ts: '2024-03-04T00:30:00Z' }] }
const told = (v: unknown) => [{ asset: 'BTC', ts: at('03-04 00:30'), v: v as number }]
const asked = { ...one, metrics: { v: supply } }

/** Panels, joins and others that are answered. */
export const panelQuestions: Readonly<Record<string, Question>> = {
  'a grid': {
    ask: { panel: { ...grid, metrics: [supply, sopr] } },
    rows: [
      { asset: 'BTC', ts: at('03-03 00:00'), [supply]: 1, [sopr]: 1.5 },
      { asset: 'ETH', ts: at('03-03 00:00'), [supply]: 10, [sopr]: null },
      { asset: 'BTC', ts: at('03-04 00:00'), [supply]: 2, [sopr]: 2.5 },
      { asset: 'ETH', ts: at('03-04 00:00'), [supply]: 10, [sopr]: null },
    ],
    notes: [['no-asset', sopr, `nothing is held of '${sopr}' for asset 'ETH'; there is 'BTC'`]],
  },
  'decisions with a field of their own': {
    ask: {
      panel: {
        decisions: [
          { asset: 'ETH', ts: '2024-03-06T12:00:00Z', why: 'late' },
          { asset: 'BTC', ts: '2024-03-04T00:29:59Z', why: 'early' },
        ],
        metrics: { s: supply },
      },
    },
    rows: [
      { asset: 'ETH', ts: at('03-06 12:00'), why: 'late', s: 50 },
      { asset: 'BTC', ts: '2024-03-04T00:29:59.000000Z', why: 'early', s: 2 },
    ],
  },
  'several fields of a point': {
    ask: { panel: { ...asked, fields: ['v', 't', 'age'] } },
    rows: [{ asset: 'BTC', ts: at('03-04 00:30'), v: 3, 'v.t': at('03-03 00:00'), 'v.age': '00:30:00' }],
  },
  'time to act, and an age': {
    ask: { panel: { ...asked, latency: '1m', max_age: '2d', currency: 'usd' } },
    rows: told(200),
  },
  'no time to act': { ask: { panel: { ...asked, latency: 0 } }, rows: told(3) },
  'a time in words': { ask: { panel: { ...asked, latency: '2 minutes' } }, rows: told(2) },
  'too old': { ask: { panel: { ...asked, latency: '1m', max_age: '1d' } }, rows: told(null) },
  'a part': { ask: { panel: { ...one, metrics: { v: objects }, component: '/a/b' } }, rows: told(30) },
  'a part by a pointer': { ask: { panel: { ...one, metrics: { v: `${objects}#/a/b` } } }, rows: told(30) },
  nulls: {
    ask: { panel: { decisions: [{ asset: 'BTC', ts: '2024-03-06T00:30:00Z' }], metrics: { v: sopr } } },
    rows: [{ asset: 'BTC', ts: at('03-06 00:30'), v: null }],
  },
  'nulls skipped': {
    ask: {
      panel: { decisions: [{ asset: 'BTC', ts: '2024-03-06T00:30:00Z' }], metrics: { v: sopr }, skip_nulls: true },
    },
    rows: [{ asset: 'BTC', ts: at('03-06 00:30'), v: 4.5 }],
  },
  'a panel as it was known': {
    ask: { panel: { ...late, decisions: [{ asset: 'BTC', ts: '2024-03-05T00:30:00Z' }] } },
    knowledge: { as_of: '2024-03-04T00:30:00Z' },
    rows: [{ asset: 'BTC', ts: at('03-05 00:30'), v: 3 }],
    notes: [
      [
        'beyond-settled',
        supply,
        `decisions later than what is settled of '${supply}' get its newest value: 1, from 2024-03-05T00:30:00Z on; {option beyond=null}, in SQL \`beyond := 'null'\`, gives NULL`,
      ],
    ],
  },
  'a panel under the rule': {
    ask: { panel: { ...one, metrics: { v: 'indicators/cvdd_pit' } } },
    knowledge: { backfill: 'rule' },
    rows: told(3),
  },
  'a universe': {
    ask: {
      panel: {
        calendar: { since: '2024-03-04', until: '2024-03-05', step: '1d' },
        universe: "product_id IN ('p0', 'p1')",
        metrics: { v: supply },
      },
    },
    only: ['ts', 'asset', 'product_id', 'v'],
    rows: [
      { ts: at('03-04 00:00'), asset: 'BTC', product_id: 'p0', v: 2 },
      { ts: at('03-04 00:00'), asset: 'ETH', product_id: 'p1', v: 10 },
    ],
  },
  'a universe before it was known': {
    ask: {
      panel: {
        calendar: { since: '2024-01-02', until: '2024-01-03', step: '1d' },
        universe: "product_id = 'p5'",
        metrics: { v: supply },
      },
    },
    knowledge: { registry_backfill: true },
    only: ['ts', 'asset', 'product_id', 'assumed'],
    rows: [{ ts: at('01-02 00:00'), asset: null, product_id: 'p5', assumed: true }],
  },
  'a join': {
    ask: { join: { ...one, metric: supply } },
    rows: [
      {
        asset: 'BTC',
        ts: at('03-04 00:30'),
        t: at('03-03 00:00'),
        available_at: at('03-04 00:30'),
        v: 3,
        o: null,
        age: '00:30:00',
      },
    ],
  },
  'a window': {
    ask: { join: { ...one, metric: supply, n: 2 } },
    only: ['t', 'v', 'place'],
    rows: [
      { t: at('03-03 00:00'), v: 3, place: 1 },
      { t: at('03-02 00:00'), v: 2, place: 2 },
    ],
  },
  points: {
    ask: { points: { metrics: supply, assets: 'BTC', since: '2024-03-04' } },
    only: ['t', 'currency', 'v'],
    rows: [
      { t: at('03-04 00:00'), currency: 'native', v: 4 },
      { t: at('03-05 00:00'), currency: 'native', v: 5 },
    ],
  },
  'a calendar': {
    ask: { calendar: { since: '2024-01-31', until: '2024-04-01', step: '1 month' } },
    rows: ['01-31', '02-29', '03-31'].map((day) => ({ ts: at(`${day} 00:00`) })),
  },
  'all of them': {
    ask: { metrics: {} },
    only: ['metric'],
    rows: [...catalogue.endpoints.keys()].toSorted().map((metric) => ({ metric })),
  },
  products: {
    ask: { universe: { ts: '2024-03-04' } },
    only: ['product_id'],
    rows: Array.from({ length: 20 }, (_, n) => `p${n}`)
      .toSorted()
      .map((product_id) => ({ product_id })),
  },
  'products under a condition': {
    ask: { universe: { ts: '2024-03-04', condition: "symbol = 'BTC'" } },
    only: ['product_id'],
    rows: [{ product_id: 'p0' }],
  },
  // What finds nothing, or too little, for a reason that is told.
  'an asset of no name': {
    ask: { panel: { ...one, decisions: [{ asset: 'btc', ts: '2024-03-04T00:30:00Z' }], metrics: { v: supply } } },
    rows: [{ asset: 'btc', ts: at('03-04 00:30'), v: null }],
    notes: [['no-asset', supply, `nothing is held of '${supply}' for asset 'btc'; did you mean 'BTC'?`]],
  },
  'an interval that is not held': {
    ask: { panel: { ...one, metrics: { v: sopr }, interval: '1h' } },
    rows: told(null),
    notes: [['no-interval', sopr, `'${sopr}' is not held at 1h; there is '24h'`]],
  },
  'a metric that was never fetched': {
    ask: { panel: { ...one, metrics: { v: 'indicators/asol_pit' } } },
    rows: told(null),
    notes: [['nothing-held', 'indicators/asol_pit', "the lake holds nothing of 'indicators/asol_pit': fetch it first"]],
  },
  'objects without a part of them': {
    ask: { panel: { ...one, metrics: { v: objects } } },
    rows: told(null),
    notes: [
      [
        'whole-object',
        objects,
        `'${objects}' holds objects or lists: ask for a part of them, such as '${objects}#/a/b'`,
      ],
    ],
  },
  'a part that there is not': {
    ask: { panel: { ...one, metrics: { v: `${objects}#/a/c` } } },
    rows: told(null),
    notes: [['no-component', objects, `'${objects}' has no part '/a/c'; did you mean '/a/b'?`]],
  },
  'a part of plain numbers': {
    ask: { panel: { ...one, metrics: { v: `${supply}#/a` } } },
    rows: told(null),
    notes: [['plain-numbers', supply, `'${supply}' holds plain numbers: ask it without #/a`]],
  },
  'decisions before the first point': {
    ask: { panel: { ...asked, decisions: [{ asset: 'BTC', ts: '2024-02-01T00:00:00Z' }] } },
    rows: [{ asset: 'BTC', ts: at('02-01 00:00'), v: null }],
    notes: [['before-first', supply, `nothing of '${supply}' was known before 2024-03-02T00:30:00Z`]],
  },
  'decisions later than what is settled': {
    ask: { panel: late },
    rows: [{ asset: 'BTC', ts: at('03-07 00:30'), v: 5 }],
    notes: [
      [
        'beyond-settled',
        supply,
        `decisions later than what is settled of '${supply}' get its newest value: 1, from 2024-03-07T00:30:00Z on; {option beyond=null}, in SQL \`beyond := 'null'\`, gives NULL`,
      ],
    ],
  },
  'decisions later than what is settled, as NULL': {
    ask: { panel: { ...late, beyond: 'null' } },
    rows: [{ asset: 'BTC', ts: at('03-07 00:30'), v: null }],
  },
  'a stitched series, of what follows nothing': {
    ask: { panel: { ...late, beyond: 'null', identity: 'stitched' } },
    rows: [{ asset: 'BTC', ts: at('03-07 00:30'), v: null }],
  },
  'first vintages, of what was never revised': {
    ask: { panel: { ...late, beyond: 'null', vintage: 'first' } },
    rows: [{ asset: 'BTC', ts: at('03-07 00:30'), v: null }],
  },
  'a universe of nobody': {
    ask: {
      panel: {
        calendar: { since: '2024-03-04', until: '2024-03-05', step: '1d' },
        universe: "status = 'gone'",
        metrics: { v: supply },
      },
    },
    rows: [],
    notes: [
      ['no-member', "status = 'gone'", "no product met {option universe} at any of the instants: status = 'gone'"],
    ],
  },
  'a join of no asset': {
    ask: { join: { decisions: [{ asset: 'BTCC', ts: '2024-03-04' }], metric: supply } },
    only: ['asset', 'v'],
    rows: [{ asset: 'BTCC', v: null }],
    notes: [['no-asset', supply, `nothing is held of '${supply}' for asset 'BTCC'; did you mean 'BTC'?`]],
  },
  'points of no asset': {
    ask: { points: { metrics: supply, assets: 'btc' } },
    rows: [],
    notes: [['no-asset', supply, `nothing is held of '${supply}' for asset 'btc'; did you mean 'BTC'?`]],
  },
  'products before they were known': {
    ask: { universe: { ts: '2020-01-01' } },
    rows: [],
    notes: [
      [
        'registry-unknown',
        'registry',
        'the registry is not known at this as_of: it is known since 2024-01-21T00:00:00Z; {option registry_backfill=true} lets its earliest state stand in',
      ],
    ],
  },
}
