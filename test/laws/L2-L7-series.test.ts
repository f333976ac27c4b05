import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { verdict } from '../../src/sources/metrics/run-summary.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { makeViews } from '../helpers/views.ts'
import { pitlake } from '../helpers/command.ts'
import { inWindow } from '../helpers/days.ts'
import { randomOf } from '../helpers/random.ts'
import { exitOf } from '../helpers/looking.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { seeds } from '../helpers/tiers.ts'

/*
 * One table of values that grows, comes late and is told otherwise, by every way into a lake: asked of a provider,
 * imported, imported as bars, imported as revisable, and derived from what was imported. The same properties hold of
 * each series.
 */

const day = 86_400
const first = Date.UTC(2024, 2, 1) / 1000
const iso = (at: number): string => new Date(at * 1000).toISOString()
const bits = (v: number): string => Buffer.from(new Float64Array([v]).buffer).toString('hex')

type Told = ReadonlyMap<number, number>

/** What was said of each day, in order; a value that is said again is said once. */
class Archive {
  readonly said = new Map<number, { readonly v: number; readonly at: number }[]>()
  tell(told: Told, at: number): void {
    for (const [t, v] of told) {
      const own = this.said.get(t) ?? []
      this.said.set(t, own)
      if (own.length === 0 || (own.at(-1)?.v !== v && !own.slice(0, -1).some((one) => one.v === v && one.at === at)))
        own.push({ v, at })
    }
  }
}

/** Values that are hard to keep, and usual ones. */
const odd = [5e-324, 1.7976931348623157e308, 0.1 + 0.2, -1 / 3, 0, 123_456_789.123_456_78]

/**
 * What is told in a round: days up to it, of which the first round lacks some that come later, and the second changes
 * some.
 */
function roundOf(random: () => number, before: Told, days: number): Told {
  const told = new Map<number, number>()
  for (let n = 0; n < days; n++) {
    const t = first + n * day
    const known = before.get(t)
    // What is missing is older than what a feature would wait for.
    if (known === undefined && n > 0 && n < days - 4 && random() < 0.2 && before.size === 0) continue
    const drawn = random() < 0.3 ? (odd[Math.floor(random() * odd.length)] ?? 0) : (random() - 0.5) * 1e6
    told.set(t, known === undefined || random() < 0.15 ? drawn : known)
  }
  return told
}

const asked = 'indicators/sopr_adjusted_pit'
const feature = `features: { level: { why: a test, grid: 24h, assets: [BTC], since: ${iso(first + day)}, sql: "SELECT ts, asset, v FROM pit_join('grid', 'own/plain', '24h')" } }`

/** The ways in: how each is told a table, and of which the first value stays. */
const imports: Readonly<Record<string, readonly string[]>> = {
  'own/plain': ['--value', 'close', '--available', 'end'],
  'own/bars': ['--components', 'open,close', '--available', 'open=start,close=end'],
  'own/revised': ['--value', 'close', '--revisable', '--available', 'end'],
}

/** Tells all of them a table; the worst exit code of each. */
async function bring(
  own: OwnProvider,
  told: Told,
  archives: ReadonlyMap<string, Archive>,
): Promise<Record<string, number>> {
  const folder = dirname(own.root)
  const at = own.clock.now
  own.answer((path, query) => {
    if (path === 'assets') return { status: 404 }
    const sent = inWindow(
      query,
      [...told].map(([t, v]) => ({ t, v })),
    )
    archives.get(asked)?.tell(new Map(sent.map(({ t, v }) => [t, v])), at)
    return sent
  })
  const since = { assets: ['BTC'], paths: [asked], intervals: ['24h'] as const, since: first }
  const codes: Record<string, number> = { [asked]: exitOf(verdict(await own.fetch(since))) }
  const rows = [...told].map(([t, v]) => `BTC,${iso(t)},${v / 4},${v}`)
  const file = join(folder, `${Math.round(first)}.csv`)
  writeFileSync(file, `asset,t,open,close\n${rows.join('\n')}\n`)
  writeFileSync(join(folder, 'f.yaml'), feature)
  writeFileSync(join(folder, 'c.yaml'), `catalogs: [f.yaml]\n`)
  for (const [name, mapping] of Object.entries(imports)) {
    archives.get(name)?.tell(told, at)
    const config = name === 'own/plain' ? ['--config', join(folder, 'c.yaml')] : []
    const argv = ['import', file, '--as', name.slice(4), ...mapping, '--data', own.root, '--interval', '24h', ...config]
    codes[name] = (await pitlake(folder, argv, {}, { now: () => at * 1000 })).code
  }
  await makeViews(own.root, { catalogue })
  return codes
}

/** Day and value of every point of a series as the lake tells them, the last vintage of each. */
async function valuesIn(engine: Engine, name: string): Promise<string[]> {
  const from = name === 'own/bars' ? `components WHERE component = '/close' AND` : 'points WHERE'
  const rows = await engine.rows<{ t: bigint; v: number }>(
    `SELECT CAST(epoch(t) AS BIGINT) AS t, v FROM ${from} metric = '${name}' ORDER BY t`,
  )
  return rows.map(({ t, v }) => `${t} ${v === null ? 'null' : bits(v)}`)
}

/** By definition: what stands of a day. */
function standing(archives: ReadonlyMap<string, Archive>, name: string, now: number): string[] {
  const archive = archives.get(name)
  if (archive !== undefined)
    return [...archive.said]
      .toSorted(([a], [b]) => a - b)
      .map(([t, own]) => `${t} ${bits((name === 'own/revised' ? own.at(-1) : own[0])?.v ?? NaN)}`)
  // The feature: at each midnight the newest value that was known then.
  const plain = [...(archives.get('own/plain')?.said ?? [])].toSorted(([a], [b]) => a - b)
  const began = plain[0]?.[1][0]?.at ?? 0
  return Array.from({ length: Math.floor((now - first) / day) }, (_, n) => first + (n + 1) * day).map((ts) => {
    const known = plain.filter(
      ([t, [one]]) => t + day <= ts && (one?.at === began || t > began - day || (one?.at ?? 0) <= ts),
    )
    return `${ts - day} ${bits(known.at(-1)?.[1][0]?.v ?? NaN)}`
  })
}

/** L5: each day between the first and the last of a series is told by one window. */
async function expectComplete(engine: Engine, name: string): Promise<void> {
  const rows = await engine.rows<{ t: bigint; n: bigint; held: boolean; state: string }>(
    `SELECT CAST(epoch(d.ts) AS BIGINT) AS t, count(c.state) AS n, any_value(c.state || coalesce(c.reason, '')) AS state,
       bool_or(EXISTS (FROM points p WHERE p.metric = '${name}' AND p.t = d.ts)) AS held
     FROM (SELECT unnest(generate_series(min(t), max(t), INTERVAL 1 DAY)) AS ts FROM points WHERE metric = '${name}') AS d
     LEFT JOIN coverage AS c ON c.metric = '${name}' AND c.since <= d.ts AND d.ts < c.until GROUP BY d.ts`,
  )
  for (const { t, n, held, state } of rows)
    expect([name, t, Number(n), state]).toEqual([name, t, 1, held ? 'covered' : 'coveredgap'])
}

test('L2, L4 to L7: late and changed values keep the laws by every way into a lake', async () => {
  for (const seed of seeds('PITLAKE_SERIES', 2))
    await withProvider(first + 20 * day + 3600, async (own) => {
      const random = randomOf(seed)
      const archives = new Map([asked, ...Object.keys(imports)].map((name) => [name, new Archive()]))
      const names = [...archives.keys(), 'feature/level']
      const kept: { readonly at: number; readonly values: readonly string[][] }[] = []
      let told: Told = new Map()
      for (const days of [20, 24]) {
        own.clock.now = first + days * day + 3600
        told = roundOf(random, told, days)
        const codes = await bring(own, told, archives)
        using engine = await Engine.open(inLake(own.root, places.database), { readOnly: true, threads: 1 })
        for (const name of names) {
          expect(await valuesIn(engine, name), `${name} in round ${days}`).toEqual(
            standing(archives, name, own.clock.now),
          )
          await expectComplete(engine, name)
          // L2: what was told otherwise is a violation, of a revisable one another vintage.
          const revised = [...(archives.get(name)?.said ?? [])].reduce((sum, [, one]) => sum + one.length - 1, 0)
          const [count] = await engine.rows<{ n: bigint; m: bigint }>(
            `SELECT (SELECT count(*) FROM violations WHERE metric = '${name}') AS n, (SELECT count(*) - count(DISTINCT t) FROM vintages WHERE metric = '${name}') AS m`,
          )
          const isRevised = name === 'own/revised'
          const differing = isRevised || archives.get(name) === undefined ? 0 : revised
          expect([name, Number(count?.n), Number(count?.m), codes[name] ?? 0]).toEqual([
            name,
            differing,
            isRevised ? revised : 0,
            differing > 0 ? 4 : 0,
          ])
        }
        const [newest] = await engine.rows<{ at: bigint }>('SELECT epoch_us(max(committed_at)) AS at FROM versions')
        kept.push({
          at: Number(newest?.at),
          values: await Promise.all(names.map(async (name) => await valuesIn(engine, name))),
        })
      }
      // L4: the same again is nothing.
      const counts = `SELECT (SELECT max(version) FROM versions) AS v, (SELECT count(*) FROM violations) AS n, (SELECT count(*) FROM vintages) AS p`
      const count = async (): Promise<unknown> => {
        using engine = await Engine.open(inLake(own.root, places.database), { readOnly: true, threads: 1 })
        return await engine.rows(counts)
      }
      const before = await count()
      own.clock.now += 1800
      await bring(own, told, archives)
      expect(await count()).toEqual(before)
      // L6: what was held then.
      using engine = await Engine.open(inLake(own.root, places.database), { readOnly: true, threads: 1 })
      for (const { at, values } of kept) {
        await engine.run(`SET VARIABLE observed_as_of = make_timestamptz(${at})`)
        for (const [n, name] of names.entries())
          expect(await valuesIn(engine, name), `${name} at ${at}`).toEqual(values[n])
      }
    })
})
