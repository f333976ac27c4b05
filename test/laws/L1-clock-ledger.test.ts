// @module-tag full
import { appendFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { storedRuns, storedVerified, requestTotals } from '../../src/lake/ledger/run-queries.ts'
import { storedVersions, versionAt } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { clockNote } from '../../src/maintenance/upkeep/clock-ahead.ts'
import { archiveRows } from '../../src/maintenance/upkeep/vacuum.ts'
import type { Diagnosis } from '../../src/maintenance/upkeep/doctor.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { depsAt, type Rig, withRig } from '../helpers/fetching.ts'
import { dump } from '../helpers/lakes/drafts.ts'
import { withLag } from '../helpers/lags.ts'
import { askedAgain, examined } from '../helpers/looking.ts'
import { makeViews, withViews } from '../helpers/views.ts'

vi.setConfig({ testTimeout: 120_000 })

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const selection = { assets: ['BTC'], paths: ['blockchain/block_count_pit', 'supply/current_pit'], since: start }

const doctor = async ({ root, clock }: Rig, repair: boolean): Promise<Diagnosis> =>
  await examined(root, clock.now, { thorough: false, repair })

const aheadIn = ({ findings }: Diagnosis): number => findings.filter(({ kind }) => kind === 'clock_ahead').length

/** The world of a job whose clock is so many seconds ahead. */
function deps({ root, url, clock }: Rig, ahead = 0) {
  return { ...depsAt({ root, url, now: () => clock.now + ahead }), signal: new AbortController().signal }
}

const verifyAt = async (rig: Rig, ahead = 0): Promise<unknown> =>
  await askedAgain(rig, { now: rig.clock.now + ahead }, deps(rig, ahead))

async function withLedger<T>(rig: Rig, work: (ledger: Ledger) => Promise<T> | T): Promise<T> {
  using ledger = await Ledger.open(rig.root)
  return await work(ledger)
}

/** Rows of a view of the ledger, at an instant of this lake's knowledge if one is given. */
async function seen(rig: Rig, sql: string, at?: number): Promise<string[]> {
  return await withViews(rig.root, async (engine) => {
    if (at !== undefined) await engine.run(`SET VARIABLE observed_as_of = make_timestamptz(${at * 1_000_000}::BIGINT)`)
    return (await engine.rows(sql)).map((row) => Object.values(row).map(String).join(' '))
  })
}

const windows = `SELECT metric, epoch(since)::BIGINT AS s, epoch(until)::BIGINT AS u, state FROM coverage ORDER BY ALL`

test('after the mending no row of the ledger is of the future, and each window stands once', async () =>
  withRig(start + 20 * day + 7200, async (rig) => {
    const { clock } = rig
    await rig.fetch(selection)
    await makeViews(rig.root)
    const good = await seen(rig, windows)
    clock.now += day
    const ahead = 50 * 365 * day
    await rig.fetch(selection, { deps: deps(rig, ahead), input: { now: clock.now + ahead } })
    await verifyAt(rig, ahead)
    clock.now += day
    await rig.fetch(selection)
    const content = await rig.stored()
    expect(aheadIn(await doctor(rig, false))).toBe(1)
    const note = async (): Promise<string | null> =>
      await withLedger(rig, (ledger) => clockNote(ledger, clock.now * 1_000_000))
    expect(await note()).toMatch(/version \d+ was committed at 2076-.*doctor/)
    clock.now += 3600
    const before = clock.now - 1
    expect(aheadIn(await doctor(rig, true))).toBe(0)
    expect([await note(), await rig.stored()]).toEqual([null, content])
    await withLedger(rig, async (ledger) => {
      const micros = clock.now * 1_000_000
      for (const [table, columns] of Object.entries({
        versions: ['committed_at'],
        requests: ['asked_at'],
        runs: ['started_at', 'ended_at'],
        verified: ['at'],
        clock_findings: ['at'],
        coverage: ['asked_at * 1000000'],
      }))
        for (const column of columns)
          expect([
            table,
            ledger.statement(`SELECT count(*) AS n FROM ${table} WHERE ${column} > ?`).get(micros),
          ]).toEqual([table, { n: 0 }])
      const committed = storedVersions(ledger).map(({ committed_at }) => committed_at)
      expect(committed).toEqual([...new Set(committed)].toSorted((a, b) => a - b))
      expect([committed.at(-1), versionAt(ledger, micros)]).toEqual([micros, ledger.head().version])
      using rebuilt = await Ledger.inMemory(rig.root)
      expect(dump(rebuilt)).toEqual(dump(ledger))
    })
    await makeViews(rig.root)
    const live = await seen(rig, windows)
    // What stored points prove is still covered.
    const covered = live.filter((line) => line.endsWith(' covered'))
    expect(new Set(covered.map((line) => line.split(' ')[1]))).toEqual(new Set([String(start)]))
    const count = 'SELECT count(*) FROM points'
    expect(await seen(rig, count, clock.now + 1)).toEqual([String(content.length)])
    expect(Number(await seen(rig, count, before))).toBeLessThan(content.length)
    expect(await seen(rig, windows, clock.now + 1)).toEqual(live)
    expect(await seen(rig, windows, before)).toEqual(good)
    expect(await seen(rig, 'SELECT count(*) FROM versions', clock.now + 1)).toEqual(
      await seen(rig, 'SELECT max(version) FROM versions'),
    )
    // What was verified in the future is verified again.
    clock.now += 3 * day
    expect(await rig.fetch(selection)).toMatchObject({ violations: 0, windows: { failed: 0 } })
    expect(await rig.stored()).toEqual(rig.truth(selection))
    await verifyAt(rig)
    await withLedger(rig, (ledger) => {
      const at = [...storedVerified(ledger).values()].flat().map((one) => one.at)
      expect(Math.max(...at)).toBeGreaterThanOrEqual((clock.now - 60) * 1_000_000)
      expect(storedRuns(ledger, 1)[0]?.job).toBe('verify')
      expect(requestTotals(ledger, (clock.now + 2 * day) * 1_000_000).day).toBe(0)
    })
    expect((await doctor(rig, true)).mended.filter((text) => text.includes('clock'))).toEqual([])
  }))

test('runs of a wrong clock that made no version are found and mended too', async () =>
  withRig(start + 20 * day + 7200, async (rig) => {
    await rig.fetch(selection)
    await verifyAt(rig, 40 * day)
    expect(aheadIn(await doctor(rig, false))).toBe(1)
    const content = await rig.stored()
    expect(aheadIn(await doctor(rig, true))).toBe(0)
    await withLedger(rig, (ledger) =>
      expect(Math.max(...storedRuns(ledger, 9).map(({ started_at }) => started_at ?? 0))).toBeLessThanOrEqual(
        (rig.clock.now + 60) * 1_000_000,
      ),
    )
    expect(await rig.stored()).toEqual(content)
    rig.clock.now += day
    expect(await rig.fetch(selection)).toMatchObject({ violations: 0, windows: { failed: 0 } })
    expect(await rig.stored()).toEqual(rig.truth(selection))
    expect(aheadIn(await doctor(rig, false))).toBe(0)
  }))

test('rows that a wrong clock put into files of the lake stand there with true instants, each once', async () =>
  withRig(start + 20 * day + 7200, async (rig) => {
    const { clock } = rig
    const seldom = { ...selection, paths: ['blockchain/block_height_pit'] }
    await rig.fetch(selection)
    await rig.fetch(seldom)
    clock.now += day
    await rig.fetch(selection)
    await withLedger(rig, async (ledger) => await archiveRows(ledger, deps(rig, 3 * day), 1))
    clock.now += day
    const ahead = 50 * 365 * day
    await rig.fetch(selection, { deps: deps(rig, ahead), input: { now: clock.now + ahead } })
    await withLedger(rig, async (ledger) => await archiveRows(ledger, deps(rig, ahead + 100 * day), 1))
    const ids = async (): Promise<string[]> =>
      await withLedger(rig, (ledger) =>
        ledger
          .statement('SELECT id FROM runs ORDER BY id')
          .all()
          .map(({ id }) => String(id)),
      )
    await makeViews(rig.root)
    const requests = await seen(rig, 'SELECT id FROM requests ORDER BY id')
    const runs = await seen(rig, 'SELECT id FROM runs ORDER BY id')
    clock.now += day
    // Its window named a request until now that is older than the wrong clock and in no file.
    await rig.fetch(seldom)
    expect(aheadIn(await doctor(rig, true))).toBe(0)
    clock.now += 3 * day
    await rig.fetch(selection)
    await withLedger(rig, async (ledger) => await archiveRows(ledger, deps(rig), 1))
    clock.now += day
    await rig.fetch(selection)
    await makeViews(rig.root)
    const versions = await withLedger(rig, (ledger) => storedVersions(ledger).map(({ version }) => String(version)))
    expect(await seen(rig, 'SELECT version FROM versions ORDER BY version')).toEqual(versions)
    const now = [...new Set([...runs, ...(await ids())])].toSorted()
    expect(await seen(rig, 'SELECT id FROM runs ORDER BY id')).toEqual(now)
    const asked = await seen(rig, 'SELECT id FROM requests ORDER BY id')
    expect([asked.length, new Set(asked).size]).toEqual([asked.length, asked.length])
    expect(requests.filter((id) => !asked.includes(id))).toEqual([])
    const late = `make_timestamptz(${(clock.now + 60) * 1_000_000}::BIGINT)`
    for (const at of [
      'committed_at FROM versions',
      'asked_at FROM requests',
      'started_at FROM runs',
      'ended_at FROM runs',
    ])
      expect([
        at,
        await seen(rig, `SELECT count(*) FROM (SELECT ${at}) AS t(instant) WHERE instant > ${late}`),
      ]).toEqual([at, ['0']])
    expect(await seen(rig, windows, clock.now + 60)).toEqual(await seen(rig, windows))
  }))

test('an instant beyond what can be held, of an earlier program: found, read as the latest one, mended', async () =>
  withRig(start + 20 * day + 7200, async (rig) => {
    await rig.fetch(selection)
    const [run = ''] = readdirSync(join(rig.root, 'runs')).filter((name) => name.endsWith('.jsonl'))
    const at = 11_230_192_802_654_796
    const line = {
      after: 1,
      run: { id: 'far', job: 'fetch', started_at: at, ended_at: at },
      soft: { x: { at, value: 1 } },
    }
    appendFileSync(join(rig.root, 'runs', run), `${JSON.stringify(line)}\n`)
    expect((await doctor(rig, false)).findings.map(({ kind }) => kind)).toContain('clock_ahead')
    expect(aheadIn(await doctor(rig, true))).toBe(0)
    await withLedger(rig, (ledger) => expect(storedRuns(ledger, 9).map(({ id }) => id)).toContain('far'))
  }))

test('a clock beyond what can be held begins no run and makes no version', async () =>
  withRig(start + 20 * day + 7200, async (rig) => {
    await rig.fetch(selection)
    const runs = readdirSync(join(rig.root, 'runs'))
    const ahead = 300 * 365 * day
    const run = rig.fetch(selection, { deps: deps(rig, ahead), input: { now: rig.clock.now + ahead } })
    await expect(run).rejects.toMatchObject({
      kind: 'incomplete',
      message: expect.stringMatching(/clock.*got 23\d\d-/),
    })
    expect(readdirSync(join(rig.root, 'runs'))).toEqual(runs)
    await withLedger(rig, async (ledger) => {
      await expect(archiveRows(ledger, deps(rig, ahead), 1)).rejects.toMatchObject({ kind: 'incomplete' })
    })
    expect((await doctor(rig, false)).findings.filter(({ severity }) => severity === 'damage')).toMatchObject([
      { kind: 'views_missing' },
    ])
  }))

test('a change of rules that a wrong clock has dated is one of the mending', async () =>
  withRig(start + 20 * day + 7200, async (rig) => {
    const { clock, root } = rig
    const one = 'supply/current_pit'
    await rig.fetch(selection)
    const when = `SELECT max(available_at - t) FROM points WHERE metric = '${one}'`
    await makeViews(root)
    const before = await seen(rig, when)
    clock.now += day
    await redate(root, withLag(one, 40 * 3600, 'rule'), deps(rig, 50 * 365 * day))
    await makeViews(root)
    const after = await seen(rig, when)
    expect(after).not.toEqual(before)
    clock.now += 3600
    expect(aheadIn(await doctor(rig, true))).toBe(0)
    await makeViews(root)
    expect(await seen(rig, when)).toEqual(after)
    expect(await seen(rig, when, clock.now + 1)).toEqual(after)
    expect(await seen(rig, when, clock.now - 1)).toEqual(before)
    expect(await seen(rig, `SELECT count(*) FROM points`, clock.now - 1)).toEqual(
      await seen(rig, `SELECT count(*) FROM points`),
    )
  }))
