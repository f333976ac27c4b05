import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../src/store/engine.ts'
import { makeLake, makeViews, type Step, withViews } from '../helpers/views.ts'

const begun = '2024-11-01T06:00:00Z'
const row = { inferred: false, closed_by: null, record: '{}', op: 'updated' }

const product = (id: string, more: object = {}): Readonly<Record<string, unknown>> => ({ ...row, id, ...more })
const step = (at: string, products: readonly object[], deployments: readonly object[] = []): Step => ({
  at,
  tables: {
    ...(at === begun && { snapshots: [{ snapshot_date: '2024-11-01', resource: 'products', base: 'b', rows: 3 }] }),
    'history.products': products as Readonly<Record<string, unknown>>[],
    ...(deployments.length > 0 && { 'history.deployments': deployments as Readonly<Record<string, unknown>>[] }),
  },
})

/** A product that retires, one that is removed, one that gives its symbol away. */
const steps: Step[] = [
  step(
    begun,
    [
      product('retires', { op: 'snapshot', symbol: 'R', status: 'active' }),
      product('goes', { op: 'snapshot', symbol: 'G', status: 'active' }),
      product('before', { op: 'snapshot', symbol: 'SAME', issuer_id: 'i1', status: 'active' }),
    ],
    [product('old', { op: 'snapshot', product_id: 'retires', address: '0x1', status: 'active' })],
  ),
  step('2024-11-10T09:00:00Z', [product('retires', { symbol: 'R', status: 'inactive' })]),
  step('2024-11-12T10:00:00Z', [product('goes', { op: null, closed_by: 'deleted', record: null })]),
  step(
    '2024-11-20T00:00:00Z',
    [
      product('before', { symbol: 'OTHER', issuer_id: 'i1', status: 'active' }),
      product('after', { op: 'created', symbol: 'SAME', issuer_id: 'i2', status: 'active' }),
    ],
    [
      product('old', { product_id: 'retires', address: '0x1', status: 'inactive' }),
      product('new', { op: 'created', product_id: 'retires', address: '0x2', status: 'active' }),
    ],
  ),
]

let root = ''
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'pitlake-registry-time-'))
  await makeLake(root, steps)
  await makeViews(root)
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** What the universe shows of a product at an instant, by as_of and by a join: both must agree. */
async function seen(engine: Engine, id: string, at: string): Promise<unknown[]> {
  await engine.run(`SET VARIABLE as_of = '${at}'`)
  const known = await engine.rows(`SELECT status FROM universe WHERE product_id = '${id}'`)
  await engine.run(`RESET VARIABLE as_of; CREATE OR REPLACE TEMP TABLE d AS SELECT TIMESTAMPTZ '${at}' AS ts`)
  expect(await engine.rows(`SELECT status FROM pit_universe('d') WHERE product_id = '${id}'`)).toEqual(known)
  return known.map(({ status }) => status)
}

test('TIME 38: a product that retires is inactive from the poll on, and still listed', async () => {
  await withViews(root, async (engine) => {
    expect(await seen(engine, 'retires', '2024-11-10 08:59:59+00')).toEqual(['active'])
    expect(await seen(engine, 'retires', '2024-11-10 09:00:00+00')).toEqual(['inactive'])
    expect(await seen(engine, 'retires', '2025-11-10 09:00:00+00')).toEqual(['inactive'])
  })
})

test('TIME 39: a product that is deleted is listed until just before the poll', async () => {
  await withViews(root, async (engine) => {
    expect(await seen(engine, 'goes', '2024-11-12 09:59:59.999999+00')).toEqual(['active'])
    expect(await seen(engine, 'goes', '2024-11-12 10:00:00+00')).toEqual([])
  })
})

test('TIME 41: before the first snapshot nothing is known, and that is said; assumed on demand', async () => {
  await withViews(root, async (engine) => {
    expect(await seen(engine, 'goes', '2024-10-01 00:00:00+00')).toEqual([])
    await engine.run(`SET VARIABLE as_of = '2024-10-01'`)
    expect(await engine.rows('FROM registry_start')).toEqual([])
    await engine.run(`SET VARIABLE registry_backfill = true`)
    const rows = await engine.rows('SELECT product_id, assumed FROM universe ORDER BY product_id')
    expect(rows.map(Object.values)).toEqual([
      ['before', true],
      ['goes', true],
      ['retires', true],
    ])
  })
})

test('TIME 42: where two versions meet there is exactly one', async () => {
  await withViews(root, async (engine) => {
    const border = `TIMESTAMPTZ '2024-11-10 09:00:00+00'`
    const [versions] = await engine.rows(
      `SELECT count(*)::INTEGER AS n, bool_or(valid_to = ${border}) AS ends, bool_or(valid_from = ${border}) AS begins
       FROM history.products WHERE id = 'retires'`,
    )
    expect(versions).toEqual({ n: 2, ends: true, begins: true })
    const rows = await engine.rows(
      `SELECT status FROM history.products WHERE id = 'retires' AND valid_from <= ${border} AND ${border} < valid_to`,
    )
    expect(rows).toEqual([{ status: 'inactive' }])
    expect(await engine.rows('SELECT id FROM history.products WHERE valid_from >= valid_to')).toEqual([])
  })
})

test('TIME 48: a corrected address is a second deployment, the first retires', async () => {
  await withViews(root, async (engine) => {
    const rows = await engine.rows('SELECT id, address, status FROM deployments ORDER BY id')
    expect(rows.map(Object.values)).toEqual([
      ['new', '0x2', 'active'],
      ['old', '0x1', 'inactive'],
    ])
  })
})

test('TIME 49: a symbol that another issuer takes over leads to each product in its time', async () => {
  await withViews(root, async (engine) => {
    await engine.run(`CREATE TEMP TABLE d AS SELECT unnest(['2024-11-19 23:59:59', '2024-11-20']) AS ts`)
    const rows = await engine.rows(
      `SELECT ts, product_id, issuer_id FROM pit_universe('d') WHERE symbol = 'SAME' ORDER BY ts`,
    )
    expect(rows.map((one) => [one['product_id'], one['issuer_id']])).toEqual([
      ['before', 'i1'],
      ['after', 'i2'],
    ])
  })
})
