import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { openQuery } from '../../src/query/lake.ts'
import { openLake } from '../../src/index.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'
import { scratch } from '../helpers/scratch.ts'
import { at, from, historyRows, hour, knownRecords, polls, type State, world } from '../helpers/universe-world.ts'

/** Conditions, as SQL and as a walk through what was known. */
interface Seen {
  readonly product: State
  readonly issuer: State | undefined
  readonly asset: State | undefined
  readonly contracts: readonly State[]
}
const conditions: readonly (readonly [sql: string, holds: (seen: Seen) => boolean])[] = [
  ['true', () => true],
  [
    "asset_class = 'treasury' AND status = 'active'",
    ({ product, asset }) => asset?.['asset_class'] === 'treasury' && product['status'] === 'active',
  ],
  [
    "issuer_status = 'active' OR issuer_id IS NULL",
    ({ product, issuer }) => issuer?.['status'] === 'active' || product['issuer_id'] === null,
  ],
  [
    "jurisdiction IS NULL AND issuer_name = 'Acme'",
    ({ issuer }) => issuer?.['jurisdiction'] === null && issuer['name'] === 'Acme',
  ],
  [
    "asset_name = 'Gold' AND ticker <> 'E' AND isin IS NULL",
    ({ product, asset }) => asset?.['name'] === 'Gold' && asset['ticker'] !== 'E' && product['isin'] === null,
  ],
  [
    "list_contains([d.chain_id FOR d IN deployments], '137')",
    ({ contracts }) => contracts.some((one) => one['chain_id'] === '137'),
  ],
  ['len(deployments) = 0', ({ contracts }) => contracts.length === 0],
  [
    "name = 'One' -- a comment\n AND symbol IN ('BTC', 'XYZ')",
    ({ product }) => product['name'] === 'One' && ['BTC', 'XYZ'].includes(product['symbol'] ?? ''),
  ],
]

function members(ms: number, holds: (seen: Seen) => boolean): string[] {
  const [products, issuers, assets] = [
    knownRecords(world.products, ms),
    knownRecords(world.issuers, ms),
    knownRecords(world.assets, ms),
  ]
  const contracts = [...knownRecords(world.deployments, ms).values()]
  return [...products]
    .filter(([id, product]) => {
      const issuer = issuers.get(product['issuer_id'] ?? '')
      const asset = assets.get(product['asset_id'] ?? '')
      return holds({ product, issuer, asset, contracts: contracts.filter((one) => one['product_id'] === id) })
    })
    .map(([id]) => id)
    .toSorted()
}

/** The assets of the metrics API: two by their symbol, one by its contracts, of which a product may have both. */
const listed = ['BTC', 'ETH', 'TOK']
const own = [
  { chain_id: '1', address: '0xa' },
  { chain_id: '137', address: '0xb' },
]

function assetsOf(product: string, ms: number): (string | null)[] {
  const symbol = knownRecords(world.products, ms).get(product)?.['symbol'] ?? ''
  const contracts = [...knownRecords(world.deployments, ms).values()].filter((one) => one['product_id'] === product)
  const carried = contracts.some((one) =>
    own.some((two) => one['chain_id'] === two.chain_id && one['address'] === two.address),
  )
  const found = [...(['BTC', 'ETH'].includes(symbol) ? [symbol] : []), ...(carried ? ['TOK'] : [])]
  return found.length === 0 ? [null] : found
}

/** A row for each member and each of its assets. */
const rowsOf = (ms: number, holds: (seen: Seen) => boolean): string[] =>
  members(ms, holds).flatMap((id) => assetsOf(id, ms).map(() => id))

const home = scratch('universe')
const root = join(home, 'lake')
const supply = { metric: 'supply/current_pit', interval: '24h', currency: 'native' } as const
beforeAll(async () => {
  const tables = Object.fromEntries(
    Object.entries(world).map(([name, steps]) => [`history.${name}`, historyRows(steps)]),
  )
  const snapshot = {
    snapshot_date: '2024-01-10',
    observed_at: at(0),
    source: 'snapshot',
    resource: 'products',
    base: 'a',
    delta: null,
    rows: 8,
  }
  const listing = { id: 'TOK', symbol: 'TOK', addresses: JSON.stringify(own), record: '{}', observed_at: at(0) }
  const points = listed.flatMap((asset, n) =>
    [8, 9, 10, 11].map((day) => ({
      ...supply,
      asset,
      t: `2024-01-${day < 10 ? '0' : ''}${day}`,
      available_at: `2024-01-${day < 9 ? '0' : ''}${day + 1}T00:10:00Z`,
      v: 100 * n + day,
    })),
  )
  await makeLake(root, [
    { at: '2024-03-01T00:00:00Z', points, tables: { ...tables, snapshots: [snapshot], metric_assets: [listing] } },
  ])
  await makeViews(root)
})

/** At each poll, a microsecond around it, and between. */
const instants = Array.from({ length: polls + 5 }, (_, poll) =>
  [-0.001, 0, 0.001, hour / 3].map((off) => from + poll * hour + off),
).flat()
const micros = (ms: number): bigint => BigInt(Math.round(ms * 1000))

test('pit_universe: what met a condition at each instant, as a walk through all that was known finds it', async () => {
  using lake = await openQuery(root, {})
  const moments = instants.map((ms) => `(make_timestamptz(${micros(ms)}))`).join(', ')
  await lake.run(`CREATE TEMP TABLE d AS FROM (VALUES ${moments}) AS d (ts)`)
  for (const [sql, holds] of conditions) {
    const found = await lake.rows<{ at: bigint; id: string }>(
      `SELECT epoch_us(ts) AS at, product_id AS id FROM pit_universe('d', (${sql}\n)) ORDER BY ALL`,
    )
    const expected = instants.flatMap((ms) => members(ms, holds).map((id) => ({ at: micros(ms), id })))
    expect(expected.length).toBeGreaterThan(100)
    expect(
      found.map(({ at: when, id }) => `${when} ${id}`),
      sql,
    ).toEqual(expected.map(({ at: when, id }) => `${when} ${id}`).toSorted())
  }
})

test('a universe under as_of lacks later records and shows records closed later as open', async () => {
  const cut = from + 30 * hour
  using lake = await openQuery(root, { asOf: new Date(cut) })
  for (const [sql, holds] of conditions) {
    const found = await lake.rows<{ id: string }>(
      `WITH d AS (SELECT TIMESTAMPTZ '2024-02-20' AS ts) SELECT product_id AS id FROM pit_universe('d', (${sql}\n)) ORDER BY id`,
    )
    expect(
      found.map(({ id }) => id),
      sql,
    ).toEqual(members(cut, holds))
  }
})

test('a panel over a universe: its members at each ts, with what was knowable of their assets', async () => {
  const lake = await openLake(root)
  try {
    const [sql = '', holds = () => false] = conditions[1] ?? []
    const calendar = { kind: 'calendar', since: '2024-01-10', until: '2024-01-13', step: '6 hours' } as const
    const table = await lake.panel({ decisions: calendar, universe: sql, metrics: [supply.metric] })
    const got = table.toArray().map((row) => row.toJSON())
    const expected = Array.from({ length: 12 }, (_, n) => from + 6 * n * hour).flatMap((ms) =>
      members(ms, holds).flatMap((id) =>
        assetsOf(id, ms).map((asset) => {
          // A day is known ten minutes after its end: at midnight it is not that of yesterday.
          const day = new Date(ms - 10 * 60_000).getUTCDate() - 1
          return { ts: ms, id, asset, value: asset === null ? null : 100 * listed.indexOf(asset) + day }
        }),
      ),
    )
    expect(expected.filter(({ asset }) => asset === 'TOK').length).toBeGreaterThan(2)
    expect(expected.filter(({ asset }) => asset !== null).length).toBeGreaterThan(2)
    expect(expected.filter(({ asset }) => asset === null).length).toBeGreaterThan(2)
    expect(
      got.map((row) => ({
        ts: Number(row['ts']),
        id: row['product_id'],
        asset: row['asset'],
        value: row[supply.metric],
      })),
    ).toEqual(expected)
    const own = await lake.panel({
      decisions: [{ ts: '2024-01-11T00:10:00Z', signal: 7 }],
      universe: sql,
      metrics: [supply.metric],
    })
    expect(own.toArray().map((row) => [row['signal'], row['product_id']])).toEqual(
      rowsOf(from + 24 * hour + 600_000, holds).map((id) => [7, id]),
    )
    const early = { ...calendar, since: '2024-01-09' }
    await expect(lake.panel({ decisions: early, universe: sql, metrics: [supply.metric] })).rejects.toThrow(
      /^universe: expected instants from 2024-01-10 00:00:00\+00 on.*got 2024-01-09/,
    )
    await expect(
      lake.panel({ decisions: { ...calendar, assets: ['BTC'] }, universe: sql, metrics: [supply.metric] }),
    ).rejects.toThrow(/^calendar: expected one of assets and universe with it, got both/)
    await expect(lake.panel({ decisions: calendar, metrics: [supply.metric] })).rejects.toThrow(
      /^calendar: expected one of assets and universe with it, got neither/,
    )
    await expect(
      lake.panel({ decisions: calendar, universe: "asset_clas = 'treasury'", metrics: [supply.metric] }),
    ).rejects.toThrow(/asset_clas/)
  } finally {
    await lake.close()
  }
})

test('the universe command takes a grid or a file of instants, refuses mistakes and notes empty answers', async () => {
  const out = join(home, 'panel.csv')
  const run = async (...words: string[]): Promise<Ended & { readonly lines: readonly string[] }> => {
    rmSync(out, { force: true })
    const ended = await pitlake(home, ['panel', '--data', root, '--metrics', supply.metric, '--out', out, ...words])
    return { ...ended, lines: existsSync(out) ? readFileSync(out, 'utf8').trim().split('\n') : [] }
  }
  const [sql = '', holds = () => false] = conditions[1] ?? []
  const grid = ['--calendar', '2024-01-10,2024-01-13,1d']
  const days = [0, 1, 2].map((day) => Date.UTC(2024, 0, 10 + day))
  const found = await run(...grid, '--universe', sql)
  expect(found).toMatchObject({ code: 0, message: '', notes: '' })
  expect(found.lines[0]).toBe(
    `asset,ts,product_id,name,symbol,isin,status,issuer_id,asset_id,valid_from,assumed,${supply.metric}`,
  )
  expect(found.lines.slice(1).map((line) => line.split(',')[2])).toEqual(days.flatMap((ms) => rowsOf(ms, holds)))

  writeFileSync(join(home, 'when.csv'), 'ts,why\n2024-01-12,late\n2024-01-10,soon\n')
  const file = await run('--decisions', 'when.csv', '--universe', sql)
  const [, , last = 0] = days
  const asked = [...rowsOf(last, holds).map((id) => `late,${id}`), ...rowsOf(from, holds).map((id) => `soon,${id}`)]
  expect(file.lines.slice(1).map((line) => line.split(',').slice(2, 4).join())).toEqual(asked)

  const early = ['--calendar', '2024-01-09,2024-01-11,1d', '--universe', "status = 'active'"]
  const refused = await run(...early)
  expect(refused).toMatchObject({ code: 2, lines: [] })
  expect(refused.message).toMatch(
    /--universe: expected instants from 2024-01-10 00:00:00\+00 on, .*got 2024-01-09 00:00:00\+00; .*--set registry_backfill=true/,
  )
  const assumed = await run(...early, '--set', 'registry_backfill=true')
  const first = rowsOf(from, ({ product }) => product['status'] === 'active')
  expect(
    assumed.lines
      .slice(1)
      .map((line) => line.split(',').slice(1, 3).join())
      .slice(0, 2 * first.length),
  ).toEqual(
    ['2024-01-09T00:00:00.000000Z', '2024-01-10T00:00:00.000000Z'].flatMap((ts) => first.map((id) => `${ts},${id}`)),
  )

  expect(await run(...grid, '--universe', "status = 'sold'")).toMatchObject({
    code: 0,
    notes:
      "note: no product met --universe at any of these times: status = 'sold'\n" +
      "note: nothing in the registry has status 'sold'; there are 'active', 'inactive'\n",
  })
  const unbound = await run(...grid, '--universe', "status = 'active'\n  AND colour = 'red'")
  expect(unbound.message).toMatch(/^SQL \(line 2 column 7\): .*colour/)
  expect(await run(...grid, '--universe', 'status =')).toMatchObject({
    code: 2,
    message: expect.stringMatching(/syntax error/i) as string,
  })
  expect(await run(...grid, '--universe', "nobody = 'x'")).toMatchObject({
    code: 2,
    message: expect.stringMatching(/"nobody"/) as string,
  })
  expect(await run(...grid, '--universe', "name IN (SELECT content FROM read_text('/etc/hostname'))")).toMatchObject({
    code: 2,
    message: expect.stringMatching(/read_text|\/etc/) as string,
  })
  expect(await run(...grid, '--universe', 'true', '--assets', 'BTC')).toMatchObject({
    code: 2,
    message: expect.stringMatching(/got both/) as string,
  })
  writeFileSync(join(home, 'when.csv'), 'ts,asset\n2024-01-12,BTC\n')
  expect(await run('--decisions', 'when.csv', '--universe', 'true')).toMatchObject({
    code: 2,
    message: expect.stringMatching(/got asset.*rename it/) as string,
  })
})
