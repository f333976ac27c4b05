import { loadCatalogue } from '../../../src/catalog/load.ts'
import { Ledger } from '../../../src/lake/ledger/ledger.ts'
import { storedVersions } from '../../../src/lake/ledger/index-queries.ts'
import { randomOf } from '../random.ts'
import { type OwnProvider, withProvider } from '../provider.ts'
import { makeViews } from '../views.ts'

/*
 * Archives: all that was ever said of a point, as rows of (metric, asset, t, version, value), and what is to be
 * answered from them, by definition. Nothing of this calls what it tries.
 */

/** Two revisable metrics whose points come whole with each answer, and one of which no value ever changes. */
export const rate = 'macro/rate'
export const level = 'macro/level'
export const still = 'macro/still_pit'
const row = (path: string, revisable: boolean): string =>
  `  - { path: ${path}, intervals: [24h], takes: [], revisable: ${revisable} }\n`
const text = `endpoints:\n${row(rate, true)}${row(level, true)}${row(still, false)}availability:\n  - { paths: ["macro/*"], lag: 0s, basis: assumed, reason: a test }\n`
export const archiveCatalogue = (() => {
  const { wire, ...rest } = loadCatalogue([], undefined, [{ name: 'archives.yaml', text }])
  return { ...rest, wire: { ...wire, metadata: null } }
})()

/** A value that somebody was told: `at` is the instant of the version that brought it, microseconds; `t` in seconds. */
export interface Said {
  readonly metric: string
  readonly asset: string
  readonly t: number
  readonly at: number
  readonly v: number | null
}

/** What was said of each point first, and each time that it was another than before, oldest first. */
export function changesIn(rows: readonly Said[]): Said[] {
  const last = new Map<string, number | null>()
  return rows.filter(({ metric, asset, t, v }) => {
    const key = `${metric} ${asset} ${t}`
    if (last.has(key) && last.get(key) === v) return false
    last.set(key, v)
    return true
  })
}

/** A lake that asked a provider several times, and the archive of what it was told. */
export interface ArchiveLake {
  readonly root: string
  readonly changes: readonly Said[]
  /** The instants of its versions, microseconds. */
  readonly versions: readonly number[]
  readonly assets: readonly string[]
  readonly own: OwnProvider
  /** Another value from now on. */
  revise(metric: string, asset: string, t: number, v: number): void
}

const day = 86_400
/** The first t of all. */
export const began = Date.UTC(2024, 2, 1) / 1000

interface Size {
  readonly assets: number
  readonly versions: number
}

/** Makes a lake of random archives, two for each asset, from a seed. */
export async function withArchives(
  seed: number,
  { assets: many, versions: times }: Size,
  work: (lake: ArchiveLake) => Promise<void>,
): Promise<void> {
  const random = randomOf(seed)
  const assets = Array.from({ length: many }, (_, n) => `A${n}`)
  const now = new Map<string, number | null>()
  const value = (): number | null => (random() < 0.1 ? null : Math.floor(random() * 4))
  const revise = (metric: string, asset: string, t: number, v: number): void =>
    void now.set(`${metric} ${asset} ${t}`, v)
  await withProvider(began + 3 * day, async (own) => {
    const said: Said[] = []
    const versions: number[] = []
    let asked = 0
    let told: { metric: string; asset: string; points: { t: number; v: number | null }[] }[] = []
    own.answer((path, query) => {
      const asset = query.get('a') ?? ''
      const points = [...now].flatMap(([key, v]) => {
        const [metric, of, t] = key.split(' ')
        return metric === path && of === asset ? [{ t: Number(t), v }] : []
      })
      told.push({ metric: path, asset, points })
      return points
    })
    for (let version = 0; version < times; version++) {
      for (const metric of [rate, level, still])
        for (const asset of assets)
          for (let t = began; t + day <= own.clock.now; t += day) {
            const key = `${metric} ${asset} ${t}`
            // What never changes comes at once or never: it is known by its rule.
            const due = metric !== still || t + day > asked
            // Every other version only revises: then the newest point has several values, too.
            const fresh = due && version % 2 === 0 && !now.has(key) && random() < 0.8
            if (fresh || (now.has(key) && metric !== still && random() < 0.25)) now.set(key, value())
          }
      told = []
      asked = own.clock.now
      const selection = { paths: [rate, level, still], assets, since: began }
      const before = versions.at(-1) ?? 0
      const summary = await own.fetch(selection, { input: { catalogue: archiveCatalogue } })
      using ledger = await Ledger.open(own.root)
      const made = storedVersions(ledger).filter((one) => one.committed_at > before && one.points_added > 0)
      if (summary.violations > 0 || made.length > 1) throw new Error(`${summary.violations} ${made.length}`)
      const at = made[0]?.committed_at
      if (at !== undefined) {
        versions.push(at)
        for (const { points, ...one } of told)
          for (const point of points)
            said.push({ ...one, ...point, at: one.metric === still ? (point.t + day) * 1_000_000 : at })
      }
      own.clock.now += day * (1 + Math.floor(random() * 2))
    }
    await makeViews(own.root, { catalogue: archiveCatalogue })
    await work({ root: own.root, changes: changesIn(said), versions, assets, own, revise })
  })
}

/** The last of each point at an instant (microseconds), in the order of metric, asset and t. */
export function knownAt(changes: readonly Said[], asOf: number): Said[] {
  const known = new Map<string, Said>()
  for (const one of changes) if (one.at <= asOf) known.set(`${one.metric} ${one.asset} ${one.t}`, one)
  return sorted([...known.values()])
}

/** In the order of metric, asset, t, and when it was said. */
export function sorted(rows: readonly Said[]): Said[] {
  const sign = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0)
  return rows.toSorted((a, b) => sign(a.metric, b.metric) || sign(a.asset, b.asset) || a.t - b.t || a.at - b.at)
}

/**
 * The newest points of a series known at an instant, the newest first, each as it was known then; by `first` as it was
 * told first.
 */
export function newestAt(
  changes: readonly Said[],
  of: { readonly metric: string; readonly asset: string },
  ts: number,
  first = false,
): Said[] {
  const own = changes.filter((one) => one.metric === of.metric && one.asset === of.asset && one.at <= ts)
  const known = new Map<number, Said>()
  for (const one of own) if (!first || !known.has(one.t)) known.set(one.t, one)
  return [...known.values()].toSorted((a, b) => b.t - a.t)
}
