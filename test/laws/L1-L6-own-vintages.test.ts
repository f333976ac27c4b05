import { expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { randomOf } from '../helpers/random.ts'
import {
  assets,
  began,
  commits,
  day,
  drawVintages,
  importAll,
  iso,
  seconds,
  type Vintage,
} from '../helpers/dated-vintages.ts'
import { withDesk } from '../helpers/importing.ts'
import { rounds } from '../helpers/tiers.ts'

/*
 * Dated vintages, late, backdated and withdrawn ones among them: what joins answer at every state of knowledge, against
 * what the files said, by definition.
 */

interface State {
  readonly asOf: number
  readonly observedAsOf: number
  readonly skipNulls: boolean
  readonly vintage: 'last' | 'first'
}

/** The points of an asset that are known at an instant, the newest first, each with the value that it has there. */
function knownPoints(
  all: readonly Vintage[],
  asset: string,
  ts: number,
  state: State,
): { t: number; v: number | null }[] {
  const { asOf, observedAsOf, skipNulls, vintage } = state
  const known = all.filter(
    (one) => one.asset === asset && one.dated <= Math.min(ts, asOf) && one.observed <= observedAsOf,
  )
  const points = [...Map.groupBy(known, ({ t }) => t)].flatMap(([t, own]) => {
    const vintages = own.toSorted((a, b) => a.dated - b.dated)
    const counted = skipNulls && vintage === 'first' ? vintages.filter(({ v }) => v !== null) : vintages
    const v = (vintage === 'first' ? counted[0] : counted.at(-1))?.v
    return v === undefined || (skipNulls && v === null) ? [] : [{ t, v }]
  })
  return points.toSorted((a, b) => b.t - a.t)
}

const shown = (point: { t: number; v: number | null } | undefined): string =>
  point === undefined ? 'null null' : `${point.t} ${point.v}`

async function expectJoins(engine: Engine, all: readonly Vintage[], state: State, random: () => number): Promise<void> {
  const { asOf, observedAsOf, skipNulls, vintage } = state
  const told = JSON.stringify(state)
  const far = Number.isFinite
  await engine.run(`SET VARIABLE as_of = ${far(asOf) ? `'${iso(asOf)}'` : 'NULL'};
    SET VARIABLE observed_as_of = ${far(observedAsOf) ? `'${iso(observedAsOf)}'` : 'NULL'}`)
  const decisions = Array.from({ length: 70 }, () => {
    const near = all[Math.floor(random() * all.length)]
    const ts =
      random() < 0.5 ? (near?.dated ?? 0) + Math.floor(random() * 3) - 1 : began + Math.floor(random() * 90 * day)
    return { asset: assets[Math.floor(random() * 2)] ?? '', ts }
  })
  const rows = decisions.map(({ asset, ts }, id) => `(${id}, '${asset}', make_timestamptz(${ts}::BIGINT * 1000000))`)
  await engine.run(`CREATE OR REPLACE TEMP TABLE d AS SELECT * FROM (VALUES ${rows.join(', ')}) AS d (id, asset, ts)`)
  const ask = async (from: string, order: string): Promise<string[]> => {
    const found = await engine.rows(`SELECT epoch_us(t) // 1000000 AS t, v FROM ${from} ORDER BY ${order}`)
    return found.map(({ t, v }) => `${t === null ? null : Number(t)} ${v as number}`)
  }
  const options = `'24h', skip_nulls := ${skipNulls}, vintage := '${vintage}'`
  const owed = decisions.map(({ asset, ts }) => knownPoints(all, asset, ts, state))
  const newest = owed.map(([point]) => shown(point))
  for (const metric of ['own/number', 'own/object#/v'])
    expect(await ask(`pit_join('d', '${metric}', ${options})`, 'id'), `${metric} ${told}`).toEqual(newest)
  const long = await ask(`pit_long('d', ['own/number', 'own/object#/v'], ${options})`, 'id, metric')
  expect(long, told).toEqual(newest.flatMap((one) => [one, one]))
  const window = owed.flatMap((points) => (points.length === 0 ? [shown(undefined)] : points.slice(0, 3).map(shown)))
  const three = options.replace("'24h'", "'24h', 3")
  for (const metric of ['own/number', 'own/object#/v'])
    expect(await ask(`pit_window('d', '${metric}', ${three})`, 'id, nth'), `window ${metric} ${told}`).toEqual(window)
  if (skipNulls || vintage === 'first') return
  const points = assets.flatMap((asset) =>
    knownPoints(all, asset, Infinity, state).map((point) => `${asset} ${shown(point)}`),
  )
  const stored = await engine.rows(
    `SELECT asset, epoch_us(t) // 1000000 AS t, v FROM points WHERE metric = 'own/number' ORDER BY asset, t DESC`,
  )
  expect(
    stored.map(({ asset, t, v }) => `${asset as string} ${Number(t)} ${v as number}`),
    told,
  ).toEqual(points)
}

test('dated vintages, late, backdated and withdrawn ones, are answered as what the files said by then, at each as_of and observed_as_of', async () => {
  const first = Number(process.env['PITLAKE_VINTAGE_SEED'] ?? 1)
  for (let seed = first; seed < first + rounds('PITLAKE_OWN_VINTAGES', 1, 4); seed++)
    await withDesk(async (desk) => {
      const all = drawVintages(seed)
      expect(all.filter(({ v }) => v === null).length).toBeGreaterThan(9)
      const random = randomOf(seed + 1000)
      await importAll(desk, all)
      using engine = await desk.open()
      const instants = [Infinity, ...[0, 1].map(() => began + Math.floor(random() * 60 * day))]
      for (const observedAsOf of [Infinity, ...commits.slice(0, 2).map((text) => seconds(text) + 60)])
        for (const asOf of instants)
          for (const [skipNulls, vintage] of [
            [false, 'last'],
            [true, 'last'],
            [false, 'first'],
            [true, 'first'],
          ] as const)
            await expectJoins(engine, all, { asOf, observedAsOf, skipNulls, vintage }, random)
    })
}, 1_200_000)
