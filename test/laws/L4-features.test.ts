import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { isFullTier, rounds } from '../helpers/tiers.ts'

/*
 * Sixty days of a lake that imports and computes features again and again, while points come late, values are revised
 * and days are missing: each value is what a brute force over all that was ever said tells, with what was known at its
 * instant and held when it was computed, bit for bit.
 */

const day = 86_400
const began = Date.UTC(2024, 2, 1) / 1000
const days = 60
/** The lake is brought forward so many times, evenly; 60 for each of the days. */
const each = days / rounds('PITLAKE_FEATURES', 2, 2)
const latency = 900

/** Something that was said: from when on it was known, and since when this lake held it. */
interface Said {
  readonly asset: string
  readonly t: number
  readonly v: number | null
  readonly known: number
  readonly held: number
}

const assets = ['BTC', 'ETH']
const price = (asset: string, i: number): number => Math.sin(i * 1.7 + asset.length + asset.charCodeAt(0)) * 1000
const isNever = (i: number): boolean => i % 13 === 6
const isSlow = (i: number): boolean => i % 5 === 2
const date = (i: number): string => new Date((began + i * day) * 1000).toISOString().slice(0, 10)

/** What the provider of prices has on a day: slow days come five days late, some days never. */
function pricesOn(d: number): { asset: string; i: number }[] {
  return Array.from({ length: d }, (_, i) => i).flatMap((i) =>
    i < d - 1 && (isNever(i) || (isSlow(i) && i > d - 6)) ? [] : assets.map((asset) => ({ asset, i })),
  )
}

/**
 * The vintages of a rate that are out: one on the next day, another three days later; every tenth first one is told
 * twelve days late.
 */
function vintagesOn(d: number): { i: number; out: number; v: number }[] {
  return Array.from({ length: d }, (_, i) => i).flatMap((i) =>
    [1, 4].flatMap((after) => {
      const out = i + after
      const told = i + after + (i % 10 === 5 && after === 1 ? 12 : 0)
      return told < d ? [{ i, out, v: Math.cos(i) + after / 7 }] : []
    }),
  )
}

/** What this lake was told, by the rules of time. */
class Archive {
  readonly prices: Said[] = []
  readonly rates: Said[] = []
  #last = -1
  bring(d: number, at: number): void {
    for (const { asset, i } of pricesOn(d)) {
      if (this.prices.some((one) => one.asset === asset && one.t === began + i * day)) continue
      const end = began + (i + 1) * day
      this.prices.push({ asset, t: end - day, v: price(asset, i), known: i <= this.#last ? at : end, held: at })
    }
    this.#last = d - 1
    for (const { i, out, v } of vintagesOn(d)) {
      const known = began + (out + 1) * day
      if (this.rates.some((one) => one.t === began + i * day && one.known === known)) continue
      this.rates.push({ asset: 'RATE', t: began + i * day, v, known, held: at })
    }
  }
}

const known = (said: readonly Said[], ts: number, held: number, asset: string): Said[] => {
  const all = said.filter((one) => one.asset === asset && one.known <= ts && one.held <= held)
  return all.toSorted((a, b) => a.t - b.t || a.known - b.known)
}

/** Each feature: its text, and what it is of an asset at an instant, by definition; undefined for no row. */
const features: Readonly<
  Record<
    string,
    readonly [yaml: string, value: (all: Archive, ts: number, held: number, asset: string) => number | null | undefined]
  >
> = {
  step: [
    `assets: [BTC, ETH]
    latency: 15m
    sql: |
      SELECT ts, asset, v - lag(v) OVER (PARTITION BY asset ORDER BY ts) AS v
      FROM pit_join('grid', 'own/price', '24h')`,
    (all, ts, held, asset) => {
      const [now, before] = [ts, ts - day].map((at) => known(all.prices, at, held, asset).at(-1)?.v)
      return now === undefined || now === null || before === undefined || before === null ? null : now - before
    },
  ],
  mean: [
    `assets: [BTC, ETH]
    latency: 15m
    sql: |
      SELECT ts, asset, sum(v ORDER BY t) / count(v) AS mean FROM pit_window('grid', 'own/price', '24h', 5)
      GROUP BY ts, asset HAVING count(v) > 2`,
    (all, ts, held, asset) => {
      const last = known(all.prices, ts, held, asset).slice(-5)
      return last.length > 2 ? last.reduce((sum, { v }) => sum + (v ?? 0), 0) / last.length : undefined
    },
  ],
  rate: [
    `assets: [RATE]
    latency: 15m
    sql: SELECT ts, asset, v FROM pit_join('grid', 'own/rate', '24h')`,
    (all, ts, held) => known(all.rates, ts, held, 'RATE').at(-1)?.v ?? null,
  ],
  // Nothing proves it, and what it leaks on one day no trial met that was made before: it is computed as of that day.
  rare: [
    `latency: 15m
    sql: |
      SELECT g.ts, (SELECT arg_max(v, t) FROM points p WHERE p.metric = 'own/price' AND p.asset = 'BTC'
        AND (p.available_at <= g.ts OR g.ts = '${date(50)}')) AS v FROM grid g`,
    (all, ts, held) => known(all.prices, ts, held, 'BTC').at(-1)?.v ?? null,
  ],
}

function declared(desk: Desk, names: Readonly<Record<string, string>>): string {
  const rows = Object.entries(names).map(([name, of]) => {
    const grid = `grid: 24h\n    since: ${date(0)}`
    return `  ${name}:\n    why: a test\n    ${grid}\n    ${features[of]?.[0] ?? ''}\n`
  })
  const yaml = desk.put('features.yaml', `features:\n${rows.join('')}`)
  return desk.put('c.yaml', `catalogs: [${yaml}]\n`)
}

const bits = (v: unknown): string =>
  typeof v === 'number' ? Buffer.from(new Float64Array([v]).buffer).toString('hex') : String(v)

async function expectTwin(
  desk: Desk,
  all: Archive,
  name: string,
  of: string,
  heldAt: (ts: number) => number,
  last: number,
) {
  const rows = await desk.rows(
    `SELECT asset, CAST(epoch(t) AS BIGINT) AS t, CAST(epoch(available_at) AS BIGINT) AS known, v FROM points WHERE metric = 'feature/${name}'`,
  )
  const told = rows.map(
    ({ asset, t, known, v }) => [`${asset as string} ${Number(t) + day} ${Number(known)}`, bits(v)] as const,
  )
  const expected: (readonly [string, string])[] = []
  for (const asset of of === 'rare' ? ['MARKET'] : of === 'rate' ? ['RATE'] : assets)
    for (let ts = began; ts <= last; ts += day) {
      const v = features[of]?.[1](all, ts, heldAt(ts), asset)
      if (v !== undefined) expected.push([`${asset} ${ts} ${ts + latency}`, bits(v)])
    }
  expect(Object.fromEntries(told), name).toEqual(Object.fromEntries(expected))
  expect(told).toHaveLength(expected.length)
}

test('features computed day by day are those of a brute force over what was known and held, bit for bit', async () => {
  await withDesk(async (desk) => {
    const all = new Archive()
    const names = Object.fromEntries(Object.keys(features).map((name) => [name, name]))
    const config = declared(desk, names)
    const rounds: number[] = []
    // A handful of days tells nothing yet.
    for (let d = Math.ceil(10 / each) * each; d <= days; d += each) {
      const at = began + d * day + day / 4
      const iso = new Date(at * 1000).toISOString()
      const prices = pricesOn(d).map(({ asset, i }) => `${asset},${date(i)},${price(asset, i)}`)
      writeFileSync(`${desk.folder}/price.csv`, `asset,t,value\n${prices.join('\n')}\n`)
      const rates = vintagesOn(d).map(({ i, out, v }) => `RATE,${date(i)},${date(out)},${v}`)
      writeFileSync(`${desk.folder}/rate.csv`, `asset,t,out,value\n${rates.join('\n')}\n`)
      const one = await desk.take([`${desk.folder}/price.csv`, '--as', 'price', '--available', 'end'], iso)
      const other = await desk.take(
        [`${desk.folder}/rate.csv`, '--as', 'rate', '--vintage', 'out', '--interval', '24h'],
        iso,
      )
      expect([one.message, other.message]).toEqual(['', ''])
      all.bring(d, at)
      rounds.push(at)
      const ended = await desk.run(['features', '--config', config, '--json'], iso)
      expect([ended.code, ended.message]).toEqual([0, ''])
      const told = (JSON.parse(ended.out) as { features: { name: string; status: string; waits_for: unknown }[] })
        .features
      expect(told.map(({ name, status, waits_for: waits }) => [name, status, waits])).toEqual([
        ['feature/step', 'proved', null],
        ['feature/mean', 'proved', null],
        ['feature/rate', 'proved', null],
        ['feature/rare', 'tested', null],
      ])
    }
    const last = Math.floor((rounds.at(-1) ?? 0) / day) * day
    const heldAt = (ts: number): number => rounds.find((at) => at >= ts + latency) ?? 0
    for (const name of Object.keys(features)) await expectTwin(desk, all, name, name, heldAt, last)
    const check = await desk.run(['features', '--check', '--json'])
    const { features: checked } = JSON.parse(check.out) as { features: object[] }
    expect(checked).toMatchObject(Array.from(checked, () => ({ rows: expect.any(Number), differing: 0 })))
    expect([check.code, checked.length]).toEqual([0, Object.keys(features).length])
    if (!isFullTier) return
    // Whole and at once, under other names: what came before its time is known to them, all else is the same.
    const again = declared(desk, { ...names, anew: 'step', late: 'rate' })
    const iso = new Date((last + day / 2) * 1000).toISOString()
    expect(await desk.run(['features', '--config', again], iso)).toMatchObject({ code: 0 })
    await expectTwin(desk, all, 'anew', 'step', () => last + day, last)
    await expectTwin(desk, all, 'late', 'rate', () => last + day, last)
    await expectTwin(desk, all, 'anew', 'step', heldAt, last)
    const [differing] = await desk.rows(
      `SELECT count(*) AS n FROM points a JOIN points b USING (t) WHERE a.metric = 'feature/rate' AND b.metric = 'feature/late' AND a.v IS DISTINCT FROM b.v`,
    )
    expect(Number(differing?.['n'])).toBeGreaterThan(0)
  })
})
