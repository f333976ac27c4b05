import { join } from 'node:path'
import { expect } from 'vitest'
import type { StagedFile } from '../../src/lake/ledger/commit.ts'
import { freshValueTypes } from '../../src/sources/points/value-types.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { test } from '../helpers/lake-test.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { countValueChanges } from '../../src/lake/ledger/index-queries.ts'
import { type Rig, withRig } from '../helpers/fetching.ts'
import { examined } from '../helpers/looking.ts'
import { isoOf } from '../helpers/instants.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, withViews } from '../helpers/views.ts'

const nested = 'addresses/supply_distribution_relative_pit'
const scalar = 'addresses/active_count_pit'
const selection = { assets: ['BTC'], paths: [nested, scalar], intervals: ['24h'], since: Date.UTC(2024, 4, 20) / 1000 }
const third = Date.UTC(2024, 5, 3) / 1000
const reshaped = ['new-component:t=2024-06-03', 'becomes-object:t=2024-06-03']

/** The rows without their instants, as known at one. */
async function linesAt(rig: Rig, at: number | null): Promise<string[]> {
  await makeViews(rig.root)
  return await withViews(rig.root, async (engine) => {
    if (at !== null) await engine.run(`SET VARIABLE as_of = '${isoOf(at * 1e6)}'`)
    const rows = await engine.rows<{ line: string }>(
      `SELECT concat_ws(' ', resource, path, kind, value) AS line FROM schema_changes ORDER BY first_seen, line`,
    )
    return rows.map(({ line }) => line)
  })
}

async function counted({ root }: Rig): Promise<number> {
  using ledger = await Ledger.openToRead(root)
  return countValueChanges(ledger)
}

test('a new component and a value that becomes an object, and back, are one dated row each, none on a rerun', async () => {
  const component = `${nested} $.newcomer key`
  await withRig(Date.UTC(2024, 5, 2, 12) / 1000, async (rig) => {
    await rig.fetch(selection)
    expect(await linesAt(rig, null)).toEqual([])
    rig.clock.now += 4 * 86_400
    rig.faults(...reshaped)
    await rig.fetch(selection)
    const both = await linesAt(rig, null)
    expect(both.toSorted()).toEqual([`${scalar} $ type number to object`, component])
    expect(await linesAt(rig, third + 86_400)).toEqual([])
    expect((await linesAt(rig, third + 2 * 86_400)).toSorted()).toEqual(both.toSorted())
    const before = await lookAt(rig)
    await rig.fetch(selection)
    expect(await lookAt(rig)).toEqual(before)
    rig.faults()
    rig.clock.now += 3 * 86_400
    await rig.fetch(selection)
    expect(await linesAt(rig, null)).toEqual([...both, `${scalar} $ type object to number`])
    expect(await counted(rig)).toBe(3)
    expect(await linesAt(rig, third + 2 * 86_400)).toHaveLength(2)
  })
  // All at once, and in the other order: what is dated by its points does not ask when it was fetched.
  await withRig(Date.UTC(2024, 5, 6, 12) / 1000, async (rig) => {
    rig.faults(...reshaped)
    await rig.fetch({ ...selection, since: third - 86_400 })
    await rig.fetch(selection)
    expect((await linesAt(rig, null)).toSorted()).toEqual([`${scalar} $ type number to object`, component])
    expect(await linesAt(rig, third + 86_400)).toEqual([])
  })
})

async function lookAt(rig: Rig): Promise<unknown> {
  using ledger = await Ledger.openToRead(rig.root)
  return [ledger.head().version, await linesAt(rig, null)]
}

test('a metric that was stored without value types gets them from all stored points', () =>
  withRig(Date.UTC(2024, 5, 6, 12) / 1000, async (rig) => {
    rig.faults(...reshaped)
    await rig.fetch(selection)
    using ledger = await Ledger.open(rig.root)
    ledger.exec('DELETE FROM value_types')
    rig.clock.now += 86_400
    await rig.fetch(selection)
    expect(await counted(rig)).toBe(2)
  }))

test('one statement finds the value types of one partition as of forty', async ({ root, ledger }) => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  let statements = 0
  const rows: Engine['rows'] = async (sql) => {
    statements++
    return await engine.rows(sql)
  }
  const counting = Object.assign(Object.create(engine) as Engine, { rows })
  const count = async (partitions: number): Promise<[number, number]> => {
    const files: StagedFile[] = []
    for (let n = 0; n < partitions; n++) {
      const temporary = `part-${n}.parquet`
      const metric = `family/metric_${n}_pit`
      await engine.run(`COPY (SELECT CAST(NULL AS DOUBLE) AS v, '{"a":${n},"b":[{"c":"t"}]}' AS o,
          make_timestamptz(${n}) AS available_at, CAST(NULL AS TIMESTAMPTZ) AS available_rule_at)
          TO ${quote(join(root, temporary))} (FORMAT parquet)`)
      files.push({ ...listed, temporary, path: temporary, metric })
    }
    statements = 0
    const { length } = await freshValueTypes(ledger, counting, files)
    return [statements, length / partitions]
  }
  expect(await count(1)).toEqual([1, 5])
  expect(await count(40)).toEqual([1, 5])
})

const listed = {
  table: 'points',
  label: '',
  interval: '24h',
  rows: 1,
  min_t: 0,
  max_t: 0,
  digest: null,
  meta: {},
} as const

test('value types dated by a clock far ahead get new dates when doctor repairs the lake', async ({ root }) => {
  const now = Date.UTC(2026, 5, 1) / 1000
  const far = isoOf((now + 50 * 365 * 86_400) * 1e6)
  const point = { metric: 'supply/current_pit', asset: 'BTC', interval: '24h', currency: 'native' } as const
  const first = { ...point, t: '2026-05-01T00:00:00Z', available_at: '2026-05-02T00:10:00Z', v: 1 }
  const late = { ...point, t: '2026-05-02T00:00:00Z', available_at: far, o: '{"a":1}', basis: 'observed' }
  await makeLake(root, [
    { at: '2026-05-03T00:00:00Z', points: [first] },
    { at: far, points: [late] },
  ])
  await examined(root, now, { thorough: false, repair: true })
  await makeViews(root)
  const rows = await withViews(root, async (engine) =>
    engine.rows('SELECT kind, value, epoch(first_seen)::BIGINT AS at FROM schema_changes'),
  )
  expect(rows).toEqual([{ kind: 'type', value: 'number to object', at: BigInt(now) }])
})
