import type { Question } from './question.ts'

const supply = 'supply/current_pit'
const sopr = 'indicators/sopr_adjusted_pit'
/** Decisions about BTC at these instants. */
const about = (...instants: readonly string[]): string =>
  `WITH d AS (SELECT 'BTC' AS asset, CAST(unnest(['${instants.join("', '")}']) AS TIMESTAMPTZ) AS ts)`
const joined = (metric: string, rest = ''): string =>
  `${about('2024-03-04 00:30:00+00')} SELECT ts, v FROM pit_join('d', '${metric}', '24h'${rest})`
const values = (where: string): string =>
  `SELECT t, v FROM points WHERE metric = '${supply}' AND currency = 'native' AND ${where} ORDER BY t`
const at = (text: string): string => `2024-${text.replace(' ', 'T')}:00.000000Z`

/** Questions in SQL that are answered. */
export const sqlQuestions: Readonly<Record<string, Question>> = {
  'points of a metric': {
    ask: { sql: values("asset = 'BTC' AND t < '2024-03-03'") },
    rows: [
      { t: at('03-01 00:00'), v: 1 },
      { t: at('03-02 00:00'), v: 2 },
    ],
  },
  'points as they were known': {
    ask: { sql: values("asset = 'ETH'") },
    knowledge: { as_of: '2024-03-04T00:30:00Z' },
    rows: [
      { t: at('03-01 00:00'), v: 10 },
      { t: at('03-03 00:00'), v: 30 },
    ],
  },
  'points as this lake held them': {
    ask: { sql: `SELECT count(*) AS n, max(t) AS last FROM points WHERE metric = '${sopr}'` },
    knowledge: { observed_as_of: '2024-04-15' },
    rows: [{ n: 4, last: at('03-04 00:00') }],
  },
  'backfilled points are not known': {
    ask: { sql: "SELECT count(*) AS n FROM points WHERE metric = 'indicators/cvdd_pit'" },
    knowledge: { as_of: '2024-05-01' },
    rows: [{ n: 0 }],
    notes: [
      ['before-first', 'indicators/cvdd_pit', "nothing of 'indicators/cvdd_pit' was known before 2024-06-01T00:00:00Z"],
    ],
  },
  'a calendar that ends before it begins': {
    ask: { sql: "SELECT ts FROM calendar('2024-03-05', DATE '2024-03-01', '1 day')" },
    rows: [],
    notes: [
      [
        'reversed-calendar',
        'calendar',
        'calendar from 2024-03-05 until 2024-03-01 holds no instants: the two are reversed',
      ],
    ],
  },
  'unless the rule stands in': {
    ask: {
      sql: "SELECT sum(v) AS v, min(available_at) AS first, any_value(basis) AS basis FROM points WHERE metric = 'indicators/cvdd_pit'",
    },
    knowledge: { as_of: '2024-05-01', backfill: 'rule' },
    rows: [{ v: 15, first: at('03-02 00:30'), basis: 'backfilled' }],
  },
  'a join': {
    ask: {
      sql: `${about('2024-03-04 00:29:00+00', '2024-03-04 00:30:00+00')} SELECT ts, t, v, age FROM pit_join('d', '${supply}', '24h') ORDER BY ts`,
    },
    rows: [
      { ts: at('03-04 00:29'), t: at('03-02 00:00'), v: 2, age: '24:29:00' },
      { ts: at('03-04 00:30'), t: at('03-03 00:00'), v: 3, age: '00:30:00' },
    ],
  },
  'a join by name, in dollars, with time to act': {
    ask: { sql: joined(supply, ", currency := 'usd', latency := '1m'") },
    rows: [{ ts: at('03-04 00:30'), v: 200 }],
  },
  'a metric that is null': { ask: { sql: joined('indicators/aviv_pit') }, rows: [{ ts: at('03-04 00:30'), v: null }] },
  prices: {
    ask: { sql: "SELECT t, v FROM price_usd WHERE asset = 'BTC' AND t < '2024-03-02'" },
    rows: [{ t: at('03-01 00:00'), v: 100 }],
  },
  'a part of nested values': {
    ask: { sql: "SELECT component, v FROM components WHERE component = '/a/b' AND t = '2024-03-02'" },
    rows: [{ component: '/a/b', v: 20 }],
  },
  'products at an instant': {
    ask: { sql: "SELECT count(*) AS n FROM universe WHERE status = 'active'" },
    knowledge: { as_of: '2024-03-04' },
    rows: [{ n: 20 }],
  },
  'products before they were known': {
    ask: {
      sql: "WITH d AS (SELECT TIMESTAMPTZ '2024-01-02 00:00:00+00' AS ts) SELECT count(*) AS n, bool_and(assumed) AS assumed FROM pit_universe('d')",
    },
    knowledge: { registry_backfill: true },
    rows: [{ n: 20, assumed: true }],
  },
  'values of many types': {
    ask: {
      sql: `SELECT 9007199254740993 AS big, 7 AS small, 0.1 + 0.2::DOUBLE AS odd, 'a"b' AS text, true AS yes, NULL AS nothing,
        [1, NULL] AS list, {'a': 'x', 'b': [2]} AS part`,
    },
    rows: [
      {
        big: '9007199254740993',
        small: 7,
        odd: 0.1 + 0.2,
        text: 'a"b',
        yes: true,
        nothing: null,
        list: [1, null],
        part: { a: 'x', b: [2] },
      },
    ],
  },
  'a microsecond': {
    ask: { sql: `SELECT TIMESTAMPTZ '2024-03-01 00:00:00.000001+00' AS "at"` },
    rows: [{ at: '2024-03-01T00:00:00.000001Z' }],
  },
  'an end that is open': {
    ask: { sql: "SELECT id, valid_to FROM history.products WHERE id = 'p1'" },
    rows: [{ id: 'p1', valid_to: 'infinity' }],
  },
  'no row, and nothing wrong': { ask: { sql: values("asset = 'BTC' AND v > 1e9") }, rows: [] },
  'the last of two statements': { ask: { sql: 'SELECT 1 AS a; SELECT 2 AS a' }, rows: [{ a: 2 }] },
  // What finds nothing, or too little, for a reason that is told.
  'a metric of no name': {
    ask: { sql: "FROM points WHERE metric = 'supply/curent_pit'" },
    rows: [],
    notes: [
      [
        'unknown-metric',
        'supply/curent_pit',
        "unknown metric 'supply/curent_pit'; did you mean 'supply/current_pit' or 'supply/current_adjusted_pit'?",
      ],
    ],
  },
  'an asset in small letters': {
    ask: { sql: values("asset = 'btc'") },
    rows: [],
    notes: [['no-asset', supply, `nothing is held of '${supply}' for asset 'btc'; did you mean 'BTC'?`]],
  },
  'an asset that there is not, counted': {
    ask: { sql: `SELECT count(*) AS n FROM points WHERE metric = '${supply}' AND asset = 'BTCC'` },
    rows: [{ n: 0 }],
    notes: [['no-asset', supply, `nothing is held of '${supply}' for asset 'BTCC'; did you mean 'BTC'?`]],
  },
  'the mean of a currency that there is not': {
    ask: { sql: `SELECT avg(v) AS v FROM points WHERE metric = '${supply}' AND currency = 'usdd'` },
    rows: [{ v: null }],
    notes: [['no-dimension', supply, `nothing is held of '${supply}' with currency 'usdd'; did you mean 'usd'?`]],
  },
  'an interval that is not held': {
    ask: { sql: `${about('2024-03-04 00:30:00+00')} SELECT ts, v FROM pit_join('d', '${sopr}', '1h')` },
    rows: [{ ts: at('03-04 00:30'), v: null }],
    notes: [['no-interval', sopr, `'${sopr}' is not held at 1h; there is '24h'`]],
  },
  'a metric that was never fetched': {
    ask: { sql: joined('indicators/asol_pit') },
    rows: [{ ts: at('03-04 00:30'), v: null }],
    notes: [['nothing-held', 'indicators/asol_pit', "the lake holds nothing of 'indicators/asol_pit': fetch it first"]],
  },
  'objects without a part of them': {
    ask: { sql: joined('indicators/cost_basis_distribution_quantiles_pit') },
    rows: [{ ts: at('03-04 00:30'), v: null }],
    notes: [
      [
        'whole-object',
        'indicators/cost_basis_distribution_quantiles_pit',
        "'indicators/cost_basis_distribution_quantiles_pit' holds objects or lists: ask for a part of them, such as 'indicators/cost_basis_distribution_quantiles_pit#/a/b'",
      ],
    ],
  },
  'a part of plain numbers': {
    ask: { sql: joined(supply, ", component := '/a'") },
    rows: [{ ts: at('03-04 00:30'), v: null }],
    notes: [['plain-numbers', supply, `'${supply}' holds plain numbers: ask it without #/a`]],
  },
  'prices as a metric of points': {
    ask: { sql: "FROM points WHERE metric = 'price_usd'" },
    rows: [],
    notes: [['price-view', 'price_usd', 'price_usd is a view of its own, not a metric of points: FROM price_usd']],
  },
  'the registry before it was known': {
    ask: { sql: 'SELECT count(*) AS n FROM products' },
    knowledge: { as_of: '2024-01-02' },
    rows: [{ n: 0 }],
    notes: [
      [
        'registry-unknown',
        'registry',
        'the registry is not known at this as_of: it is known since 2024-01-21T00:00:00Z; {option registry_backfill=true} lets its earliest state stand in',
      ],
    ],
  },
  'before the first point': {
    ask: { sql: `${about('2024-02-01 00:00:00+00')} SELECT ts, v FROM pit_join('d', '${supply}', '24h')` },
    rows: [{ ts: at('02-01 00:00'), v: null }],
    notes: [['before-first', supply, `nothing of '${supply}' was known before 2024-03-02T00:30:00Z`]],
  },
  'points of another month': {
    ask: { sql: values("asset = 'BTC' AND t >= '2024-07-01'") },
    rows: [],
    notes: [['held-between', supply, `'${supply}' is held from 2024-03-01T00:00:00Z to 2024-03-05T00:00:00Z`]],
  },
  'later than what is settled': {
    ask: {
      sql: `${about('2024-03-06 00:30:00+00', '2024-03-07 00:30:00+00')} SELECT ts, v FROM pit_join('d', '${supply}', '24h') ORDER BY ts`,
    },
    rows: [
      { ts: at('03-06 00:30'), v: 5 },
      { ts: at('03-07 00:30'), v: 5 },
    ],
    notes: [
      [
        'beyond-settled',
        supply,
        `decisions later than what is settled of '${supply}' get its newest value: 1, from 2024-03-07T00:30:00Z on; {option beyond=null}, in SQL \`beyond := 'null'\`, gives NULL`,
      ],
    ],
  },
  'later than what is settled, as NULL': {
    ask: {
      sql: `${about('2024-03-07 00:30:00+00')} SELECT ts, v FROM pit_join('d', '${supply}', '24h', beyond := 'null')`,
    },
    rows: [{ ts: at('03-07 00:30'), v: null }],
  },
}
