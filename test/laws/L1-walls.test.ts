// @module-tag slow
import { readdirSync, rmSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { refusalOf } from '../../src/query/gate.ts'
import { judgeScans } from '../../src/query/gate-plan.ts'
import { openQuery, setMoment, setVariables } from '../../src/query/lake.ts'
import { judgeQuestion, type Knowledge } from '../../src/query/question.ts'
import { runCancellable } from '../../src/query/run.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { arrivals, type EveryViewLake, withEveryView } from '../helpers/lakes/every-view.ts'
import { ledgerViews } from '../helpers/probes.ts'
import { rounds } from '../helpers/tiers.ts'
import { seeded } from '../helpers/random.ts'
import { truncationOf } from '../helpers/truncation.ts'
import { isoOf } from '../helpers/instants.ts'
import { multiset } from '../helpers/views.ts'
import { type Asked, Grammar, macroNames, type Shown, timelessNames } from './walls-grammar.ts'

/*
 * A stranger asks at a door that stands at an instant: the statement is refused in words that tell no path and no mark,
 * or its answer is that of a lake that physically holds only what was knowable by then. `PITLAKE_WALLS` is how many
 * statements are tried, `PITLAKE_WALLS_SEED` draws others. At every fourth one the first wall is not there.
 */
const wanted = rounds('PITLAKE_WALLS', 100, 500)
const seed = Number(process.env['PITLAKE_WALLS_SEED'] ?? 20_261_125)
const perCut = 60
const mark = 'mark_5b1e0c7f9d3a48629f10aa77c0de4b35'

/** What came of a statement: the bag of its rows, or that it was refused, or that it failed while it ran. */
type Outcome =
  | { readonly rows: number; readonly digest: string }
  | { readonly refused: string }
  | { readonly failed: string }

/** Rows and digest of a bag. */
async function bagOf(engine: Engine, sql: string): Promise<{ readonly rows: number; readonly digest: string }> {
  const [row] = await engine.rows<{ rows: bigint; digest: string }>(
    `SELECT count(*) AS "rows", CAST(coalesce(sum(CAST(hash(r) AS HUGEINT)), 0) AS VARCHAR) AS digest FROM (${sql}\n) AS r`,
  )
  return { rows: Number(row?.rows ?? 0), digest: row?.digest ?? '' }
}

/** Asks as a door does, or past its first wall. */
async function askDoor({ door, folder, knowledge }: Sides, sql: string, whole: boolean): Promise<Outcome> {
  const run = { folder, sleep: setTimeout, mark }
  let judged = sql
  try {
    if (whole) judged = (await judgeQuestion({ sql, knowledge }, door, run)).ready.text
    else await judgeScans(door, sql, mark, refusalOf)
  } catch (error) {
    if (!(error instanceof LakeError)) {
      // What cannot be bound fails in the engine's words, which the first wall would have hushed.
      if (!whole) return { failed: String(error) }
      throw new Error(`${sql}: ${String(error)}`, { cause: error })
    }
    expect(error.message, sql).not.toMatch(new RegExp(`${mark}|${folder}`))
    return /a query that only reads|one SELECT/.test(error.message)
      ? { refused: error.message }
      : { failed: error.message }
  }
  try {
    return await runCancellable(door, judged, run, async () => await bagOf(door, judged))
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    expect(words, sql).not.toMatch(new RegExp(`${mark}|${folder}`))
    return { failed: words }
  }
}

/** The views of a lake, but for what differs from lake to lake. */
async function shownIn(engine: Engine): Promise<Shown[]> {
  const rows = await engine.rows<{ name: string; columns: string }>(
    `SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || table_name AS name,
       CAST(to_json(list([column_name, data_type] ORDER BY column_index)) AS VARCHAR) AS columns
     FROM duckdb_columns() WHERE NOT internal AND table_name <> 'lake_info' GROUP BY ALL ORDER BY ALL`,
  )
  return rows.map(({ name, columns }) => ({ name, columns: JSON.parse(columns) as [string, string][] }))
}

/** What the ledger told at an instant, as tables of the cut lake: what it then held, by law L6. */
async function cutLedger(cut: Engine, at: number): Promise<void> {
  // The cut before this one stood at another instant.
  await cut.run(`SET VARIABLE ledger_as_of = NULL; SET VARIABLE observed_as_of = make_timestamptz(${at})`)
  for (const view of ledgerViews) {
    await cut.run(`DROP TABLE IF EXISTS temp.${view}`)
    await cut.run(`CREATE TEMP TABLE ${view} AS FROM memory.main.${view}`)
  }
  await cut.run('SET VARIABLE observed_as_of = NULL')
}

/**
 * Lists in the cut lake only the user metrics of which it holds a point: a lake of that instant had imported no other.
 */
async function cutUserMetrics(cut: Engine): Promise<void> {
  await cut.run(`CREATE OR REPLACE TEMP TABLE endpoints AS FROM memory.main.endpoints
    WHERE source <> 'imported' OR metric IN (SELECT metric FROM memory.main.points)`)
}

/** Where the statements are asked: at the middle, where something is known of everything, then around what arrives. */
function instantsOf(lake: EveryViewLake, count: number, random: () => number): number[] {
  const all = arrivals(lake)
  const late = all.slice(Math.floor(all.length / 3))
  return Array.from({ length: count }, (_, n) => {
    if (n === 0) return lake.commits[6] ?? 0
    const from = n % 3 === 0 ? lake.commits.slice(2) : late
    return (from[Math.floor(random() * from.length)] as number) + Math.floor(random() * 3) - 1
  })
}

test(`TIME 52: ${wanted} statements of seed ${seed} get past no as_of limit of an interface`, {
  timeout: 7_200_000,
}, async () => {
  const tried = async (lake: EveryViewLake): Promise<void> => {
    const cutFolder = `${lake.root}-cut`
    try {
      expect(await tryWalls(lake, cutFolder)).toEqual([])
    } finally {
      rmSync(cutFolder, { recursive: true, force: true })
    }
  }
  // A file of bars holds parts that are known before the whole: no cut of files is without `as_of`.
  await withEveryView(seed, null, tried, { bars: false })
})

/** The statements that were answered otherwise than by the lake that was cut. */
async function tryWalls(lake: EveryViewLake, cutFolder: string): Promise<readonly string[]> {
  const { root: folder } = lake
  const random = seeded(seed)
  using truncated = await truncationOf(lake, cutFolder)
  using desk = await openQuery(folder, { mark, threads: 1 })
  const views = await shownIn(desk)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.parquet'))
  const names = [...views.map(({ name }) => name), ...macroNames, ...timelessNames]
  const tally: Tally = { told: new Map(), answered: 0, filled: 0, refused: 0, failed: 0, unlike: [] }
  let number = 0
  for (const at of instantsOf(lake, 1 + Math.ceil(wanted / perCut), random)) {
    const backfill = number > 0 && random() < 0.3 ? 'rule' : undefined
    const knowledge = { asOf: isoOf(at), backfill } as const
    using door = await desk.session()
    await setVariables(door, knowledge)
    await setMoment(door, 'ledger_as_of', knowledge.asOf)
    await truncated.cut({ at, rule: backfill === 'rule', registryBackfill: false, parts: false })
    await cutLedger(truncated.engine, at)
    await truncated.engine.run(`SET TimeZone = 'UTC'; SET VARIABLE backfill = '${backfill ?? 'strict'}'`)
    await cutUserMetrics(truncated.engine)
    // When a point was stored the door tells only as far as it stands; so does the lake that was cut.
    await setMoment(truncated.engine, 'ledger_as_of', knowledge.asOf)
    const sides: Sides = { door, cut: truncated.engine, folder, cutFolder, knowledge }
    const grammar = new Grammar(random, { views, folder, files, asOf: `make_timestamptz(${at})` })
    // At first all of each, where something is known of it.
    const until = Math.min(wanted, number + (number === 0 ? names.length : perCut))
    for (; number < until; number++) {
      const hostility = number < names.length ? 0 : number % 2 === 0 ? 0.5 : 0.02
      await tryOne(sides, grammar.about(names[number % names.length] as string, hostility), random() < 0.75, tally)
    }
  }
  const { told, unlike, ...counts } = tally
  process.stdout.write(`walls: ${number} statements of seed ${seed}: ${JSON.stringify(counts)}\n`)
  // Nothing holds because nothing was told: most are answered, and by whatever there is.
  expect(names.filter((name) => (told.get(name) ?? 0) === 0)).toEqual([])
  expect(counts.filled).toBeGreaterThan(wanted / 2)
  expect(counts.refused).toBeGreaterThan((wanted - names.length) / 10)
  return unlike
}

interface Tally {
  /** Rows by what they were asked of. */
  readonly told: Map<string, number>
  answered: number
  filled: number
  refused: number
  failed: number
  readonly unlike: string[]
}

/** A door that stands at an instant, and the lake that was cut there. */
interface Sides {
  readonly door: Engine
  readonly cut: Engine
  readonly folder: string
  readonly cutFolder: string
  readonly knowledge: Knowledge & { readonly asOf: string }
}

/** One statement on both sides; what names a file of the lake names that of the cut one there. */
async function tryOne(sides: Sides, { sql, about }: Asked, whole: boolean, tally: Tally): Promise<void> {
  const seen = await askDoor(sides, sql, whole)
  if ('refused' in seen) {
    tally.refused++
    return
  }
  const { door, cut, folder, cutFolder, knowledge } = sides
  const same = sql.replaceAll(folder, cutFolder)
  const due: Outcome = await bagOf(cut, same).catch((error: unknown) => ({ failed: String(error) }))
  if ('failed' in seen) tally.failed++
  else {
    tally.answered++
    if (seen.rows > 0) tally.filled++
    tally.told.set(about, (tally.told.get(about) ?? 0) + seen.rows)
  }
  // The door fails where the cut lake fails: an error may tell as much as a row.
  if ('failed' in seen ? 'failed' in due : 'digest' in due && seen.digest === due.digest) return
  const lines = [JSON.stringify(knowledge), sql, `at the door: ${JSON.stringify(seen)}, cut: ${JSON.stringify(due)}`]
  if ('digest' in seen && 'digest' in due) {
    const got = multiset(await door.rows(sql))
    const want = multiset(await cut.rows(same))
    const most = <T>(rows: readonly T[]): readonly T[] => rows.slice(0, 3)
    lines.push(...most(got.filter((row) => !want.includes(row))).map((row) => `too much: ${row}`))
    lines.push(...most(want.filter((row) => !got.includes(row))).map((row) => `missing: ${row}`))
  }
  tally.unlike.push(lines.join('\n'))
}
