import { mkdirSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { storedPassing, storedSeries, storedViolations } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { violationId } from '../../src/lake/ledger/entry.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { commitDeps, coverageRow, seriesRow, violationRow } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'

const deps = commitDeps({ sleep: async () => undefined })
const about = { job: 'fetch', run: 'r', provider: { metrics: 'sandbox:1', synthetic: true } }

async function withLedger(work: (ledger: Ledger) => Promise<void>): Promise<void> {
  await inFolder(async (root) => {
    using ledger = await Ledger.open(root)
    await work(ledger)
  })
}

/** What makes a row of the index the same row. */
const keys: Readonly<Record<string, readonly string[]>> = {
  accepted: ['id'],
  clock_findings: ['series', 't', 'kind'],
  coverage: ['series', 'since', 'added_version'],
  digests: ['series', 'month'],
  files: ['path', 'label'],
  forgotten: ['series', 'month', 'added_version'],
  live_lists: ['tbl', 'metric'],
  meta: ['key'],
  passed: ['series', 't', 'kind', 'offered_key', 'incident', 'until', 'added_version'],
  requests: ['id'],
  rules: ['version'],
  run_files: ['name'],
  runs: ['id'],
  series: ['n'],
  soft: ['key'],
  stamps: ['id'],
  state: ['key'],
  value_types: ['metric', 'path', 'type', 'after_type', 'added_version'],
  verified: ['series', 'since', 'until', 'at'],
  versions: ['version'],
  violations: ['series', 't', 'kind', 'offered_key', 'incident', 'until'],
}

test('rows of the index are the same where all of their key is, and other rows where any of it is not', () =>
  withLedger(async (ledger) => {
    expect(ledger.tables()).toEqual(Object.keys(keys))
    for (const [table, key] of Object.entries(keys)) {
      const columns = ledger.statement(`SELECT name, type FROM pragma_table_info('${table}')`).all()
      const names = columns.map(({ name }) => String(name))
      // Of what is no key, each row has something else.
      const row = (other: string | undefined, n: number): (string | number)[] =>
        columns.map(({ name, type }) => {
          const value = name === other || !key.includes(String(name)) ? 700 + n : 600
          return type === 'TEXT' ? `x${value}` : value
        })
      const insert = ledger.statement(
        `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
      )
      insert.run(...row(undefined, 0))
      expect(() => insert.run(...row(undefined, 1)), table).toThrow('UNIQUE')
      for (const [n, name] of key.entries())
        expect(() => insert.run(...row(name, n + 2)), `${table}.${name}`).not.toThrow()
    }
  }))

test('a series counts its points and their bounds from nothing', () =>
  withLedger(async (ledger) => {
    const { id: series } = seriesRow(1)
    const step = (points: number, first_t: number, last_t: number) => ({ series, points, first_t, last_t })
    const held = (): unknown => {
      const { points, first_t, last_t } = storedSeries(ledger).get(series)!
      return [points, first_t, last_t]
    }
    await commit(ledger, { ...about, series: [seriesRow(0), seriesRow(1)], progress: [step(3, 500, 700)] }, deps)
    expect(held()).toEqual([3, 500, 700])
    await commit(ledger, { ...about, progress: [step(2, 600, 650)] }, deps)
    expect(held()).toEqual([5, 500, 700])
    await commit(ledger, { ...about, progress: [step(2, 400, 900)] }, deps)
    expect(held()).toEqual([7, 400, 900])
    expect(storedSeries(ledger).get(seriesRow(0).id)).toMatchObject({ points: 0, first_t: null, last_t: null })
  }))

const span = 24
const change = fc.record({
  series: fc.nat(1),
  since: fc.nat(span - 1),
  length: fc.integer({ min: 1, max: 9 }),
  state: fc.constantFrom('covered', 'empty', 'failed', 'uncovered'),
})

test('coverage says at every instant, in every version, what was said last by then', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), { maxLength: 7 }), async (commits) => {
      await withLedger(async (ledger) => {
        await commit(ledger, { ...about, series: [seriesRow(0), seriesRow(1)], state: { a: 1 } }, deps)
        let known: (string | undefined)[][] = [[], []]
        const states = new Map<number, typeof known>()
        for (const [n, changes] of commits.entries()) {
          known = known.map((one) => [...one])
          const rows = changes.filter(({ state }) => state !== 'uncovered')
          const gone = changes.filter(({ state }) => state === 'uncovered').map(({ series }) => series)
          // What is uncovered goes as whole rows: all that a series has so far.
          for (const series of gone) known[series] = []
          for (const { series, since, length, state } of rows)
            for (let at = since; at < since + length; at++) known[series]![at] = state
          const told = await commit(
            ledger,
            {
              ...about,
              state: { a: n + 2 },
              uncovered: gone.map((series) => ({ series: seriesRow(series).id, since: 0, until: span + 9 })),
              coverage: rows.map(({ series, since, length, state }) =>
                coverageRow(series, since, since + length, { state: state as 'covered', asked_at: 1000 + n }),
              ),
            },
            deps,
          )
          states.set(told.version, known)
        }
        const rows = ledger
          .statement('SELECT s.asset, c.* FROM coverage c JOIN series s ON s.n = c.series ORDER BY since')
          .all()
        for (const [version, expected] of states)
          for (const [series, instants] of expected.entries())
            for (let at = 0; at < span + 9; at++) {
              const there = rows.filter(
                (row) =>
                  row['asset'] === `A${series}` &&
                  Number(row['since']) <= at &&
                  at < Number(row['until']) &&
                  Number(row['added_version']) <= version &&
                  (row['removed_version'] === null || Number(row['removed_version']) > version),
              )
              expect(there.map(({ state }) => state)).toEqual(instants[at] === undefined ? [] : [instants[at]])
            }
      })
    }),
    { numRuns: 25 },
  )
})

test('only whole windows inside what is uncovered go, of that series, and what went before keeps when it went', () =>
  withLedger(async (ledger) => {
    const windows = [0, 1].flatMap((n) =>
      [0, 10, 20, 30].map((since) => coverageRow(n, since, since + 10, { state: 'empty', asked_at: since })),
    )
    const first = await commit(ledger, { ...about, series: [seriesRow(0), seriesRow(1)], coverage: windows }, deps)
    const uncover = async (since: number, until: number): Promise<number> => {
      const uncovered = [{ series: seriesRow(1).id, since, until }]
      return (await commit(ledger, { ...about, uncovered, coverage: [], state: { since } }, deps)).version
    }
    const second = await uncover(10, 29)
    const third = await uncover(0, 30)
    const rows = ledger
      .statement(
        'SELECT s.asset, c.since, c.removed_version AS gone FROM coverage c JOIN series s ON s.n = c.series ORDER BY 1, 2',
      )
      .all()
    expect(first.version).toBe(1)
    expect(rows.map(({ asset, since, gone }) => [asset, since, gone])).toEqual([
      ...[0, 10, 20, 30].map((since) => ['A0', since, null]),
      ['A1', 0, third],
      ['A1', 10, second],
      ['A1', 20, third],
      ['A1', 30, null],
    ])
  }))

test('an acknowledgement counts for its violation only', () =>
  withLedger(async (ledger) => {
    const accepted = violationRow(0, 10)
    const others = [
      violationRow(1, 10),
      violationRow(0, 11),
      violationRow(0, 10, { kind: 'null_filled' }),
      violationRow(0, 10, { offered: '3' }),
    ]
    await commit(
      ledger,
      { ...about, series: [seriesRow(0), seriesRow(1)], violations: [accepted, ...others, accepted] },
      deps,
    )
    const { series, t, kind, offered } = accepted
    const id = violationId(accepted)
    await commit(ledger, { ...about, accepted: [{ id, series, t, kind, offered, why: 'seen' }] }, deps)
    const held = storedViolations(ledger)
    expect(held).toHaveLength(5)
    expect(held.filter(({ why }) => why !== null)).toMatchObject([accepted])
    expect(storedViolations(ledger, seriesRow(1).id)).toMatchObject([others[0]])
  }))

test('rows from the repair of a clock or before keep their instant, later ones get the instant of the version before', () =>
  withLedger(async (ledger) => {
    const at = 1_700_000_000_000_000
    const noted = (key: string, late: number) => ({ [key]: { at: at + late, value: key } })
    const soft = { ...noted('before', -1), ...noted('same', 0), ...noted('after', 1) }
    mkdirSync(inLake(ledger.root, places.runs), { recursive: true })
    writeFileSync(inLake(ledger.root, `${places.runs}/r.jsonl`), `${JSON.stringify({ after: 0, soft })}\n`)
    await commit(ledger, { ...about, state: { clock_mended: { version: 1, at, before: 5 } } }, deps)
    await ledger.catchUp()
    const told = ['before', 'same', 'after'].map((key) => storedPassing(ledger, key)?.at)
    expect(told).toEqual([at - 1, at, 5])
  }))
