// @module-tag slow
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { seriesId } from '../../src/catalog/series.ts'
import { type Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import { openQuery } from '../../src/query/lake.ts'
import { panelSql, specOf } from '../../src/query/panel.ts'
import { dateTable } from '../../src/trust/dating/dating.ts'
import type { DatingOptions } from '../../src/trust/dating/options.ts'
import { isoOf, micros } from '../helpers/instants.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { scratch } from '../helpers/scratch.ts'
import { isFullTier } from '../helpers/tiers.ts'
import { makeViews } from '../helpers/views.ts'

/*
 * Panels that follow renames, or that are NULL where a decision is unresolved. The lake is asked at hours all over its
 * time: an hour lies in a range of `as_of` exactly if the lake then answers every cell that is compared.
 */

const home = scratch('when-options')
const root = join(home, 'lake')
const metric = 'indicators/sopr_adjusted_pit'
const [first, second, third] = ['2024-01-10T00:00:00Z', '2024-01-20T06:00:00Z', '2024-02-02T00:00:00Z'] as const
const day = 86_400_000

const product = (symbol: string, op: string) => ({
  id: 'p1',
  symbol,
  op,
  closed_by: null,
  inferred: false,
  record: '{}',
})

/** Points of an asset, a value for each day from a date on; every fifth is known two days late. */
const pointsOf = (asset: string, begin: string, days: number, base: number) =>
  Array.from({ length: days }, (_, n) => {
    const t = Date.parse(begin) + n * day
    const late = n % 5 === 3 ? 2 * day : 0
    const at = new Date(t + day + 600_000 + late).toISOString()
    return { metric, asset, interval: '24h' as const, t: new Date(t).toISOString(), available_at: at, v: base + n }
  })

beforeAll(async () => {
  const listing = ['old', 'new', 'BTC'].map((id) => ({ id, symbol: id, addresses: null, record: '{}' }))
  const points = [
    ...pointsOf('old', '2024-01-01', 24, 100),
    ...pointsOf('new', '2024-01-15', 25, 200),
    ...pointsOf('BTC', '2024-01-01', 30, 300),
  ]
  await makeLake(root, [
    {
      at: first,
      points,
      // What lies after the last point has not been requested: decisions that expect it are unresolved.
      coverage: (
        [
          ['old', 24],
          ['new', 39],
          ['BTC', 30],
        ] as const
      ).map(([asset, days]) => ({
        series: seriesId({ metric, asset, interval: '24h', currency: null, exchange: null, network: null, params: {} }),
        since: Date.UTC(2024, 0, 1) / 1000,
        until: Date.UTC(2024, 0, 1 + days) / 1000,
        asked_at: Date.parse(first) / 1000,
        request: null,
        state: 'covered' as const,
        reason: null,
      })),
      tables: {
        metric_assets: listing,
        snapshots: [{ snapshot_date: '2024-01-10', resource: 'products', base: 'b', rows: 1 }],
        'history.products': [product('old', 'snapshot')],
        'history.deployments': [],
      },
    },
    { at: second, tables: { 'history.products': [product('new', 'updated')] } },
    { at: third, tables: { 'history.products': [product('new', 'updated')] } },
  ])
  await makeViews(root)
})

const decisions = Array.from({ length: 45 }, (_, n) => n).flatMap((n) =>
  ['old', 'new', 'BTC'].map((asset) => ({
    asset,
    ts: isoOf((Date.parse('2024-01-01') + n * day + (n % 4) * 5 * 3_600_000) * 1000),
  })),
)

async function panelAt(engine: Engine, asOf: string, more: Readonly<Record<string, unknown>>): Promise<Row[]> {
  const { decisions: made, query } = panelSql(specOf({ decisions, metrics: { v: metric }, ...more }))
  await engine.run(`SET VARIABLE as_of = ${quote(asOf)}`)
  await engine.run(made)
  return await engine.rows(query)
}

const cell = (value: Row[string] | undefined): string =>
  typeof value === 'number' || typeof value === 'string' ? String(value) : ''

async function rangesOf(engine: Engine, name: string, rows: readonly Row[], options: DatingOptions) {
  const path = join(home, `${name}.csv`)
  writeFileSync(
    path,
    ['asset,ts,v', ...rows.map((row) => `${cell(row['asset'])},${cell(row['ts'])},${cell(row['v'])}`)].join('\n'),
  )
  await engine.run('SET VARIABLE as_of = NULL')
  const run = { folder: root, sleep: async () => await Promise.resolve() }
  return await dateTable(
    engine,
    { path, subject: 'table', options: { metrics: [{ name: 'v', metric }], ...options } },
    run,
  )
}

/** Hours between two times at which the lake is asked; each takes a quarter of a second. */
const step = isFullTier ? 19 : 41
/** Every hour of the lake's time and some around it. */
const hours = Array.from({ length: 46 * 24 }, (_, n) => (Date.parse('2023-12-31T00:30:00Z') + n * 3_600_000) * 1000)

test('a panel that follows renames is dated exactly: no hour too many, none too few', {
  timeout: 600_000,
}, async () => {
  using engine = await openQuery(root)
  const variants = [
    { panel: { followRenames: true }, options: { followRenames: true } },
    {
      panel: { followRenames: true, latency: '6h', maxAge: '36h' },
      options: { followRenames: true, latency: 6 * 3600, maxAge: 36 * 3600 },
    },
  ] as const
  for (const [v, { panel, options }] of variants.entries()) {
    const answers = new Map<number, Row[]>()
    for (const hour of hours.filter((_, n) => n % step === 0))
      answers.set(hour, await panelAt(engine, isoOf(hour), panel))
    for (const [n, at] of ['2024-01-16T12:00:00Z', '2024-01-22T03:00:00Z', '2024-02-20T00:00:00Z'].entries()) {
      const whole = await panelAt(engine, at, panel)
      // The rows that the rename is about, and some of the others.
      const kept = whole.flatMap((row, place) => (place % 3 < 2 || place % 4 === 0 ? [{ row, place }] : []))
      const dated = await rangesOf(
        engine,
        `renames-${v}-${n}`,
        kept.map(({ row }) => row),
        options,
      )
      expect([v, at, dated.verdict]).toEqual([v, at, 'dated'])
      for (const [hour, rows] of answers) {
        const isInside = dated.as_of.some(
          ({ from, until }) => (from === null || micros(from) <= hour) && (until === null || hour < micros(until)),
        )
        const isAnswered = kept.every(({ row, place }) => cell(rows[place]?.['v']) === cell(row['v']))
        expect([v, at, isoOf(hour), isInside]).toEqual([v, at, isoOf(hour), isAnswered])
      }
      if (n === 2) {
        const without = { ...options, followRenames: false }
        const plain = await rangesOf(
          engine,
          `plain-${v}`,
          kept.map(({ row }) => row),
          without,
        )
        expect(plain.verdict).toBe('unmatched')
      }
    }
  }
})

test('a panel with NULL for unresolved decisions is dated by its values', async () => {
  using engine = await openQuery(root)
  const at = '2024-02-20T00:00:00Z'
  const rows = await panelAt(engine, at, { unresolved: 'null' })
  const plain = await panelAt(engine, at, {})
  expect(rows.filter(({ v }) => v === null).length).toBeGreaterThan(plain.filter(({ v }) => v === null).length)
  const dated = await rangesOf(engine, 'unresolved', rows, { unresolved: 'null' })
  expect([dated.verdict, dated.cells]).toEqual(['dated', rows.filter(({ v }) => v !== null).length])
  expect(
    dated.as_of.some(
      ({ from, until }) =>
        (from === null || micros(from) <= micros(at)) && (until === null || micros(at) < micros(until)),
    ),
  ).toBe(true)
  expect((await rangesOf(engine, 'unresolved-plain', rows, {})).verdict).not.toBe('dated')
})
