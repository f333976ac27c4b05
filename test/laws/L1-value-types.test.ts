// @module-tag full
import { expect, test } from 'vitest'
import { Engine } from '../../src/lake/store/engine.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { countValueChanges } from '../../src/lake/ledger/index-queries.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { arrivals, catalogue, metrics, withEveryView } from '../helpers/lakes/every-view.ts'
import { randomOf } from '../helpers/random.ts'
import { withLag } from '../helpers/lags.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { rounds } from '../helpers/tiers.ts'
import { isoOf } from '../helpers/instants.ts'
import { makeViews } from '../helpers/views.ts'

/** A point as the definition wants it: since when it is known and what it holds. */
interface Known {
  readonly metric: string
  readonly at: number
  readonly value: unknown
}

type Held = { readonly [key: string]: unknown }

const typeOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)

/** Every place of a value with its type and the type of what it stands in. */
function placesOf(
  value: unknown,
  path = '$',
  above: string | null = null,
): { path: string; type: string; above: string | null }[] {
  const own = { path, type: typeOf(value), above }
  if (Array.isArray(value)) return [own, ...value.flatMap((item) => placesOf(item, `${path}[*]`, path))]
  if (typeof value !== 'object' || value === null) return [own]
  return [own, ...Object.entries(value as Held).flatMap(([key, item]) => placesOf(item, `${path}.${key}`, path))]
}

/** What changed in the values of points, by the words of the documentation: a line for each change. */
function changesIn(points: readonly Known[]): string[] {
  const seen = points.flatMap(({ metric, at, value }) => placesOf(value).map((place) => ({ metric, at, ...place })))
  const first = (rows: readonly { at: number }[]): number => Math.min(...rows.map(({ at }) => at))
  const lines: string[] = []
  for (const rows of Map.groupBy(seen, ({ metric, path }) => `${metric} ${path}`).values()) {
    const [{ metric, path, above }] = rows as [(typeof seen)[number]]
    const say = (at: number, kind: string, value: string | null) =>
      lines.push(JSON.stringify([metric, path, at, kind, value]))
    const objects = seen.filter((row) => row.metric === metric && row.path === above && row.type === 'object')
    if (objects.length > 0 && first(rows) > first(objects)) say(first(rows), 'key', null)
    const typed = Map.groupBy(
      rows.filter(({ type }) => type !== 'null'),
      ({ type }) => type,
    )
    const types = [...typed].map(([type, own]) => ({ type, own, at: first(own) }))
    types.sort((a, b) => a.at - b.at || (a.type < b.type ? -1 : 1))
    for (const [n, { type, at, own }] of types.entries()) {
      if (at > (types[0]?.at ?? at)) say(at, 'type', `${types[n - 1]?.type} to ${type}`)
      for (const other of types.filter((one) => one.at > at)) {
        const later = own.filter((row) => row.at > other.at)
        if (later.length > 0) say(first(later), 'type', `${other.type} to ${type}`)
      }
    }
  }
  return lines.toSorted()
}

/** At how many instants a lake is asked. */
const cuts = rounds('PITLAKE_TYPE_CUTS', 6, 10)

const asked = `SELECT resource, path, epoch_us(first_seen) AS at, kind, value FROM schema_changes WHERE resource LIKE '%/%'`
const compared = [metrics.nested, metrics.plain]

async function told(engine: Engine): Promise<string[]> {
  const rows = await engine.rows<{ resource: string; path: string; at: bigint; kind: string; value: string | null }>(
    asked,
  )
  return rows.map((row) => JSON.stringify([row.resource, row.path, Number(row.at), row.kind, row.value])).toSorted()
}

/** What the definition makes of the points that the same session shows. */
async function owed(engine: Engine): Promise<string[]> {
  const rows = await engine.rows<{ metric: string; at: bigint; v: number | null; o: string | null }>(
    `SELECT metric, epoch_us(available_at) AS at, v, o FROM points WHERE coalesce(CAST(v AS VARCHAR), o) IS NOT NULL AND metric IN ('${compared.join("', '")}')`,
  )
  return changesIn(
    rows.map(({ metric, at, v, o }) => ({ metric, at: Number(at), value: v ?? (JSON.parse(o ?? '') as unknown) })),
  )
}

async function withEngine<T>(root: string, work: (engine: Engine) => Promise<T>): Promise<T> {
  using engine = await Engine.open(inLake(root, places.database), { readOnly: true, threads: 1 })
  return await work(engine)
}

/** How many the ledger counts, for the status. */
async function counted(root: string): Promise<number> {
  using ledger = await Ledger.openToRead(root)
  return countValueChanges(ledger)
}

test('under any as_of, observed_as_of and backfill the changes are those of the points, also when these are dated anew', () =>
  withEveryView(3, null, async (lake) => {
    const random = randomOf(11)
    const instants = arrivals(lake)
    const compare = async (): Promise<number> =>
      await withEngine(lake.root, async (engine) => {
        let lines = 0
        for (let n = 0; n < cuts; n++) {
          const at = (instants[Math.floor(random() * instants.length)] ?? 0) + [-1, 0, 1][n % 3]!
          const observed = lake.commits[Math.floor(random() * lake.commits.length)] ?? 0
          await engine.run(`SET VARIABLE as_of = ${n % 8 === 0 ? 'NULL' : `'${isoOf(at)}'`};
            SET VARIABLE observed_as_of = ${n % 2 === 0 ? 'NULL' : `'${isoOf(observed)}'`};
            SET VARIABLE backfill = '${n % 5 < 2 ? 'rule' : 'strict'}'`)
          const expected = await owed(engine)
          expect(await told(engine), `${n} ${isoOf(at)} ${isoOf(observed)}`).toEqual(expected)
          lines += expected.length
        }
        return lines
      })
    expect(await compare()).toBeGreaterThan(cuts)
    const before = await withEngine(lake.root, told)
    expect(await counted(lake.root)).toBe(before.length)
    expect(before.some((line) => line.includes('"key"'))).toBe(true)
    expect(before.filter((line) => line.includes('object to array') || line.includes('array to object'))).toHaveLength(
      2,
    )
    const deps = rewriteDeps()
    deps.clock.now = (lake.commits.at(-1) ?? 0) / 1_000_000 + 86_400
    expect((await redate(lake.root, withLag(metrics.nested, 86_400), deps)).made).toBe(true)
    await makeViews(lake.root, { catalogue })
    expect(await withEngine(lake.root, told)).not.toEqual(before)
    expect(await compare()).toBeGreaterThan(cuts)
  }))
