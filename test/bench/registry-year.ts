import { statSync } from 'node:fs'
import { mergeSmallFiles } from '../../src/maintenance/upkeep/compact.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { type RegistryRig, withRegistryRig } from '../helpers/registry-rig.ts'
import { makeViews } from '../helpers/views.ts'
import { changed, start, type World } from './registry-bodies.ts'
import { byTurns, judged, type Measured, median, scaled, told } from './measured.ts'

const day = 86_400

/** Thousands of files are not forced to the disk here. */
const disk = { ...realDisk, sync: async () => undefined, syncFolder: async () => undefined }

/** Bytes of a lake: its live tables, and the raw bodies beside them. */
export interface Bytes {
  readonly tables: number
  readonly raw: number
}

/** Takes a snapshot a day and merges small files every eighth, as the command does after each; `each` is told after every one. */
export async function daily(
  world: World,
  days: number,
  work: (rig: RegistryRig) => Promise<void>,
  each: (n: number, bytes: () => Promise<Bytes>) => Promise<void> = async () => undefined,
): Promise<void> {
  let body = JSON.stringify(world)
  await withRegistryRig(
    start,
    async (rig) => {
      const nowMicros = (): number => rig.clock.now * 1_000_000
      const deps = { ...commitDeps({ nowMicros, disk }), signal: new AbortController().signal }
      for (let n = 0; n <= days; n++) {
        if (n > 0) body = changed(world, n)
        const atEnd = async ({ ledger }: { ledger: Ledger }): Promise<void> =>
          void (n % 8 === 0 && (await mergeSmallFiles(ledger, deps)))
        await rig.snapshot({ deps: { atEnd, disk } })
        await each(n, async () => await bytesOf(rig.root))
        rig.clock.now += day
      }
      await work(rig)
    },
    { instead: () => new Response(body) },
  )
}

async function bytesOf(root: string): Promise<Bytes> {
  const ledger = await Ledger.openToRead(root)
  try {
    const sizes = new Map(liveFiles(ledger).map((file) => [file.path, file.table]))
    let [tables, raw] = [0, 0]
    for (const [path, table] of sizes) {
      const { size } = statSync(inLake(root, path))
      if (table === 'raw') raw += size
      else tables += size
    }
    return { tables, raw }
  } finally {
    ledger.close()
  }
}

const slower = 1.5

/** A query, and what of its answer must be the same upon both lakes. */
interface Question {
  readonly name: string
  readonly sql: string
}

const last = (days: number): string => new Date((start + days * day) * 1000).toISOString().slice(0, 10)

/** What a year of snapshots must not slow down; each asks for what both lakes know. */
function questions(days: number): readonly Question[] {
  const digest = (columns: string): string =>
    `count(*)::INTEGER AS n, sum(CAST(hash(${columns}) AS HUGEINT))::VARCHAR AS digest`
  const decisions = `(SELECT make_timestamptz(${(start + days * day + 7200) * 1_000_000} + i * 3600000000) AS ts FROM range(24) AS r(i))`
  return [
    { name: 'products', sql: `SELECT ${digest('id, name, status, record')} FROM products` },
    { name: 'deployments', sql: `SELECT ${digest('id, chain_id, status, record')} FROM deployments` },
    { name: 'provenance', sql: `SELECT ${digest('id, parent_id, record')} FROM provenance` },
    {
      name: 'history.products',
      sql: `SELECT ${digest('id, status, record')} FROM history.products WHERE valid_to = 'infinity'`,
    },
    { name: 'universe', sql: `SELECT ${digest('product_id, status, issuer_name, deployments')} FROM universe` },
    {
      name: 'snapshots.products',
      sql: `SELECT ${digest('id, status, record')} FROM snapshots.products WHERE snapshot_date = DATE '${last(days)}'`,
    },
    {
      name: 'pit_universe',
      sql: `WITH d AS (FROM ${decisions}) SELECT ${digest('ts, product_id, status')} FROM pit_universe('d')`,
    },
  ]
}

/** A year of daily snapshots against one snapshot of its last day, over the views, equal answers asserted. */
export async function benchYear(world: World, days: number, rounds = scaled(9)): Promise<Measured[]> {
  const lines: Measured[] = []
  await daily(world, days, async (year) => {
    const instead = (): Response => new Response(JSON.stringify(world))
    await withRegistryRig(
      start + days * day,
      async (single) => {
        await single.snapshot()
        for (const { root } of [year, single]) await makeViews(root)
        lines.push(await opening([year.root, single.root], days))
        const engines = [await open(year.root), await open(single.root)] as const
        try {
          for (const question of questions(days)) lines.push(await compare(question, engines, rounds, days))
        } finally {
          for (const engine of engines) engine.close()
        }
      },
      { instead },
    )
  })
  return lines
}

const open = async (root: string): Promise<Engine> =>
  await Engine.open(inLake(root, places.database), { readOnly: true, keepFiles: true })

/** What a first question costs in a session of its own, which has to open every file: the others are asked of open ones. */
async function opening(roots: readonly string[], days: number, rounds = scaled(5)): Promise<Measured> {
  const times: (readonly number[])[] = []
  for (let round = -1; round < rounds; round++) {
    const taken = await byTurns(
      round,
      roots.map((root) => async () => {
        const at = performance.now()
        using engine = await open(root)
        await engine.rows('SELECT count(*) FROM history.products')
        await engine.rows('SELECT count(*) FROM snapshots.products')
        return performance.now() - at
      }),
    )
    if (round >= 0) times.push(taken)
  }
  const [year = 0, single = 0] = [0, 1].map((side) => median(times.map((pair) => pair[side] ?? Number.NaN)))
  return told(
    `opened and asked for the first time: after ${days + 1} daily snapshots ${year.toFixed(1)} ms, after one ${single.toFixed(1)} ms, ratio ${(year / single).toFixed(2)}`,
  )
}

async function compare(
  { name, sql }: Question,
  [year, single]: readonly [Engine, Engine],
  rounds: number,
  days: number,
): Promise<Measured> {
  const times: [number, number][] = []
  for (let round = -1; round < rounds; round++) {
    const ways = [year, single].map((engine) => async () => await timed(engine, sql))
    const [[a, ours] = none, [b, theirs] = none] = await byTurns(round, ways)
    if (ours !== theirs || ours === '') throw new Error(`${name}: ${ours} after ${days} snapshots, ${theirs} after one`)
    if (round >= 0) times.push([a, b])
  }
  const ratio = median(times.map(([a, b]) => a / b))
  const ms = (side: 0 | 1): string => `${median(times.map((pair) => pair[side])).toFixed(1)} ms`
  const line = `${name} after ${days + 1} daily snapshots ${ms(0)}, after one ${ms(1)}, ratio ${ratio.toFixed(2)}`
  return judged(line, ratio, slower)
}

const none: [number, string] = [Number.NaN, '']

async function timed(engine: Engine, sql: string): Promise<[number, string]> {
  const at = performance.now()
  const rows = await engine.rows(sql)
  return [performance.now() - at, JSON.stringify(rows)]
}
