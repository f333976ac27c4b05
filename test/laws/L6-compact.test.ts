// @module-tag full
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { storedRules, storedVersions, storedViolations, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { writeStamp } from '../../src/lake/ledger/stamps.ts'
import { readPoints } from '../../src/query/views/relations.ts'
import { inFolder } from '../helpers/folders.ts'
import { test as it } from '../helpers/lake-test.ts'
import { withLag } from '../helpers/lags.ts'
import { answers, pointsAt } from '../helpers/points-at.ts'
import {
  day,
  everyKind,
  metrics,
  provider,
  rewriteDeps,
  seriesId,
  start,
  topUp,
  topUps,
} from '../helpers/lakes/top-ups.ts'

const catalogue = loadCatalogue()
const buildViews = (): Promise<void> => Promise.resolve()

type Step =
  | { readonly kind: 'top-up'; readonly metric: number; readonly late: boolean }
  | { readonly kind: 'merge' | 'compact' | 'vacuum' | 'stamp' | 'redate' }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('top-up' as const),
        metric: fc.nat(everyKind.length - 1),
        late: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constantFrom('merge' as const, 'compact', 'vacuum', 'stamp', 'redate') }),
    },
  ),
  { minLength: 4, maxLength: 9 },
)

/**
 * Does the steps, then asks every version that ever was what it was asked when it was new: those that answer otherwise.
 */
async function live(root: string, plan: readonly Step[]): Promise<number[]> {
  const deps = rewriteDeps()
  using ledger = await Ledger.open(root)
  const told = new Map<number, string>()
  const days = everyKind.map(() => 0)
  let lag = 0
  for (const step of plan) {
    deps.clock.now += 3600
    const before = ledger.head()
    if (step.kind === 'top-up') {
      const since = days[step.metric] ?? 0
      days[step.metric] = since + 15
      const late = step.late && since > 0 ? [since - 11] : []
      const metric = everyKind[step.metric] ?? metrics[0]
      await topUp(ledger, deps, { metric, since, days: 15, skip: [since + 4], late })
    } else if (before.version === 0) continue
    else if (step.kind === 'merge') await mergeSmallFiles(ledger, deps)
    else if (step.kind === 'compact') await compact(root, deps)
    else if (step.kind === 'vacuum') await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews })
    else if (step.kind === 'redate') await redate(root, withLag(metrics[0], ++lag * 100), deps)
    else await stamp(ledger, before.version, deps)
    await ledger.catchUp()
    const { committed_at } = ledger.head()
    const now = await answers(ledger, null)
    // What neither brings nor dates points changes no answer.
    if (step.kind !== 'top-up' && step.kind !== 'redate') expect(now).toBe(told.get(before.committed_at))
    told.set(committed_at, now)
  }
  const unlike: number[] = []
  for (const [at, said] of told) if ((await answers(ledger, at)) !== said) unlike.push(at)
  return unlike
}

/** Pins a version as a stamped result does. */
async function stamp(ledger: Ledger, version: number, deps: ReturnType<typeof rewriteDeps>): Promise<void> {
  const id = version.toString(16).padStart(16, '0')
  const about = { schema_version: 1, lake: ledger.head().lake ?? '', program: deps.program, rules: null, files: [] }
  const one = { ...about, id, version, digest: 'd', query_digest: 'q', path: null, at: 0, detail: null }
  await writeStamp(realDisk, ledger.root, inLake(ledger.root, 'stamp.tmp'), one)
  await ledger.catchUp()
}

describe('L1, L6: any order of top-ups, merges, redates and vacuums', () => {
  it('TIME 54: gives the same answers at every version that ever was', async () => {
    await fc.assert(
      fc.asyncProperty(
        steps,
        async (plan) => await inFolder(async (root) => expect(await live(root, plan)).toEqual([])),
      ),
      { numRuns: 3, endOnFailure: true },
    )
  }, 300_000)
})

describe('L4, L6: vacuum', () => {
  it('says first, frees what is old, keeps what is stamped or young, and then finds nothing', async ({ root }) => {
    const deps = rewriteDeps()
    using ledger = await Ledger.open(root)
    for (let n = 0; n < 3; n++) await topUp(ledger, deps, { metric: metrics[0], since: n * 10, days: 10 })
    const v = { series: seriesId(metrics[0], 0), t: start, kind: 'value', stored: '1', offered: '2', stored_at: 1 }
    const violation = { ...v, offered_at: 2, request: null }
    await topUp(ledger, deps, { metric: metrics[0], since: 30, days: 1, more: { violations: [violation] } })
    await stamp(ledger, 2, deps)
    deps.clock.now += 10
    await compact(root, deps)
    const ask = async (keepSeconds: number, really: boolean) =>
      await vacuum({ root, keepSeconds, really }, { ...deps, buildViews })
    deps.clock.now += day
    expect((await ask(2 * day, false)).data.files).toBe(0)
    const dry = await ask(0, false)
    expect(dry).toMatchObject({ dry_run: true, data: { files: 2 }, stamped: { files: 2 } })
    const said = await answers(ledger, null)
    expect((await ask(2 * day, true)).data.files).toBe(0)
    const done = await ask(0, true)
    expect({ ...done, dry_run: true, version: 0 }).toEqual({ ...dry, version: 0 })
    const { version } = await ledger.catchUp()
    expect(await ask(0, true)).toMatchObject({ version, data: { files: 0 } })
    expect(storedVersions(ledger).at(-1)).toMatchObject({ job: 'vacuum', files_dropped: 2, points_added: 0 })
    expect(storedViolations(ledger)).toHaveLength(1)
    // The stamped version's own files are there and hold what it held.
    const stamped = liveFiles(ledger, { version: 2 })
    expect(stamped).toHaveLength(2)
    expect(stamped.every((file) => file.dropped_version === null)).toBe(true)
    expect(await answers(ledger, null)).toBe(said)
  })

  it('frees folded journal entries, and the lake can still be made from what is left', async ({ root }) => {
    const deps = rewriteDeps()
    using ledger = await Ledger.open(root)
    await topUp(ledger, deps, { metric: metrics[0], since: 0, days: 10 })
    for (let n = 0; n < 130; n++) await commit(ledger, { job: 't', run: 'r', provider, state: { n } }, deps)
    deps.clock.now += day
    await compact(root, deps)
    const freed = await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews })
    expect(freed.journal.files).toBeGreaterThan(120)
    await ledger.catchUp()
    const rebuilt = await Ledger.inMemory(root)
    expect(rebuilt.head()).toEqual(ledger.head())
    expect(liveFiles(rebuilt)).toEqual(liveFiles(ledger))
    rebuilt.close()
    // What was freed is not needed by the next one either: for months, dry and really.
    for (let month = 0; month < 3; month++) {
      for (let n = 0; n < 130; n++) await commit(ledger, { job: 't', run: 'r', provider, state: { month, n } }, deps)
      deps.clock.now += 30 * day
      const ask = async (really: boolean) =>
        await vacuum({ root, keepSeconds: 7 * day, really }, { ...deps, buildViews })
      await ask(false)
      expect((await ask(true)).journal.files).toBeGreaterThan(120)
      expect((await ask(false)).journal.files).toBe(0)
      await ledger.catchUp()
      using left = await Ledger.inMemory(root)
      expect(liveFiles(left)).toEqual(liveFiles(ledger))
    }
  })
})

describe('L6: every clock of a point', () => {
  it.each(['own', 'recent'] as const)('every clock of a point survives a merge of its file: %s', (level) =>
    inFolder(async (root) => {
      const deps = rewriteDeps()
      using ledger = await Ledger.open(root)
      for (let n = 0; n < 6; n++) {
        deps.clock.now += 3600
        const brought = everyKind.map((metric) => ({ metric, since: n * 10, days: 10, clocks: metric !== metrics[0] }))
        await topUps(ledger, deps, brought, level)
      }
      const before = await wholeRows(ledger)
      for (const clock of ['available_at', 'observed_at', 'computed_at', 'available_rule_at'])
        expect(new Set(before.map((row) => row[clock])).size, clock).toBeGreaterThan(5)
      await mergeSmallFiles(ledger, deps)
      expect(await wholeRows(ledger)).toEqual(before)
      await compact(root, deps)
      await ledger.catchUp()
      expect(liveFiles(ledger, { table: 'points' })).toHaveLength(everyKind.length)
      expect(await wholeRows(ledger)).toEqual(before)
    }),
  )
})

/** All points with all that files say of them. */
async function wholeRows(ledger: Ledger): Promise<Row[]> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const points = readPoints(ledger.root, liveFiles(ledger, { table: 'points' }))
  return await engine.rows(
    `SELECT metric, asset, t, v, o, basis, available_at, observed_at, computed_at, available_rule_at
     FROM ${points} ORDER BY metric, asset, t`,
  )
}

describe('L3: readers while files are exchanged', () => {
  it('see the same answers all the while', async ({ root }) => {
    const deps = rewriteDeps()
    using ledger = await Ledger.open(root)
    for (let n = 0; n < 6; n++)
      for (const metric of metrics) await topUp(ledger, deps, { metric, since: n * 10, days: 10 })
    const before = await answers(ledger, null)
    // An open reader goes on with the files that it was told of.
    const opened = pointsAt(ledger, null)
    let busy = true
    const reading = (async () => {
      const seen = new Set<string>()
      while (busy) {
        using reader = await Ledger.openToRead(root)
        seen.add(await answers(reader, null))
      }
      return seen
    })()
    await compact(root, deps)
    await vacuum({ root, keepSeconds: day, really: true }, { ...deps, buildViews })
    busy = false
    expect([...(await reading)]).toEqual([before])
    using engine = await Engine.open()
    expect(await engine.rows(`SELECT count(*) AS n FROM ${opened}`)).toEqual([{ n: 240n }])
  })
})

describe('redating', () => {
  it('changes the dates that rules gave and no other, as one version', async ({ root }) => {
    const deps = rewriteDeps()
    using ledger = await Ledger.open(root)
    for (const metric of metrics) await topUp(ledger, deps, { metric, since: 0, days: 10, skip: [4] })
    deps.clock.now += 60
    await topUp(ledger, deps, { metric: metrics[0], since: 10, days: 0, late: [4] })
    const before = { at: ledger.head().committed_at, said: await answers(ledger, null) }
    const slower = withLag(metrics[0], 7200)
    const done = await redate(root, slower, deps)
    expect(done).toMatchObject({ made: true, partitions: [{ metric: metrics[0], points: 20, redated: 18 }] })
    await ledger.catchUp()
    expect(storedRules(ledger)?.rules).toMatchObject({ [metrics[0]]: { '24h': [{ seconds: 7200 }] } })
    const engine = await Engine.open()
    const lags = await engine.rows(
      `SELECT basis, CAST(epoch_us(available_at) - epoch_us(t) AS BIGINT) // 1000000 - ${day} AS lag, count(*) AS n,
         bool_and(available_rule_at IS NULL) AS plain
         FROM ${pointsAt(ledger, null)} WHERE metric = '${metrics[0]}' AND basis <> 'observed' GROUP BY ALL`,
    )
    expect(lags).toEqual([{ basis: 'override', lag: 7200n, n: 18n, plain: true }])
    engine.close()
    expect(await answers(ledger, before.at)).toBe(before.said)
    expect(await answers(ledger, null)).not.toBe(before.said)
    expect(await redate(root, slower, deps)).toMatchObject({ made: false, partitions: [] })
  })

  it('lets a trusted rule win over the provider, and gives the provider its instants back', async ({ root }) => {
    const deps = rewriteDeps()
    using ledger = await Ledger.open(root)
    await topUp(ledger, deps, { metric: metrics[1], since: 0, days: 10 })
    const said = await answers(ledger, null)
    expect((await redate(root, withLag(metrics[1], 5), deps)).partitions).toEqual([])
    expect((await redate(root, withLag(metrics[1], 5, 'rule'), deps)).partitions).toHaveLength(1)
    await ledger.catchUp()
    expect(await answers(ledger, null)).not.toBe(said)
    await redate(root, catalogue, deps)
    await ledger.catchUp()
    expect(await answers(ledger, null)).toBe(said)
  })
})
