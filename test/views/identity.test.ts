// @module-tag full
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { revisableKey } from '../../src/lake/ledger/draft.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import {
  day,
  type History,
  historyOf,
  type Hour,
  polls,
  stitchedAt,
  type Succession,
  successionsOf,
} from './identities.ts'
import { pitlake } from '../helpers/command.ts'
import { temporaryFolder } from '../helpers/folders.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { rounds } from '../helpers/tiers.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import type { LakeCommit } from '../helpers/lakes/lake-recipe.ts'

/* Series that follow each other, against the plain definition, on random histories: many of them in one lake. */

const metrics = ['indicators/asol_pit', 'indicators/sopr_adjusted_pit'] as const
const iso = (hour: Hour): string => new Date(Date.UTC(2024, 0, 1) + hour * 3_600_000).toISOString()
const instant = (hour: Hour): string => iso(hour).replace('Z', '000Z')

function stepsOf(histories: readonly History[], revisable: boolean): LakeCommit[] {
  const all = <T>(of: (history: History) => readonly T[]): T[] => histories.flatMap(of)
  const products = all((h) => h.products)
  const deployments = all((h) => h.deployments)
  const listings = all((h) => h.listings)
  const record = (id: string, isThere: boolean) => ({
    id,
    op: isThere ? 'updated' : null,
    closed_by: isThere ? null : 'deleted',
    inferred: false,
    record: isThere ? '{}' : null,
  })
  return polls.map((poll, n): LakeCommit => {
    const told = <T extends { readonly at: Hour }>(list: readonly T[]): T[] => list.filter(({ at }) => at === poll)
    return {
      at: iso(poll),
      ...(n === 0 && {
        points: all((h) => h.points).map(({ metric, asset, t, available, v }) => {
          const name = metrics[metric] ?? ''
          const at = iso(available)
          return { metric: name, asset, interval: '24h' as const, t: iso(t), available_at: at, v }
        }),
        ...(revisable && { state: { [revisableKey]: [metrics[1]] } }),
      }),
      tables: {
        metric_assets: told(listings).map(({ id, is }) => {
          const contracts = is?.contracts?.map(([chain_id, address]) => ({ chain_id, address }))
          return {
            id,
            symbol: is?.symbol ?? null,
            addresses: contracts ? JSON.stringify(contracts) : null,
            record: '{}',
          }
        }),
        'history.products': told(products).map(({ id, is }) => ({ ...record(id, is !== null), symbol: is })),
        'history.deployments': told(deployments).map(({ id, is }) => ({
          ...record(id, is !== null),
          product_id: is?.product ?? null,
          chain_id: is?.chain ?? null,
          address: is?.address ?? null,
          status: is?.status ?? null,
        })),
      },
    }
  })
}

interface Decision {
  readonly n: number
  readonly asset: string
  readonly ts: Hour
}

/** A few instants of each history: before, at and behind what became known of its names, and its end. */
function decisionsOf(histories: readonly History[], successions: readonly (readonly Succession[])[]): Decision[] {
  return histories.flatMap((history, n) => {
    const known = (successions[n] ?? []).flatMap(({ known: at, undone }) => [at - 0.5, at, at + 30, undone])
    const instants = [...new Set([...known.filter(Number.isFinite), 17 * day])].slice(-9)
    const assets = new Set(history.points.map(({ asset }) => asset))
    return [...assets].flatMap((asset) => instants.map((ts) => ({ n, asset, ts })))
  })
}

type Found = Readonly<Record<'t' | 'available_at' | 'v', string | number | null>>
const said = (rows: readonly Found[]): string =>
  JSON.stringify(rows.filter(({ t }) => t !== null).map(({ t, available_at, v }) => [t, available_at, v]))

/** What the joins answer to each decision: the join, the long one for each metric, the window. */
async function answers(engine: Engine, decisions: readonly Decision[]): Promise<string[][]> {
  const rows = decisions.map(({ asset, ts }, id) => ({ id, asset, ts: iso(ts) }))
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE d AS SELECT unnest(from_json($1, '[{"id": "INTEGER", "asset": "VARCHAR", "ts": "TIMESTAMPTZ"}]'), recursive := true)`,
    [JSON.stringify(rows)],
  )
  const asked = async (call: string, more = ''): Promise<string[]> => {
    const found = await engine.rows<Found & { id: number }>(`FROM ${call} ${more} ORDER BY id, t DESC`)
    const own = Map.groupBy(found, ({ id }) => id)
    return decisions.map((_, id) => said(own.get(id) ?? []))
  }
  const names = `['${metrics.join("', '")}']`
  const own = `follow_renames := true`
  return await Promise.all([
    asked(`pit_join('d', '${metrics[0]}', '24h', ${own})`),
    asked(`pit_long('d', ${names}, '24h', ${own})`, `WHERE metric = '${metrics[0]}'`),
    asked(`pit_long('d', ${names}, '24h', ${own})`, `WHERE metric = '${metrics[1]}'`),
    asked(`pit_window('d', '${metrics[1]}', '24h', 20, ${own})`),
    asked(`pit_join('d', '${metrics[0]}', '24h', ${own}, back := '3 days')`),
    asked(`pit_long('d', ${names}, '24h', ${own}, back := '3 days')`, `WHERE metric = '${metrics[1]}'`),
    asked(`pit_window('d', '${metrics[1]}', '24h', 20, ${own}, back := '3 days')`),
  ])
}

async function hold(engine: Engine, histories: readonly History[], asOf: Hour | null): Promise<number> {
  const end = asOf ?? Infinity
  await engine.run(`SET VARIABLE as_of = ${asOf === null ? 'NULL' : `'${iso(asOf)}'`}`)
  const whole = histories.map((history) => successionsOf(history, Infinity))
  const decisions = decisionsOf(histories, whole)
  const [join = [], long = [], other = [], window = [], ...backs] = await answers(engine, decisions)
  let stitched = 0
  for (const [i, { n, asset, ts }] of decisions.entries()) {
    const at = Math.min(ts, end)
    const history = histories[n] as History
    const then = successionsOf(history, at)
    const [first, second] = [0, 1].map((metric) =>
      stitchedAt(history, then, [metric, asset, at]).map((point) => ({
        t: instant(point.t),
        available_at: instant(point.available),
        v: point.v,
      })),
    ) as [Found[], Found[]]
    const place = `history ${n} ${asset} ${ts} as of ${asOf}`
    expect([place, join[i], long[i]]).toEqual([place, said(first.slice(0, 1)), said(first.slice(0, 1))])
    expect([place, window[i]]).toEqual([place, said(second.slice(0, 20))])
    expect([place, other[i]]).toEqual([place, said(second.slice(0, 1))])
    const [early, late] = [first, second].map((own) => {
      const until = Date.parse(String(own[0]?.t)) - 3 * 86_400_000
      return own.filter(({ t }) => Date.parse(String(t)) <= until)
    }) as [Found[], Found[]]
    const earlier = [early.slice(0, 1), late.slice(0, 1), late.slice(0, 20)].map(said)
    expect([place, ...backs.map((own) => own[i])]).toEqual([place, ...earlier])
    if (first.some(({ v }) => Math.floor(Number(v) / 1000) !== Math.floor(Number(first[0]?.v) / 1000))) stitched++
  }
  return stitched
}

const week = 7 * day

/** Weeks of stitched series, against sums of the parts that the definition tells. */
async function holdWeeks(engine: Engine, histories: readonly History[], asOf: Hour | null): Promise<void> {
  for (const [metric, name] of metrics.entries()) {
    const found = await engine.rows<Record<string, string | number | bigint | null>>(
      `SELECT asset, t, available_at, parts, complete, v FROM resample('${name}', '24h', '1w', 'sum', follow_renames := true)`,
    )
    const line = (parts: readonly unknown[]): string => parts.map(String).join(' ')
    const expected = histories.flatMap((history) => {
      const then = successionsOf(history, asOf ?? Infinity)
      return [...new Set(history.points.map(({ asset }) => asset))].flatMap((asset) => {
        const own = stitchedAt(history, then, [metric, asset, asOf ?? Infinity]).toReversed()
        return [...Map.groupBy(own, ({ t }) => Math.floor(t / week) * week)].map(([start, parts]) => {
          const known = instant(Math.max(...parts.map(({ available }) => available)))
          const sum = parts.length === 7 ? parts.reduce((total, { v }) => total + v, 0) : null
          return line([asset, instant(start), known, parts.length, parts.length === 7, sum])
        })
      })
    })
    const told = found.map(({ asset, t, available_at, parts, complete, v }) =>
      line([asset, t, available_at, parts, complete, v]),
    )
    expect(told.toSorted(), `${name} as of ${asOf}`).toEqual(expected.toSorted())
  }
}

const succession = ['predecessor', 'successor'].flatMap((name) => [name, `${name}_at`, `${name}_change`])

type Link = Readonly<Record<string, string | null>>

/** The columns of `links` that tell of successions, against those of the definition. */
async function holdLinks(engine: Engine, histories: readonly History[], asOf: Hour | null): Promise<number> {
  const at = asOf ?? Infinity
  const standing = histories.flatMap((history) =>
    successionsOf(history, at).filter(({ undone }) => undone > at || undone === Infinity),
  )
  const rows = await engine.rows<Link>('FROM links')
  const isOf = (row: Link, node: Succession['from']): boolean =>
    row['metric_asset'] === node.asset &&
    row['product_id'] === node.product &&
    row['chain_id'] === node.chain &&
    row['address'] === node.contract &&
    (row['symbol']?.toLowerCase() ?? null) === node.symbol
  let shown = 0
  for (const row of rows) {
    const last = (own: readonly Succession[], side: 'from' | 'to') => {
      const one = own.toSorted((a, b) => b.known - a.known || (b[side].asset < a[side].asset ? -1 : 1))[0]
      return one === undefined ? [null, null, null] : [one[side].asset, instant(one.known), one.change]
    }
    const came = last(
      standing.filter((one) => isOf(row, one.to)),
      'from',
    )
    const went = last(
      standing.filter((one) => isOf(row, one.from)),
      'to',
    )
    const isBefore =
      came[1] !== null && String(came[1]) < (row['valid_to'] === 'infinity' ? '~' : String(row['valid_to']))
    const isBehind =
      went[1] !== null && String(went[1]) > (row['valid_from'] === '-infinity' ? '' : String(row['valid_from']))
    const expected = [...(isBefore ? came : [null, null, null]), ...(isBehind ? went : [null, null, null])]
    expect({
      row,
      told: succession.map((name) => row[name]),
    }).toEqual({ row, told: expected })
    shown += expected.filter((one) => one !== null).length
  }
  return shown
}

/** The SQL that the page on publishing has for one succession, against the window over the stitched series. */
async function holdPage(engine: Engine, histories: readonly History[]): Promise<number> {
  const page = readFileSync(new URL('../../docs/how-to/publish.md', import.meta.url), 'utf8')
  const [, sql = ''] = /## Names that follow[^]*?```sql\n([^]*?)```/.exec(page) ?? []
  let held = 0
  for (const history of histories) {
    const all = successionsOf(history, Infinity)
    const [one] = all
    if (one === undefined || all.length > 1 || !one.stitched || one.undone !== Infinity) continue
    const own = sql.replaceAll("'OLD'", `'${one.from.asset}'`).replaceAll("'NEW'", `'${one.to.asset}'`)
    const told = await engine.rows<Found>(
      `SELECT t, available_at, v FROM (${own}) WHERE metric = '${metrics[0]}' ORDER BY t`,
    )
    const window = `pit_window('late', '${metrics[0]}', '24h', 100, follow_renames := true)`
    await engine.run(
      `CREATE OR REPLACE TEMP TABLE late AS SELECT '${one.to.asset}' AS asset, TIMESTAMPTZ '2030-01-01 00:00:00+00' AS ts`,
    )
    const expected = await engine.rows<Found>(`SELECT t, available_at, v FROM ${window} ORDER BY t`)
    expect([one.to.asset, said(told)]).toEqual([one.to.asset, said(expected)])
    held += new Set(told.map(({ v }) => Math.floor(Number(v) / 1000))).size - 1
  }
  return held
}

/** A query over stitched series is proved, and no trial says otherwise. */
async function expectProved(root: string, histories: readonly History[]): Promise<void> {
  const assets = new Set(histories.flatMap(({ points }) => points.map(({ asset }) => `'${asset}'`)))
  const query = join(root, 'stitched.sql')
  writeFileSync(
    query,
    `WITH d AS (SELECT ts, asset FROM calendar('2024-01-02', '2024-01-18', '1 day'), (SELECT unnest([${[...assets].join(', ')}]) AS asset))
     SELECT ts, asset, t, v FROM pit_join('d', '${metrics[0]}', '24h', follow_renames := true)`,
  )
  const { out, message } = await pitlake(root, ['lookahead', query, '--data', root, '--cutoffs', '6', '--json'])
  expect([JSON.parse(out || 'null'), message]).toMatchObject([{ verdict: 'clean', proved: true, differences: [] }, ''])
}

/**
 * Histories in which rare things happen: a rival, two ways from one name to another, each beside or on the same chain;
 * and some with one succession alone.
 */
const telling = [
  [58, 84, 70, 23, 64, 110],
  [33, 13, 111],
] as const

for (const revisable of [false, true])
  test(`stitched series are what the plain definition says${revisable ? ', with vintages' : ''}`, {
    timeout: 1_200_000,
  }, async () => {
    const many = rounds('PITLAKE_IDENTITIES', 3, 12)
    const drawn = Array.from({ length: many }, (_, n) => n * 2 + Number(revisable))
    const seeds = new Set([...telling[revisable ? 1 : 0], ...drawn])
    const histories = [...seeds].map((seed) => historyOf(seed, revisable))
    using folder = temporaryFolder('identities')
    await makeLake(folder.path, stepsOf(histories, revisable))
    await makeViews(folder.path, { catalogue: { ...catalogue, links: histories.flatMap(({ mapping }) => mapping) } })
    if (!revisable) await expectProved(folder.path, histories)
    await withViews(folder.path, async (engine) => {
      expect(await hold(engine, histories, null)).toBeGreaterThan(many / 5)
      expect(await holdLinks(engine, histories, null)).toBeGreaterThan(many / 5)
      await holdWeeks(engine, histories, null)
      if (!revisable) expect(await holdPage(engine, histories)).toBeGreaterThan(0)
      for (const asOf of [polls[4] ?? 0, (polls[8] ?? 0) + 3]) {
        await hold(engine, histories, asOf)
        await holdLinks(engine, histories, asOf)
        await holdWeeks(engine, histories, asOf)
      }
      await engine.run('SET VARIABLE as_of = NULL')
    })
  })
