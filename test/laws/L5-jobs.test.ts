import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { RunEnd } from '../../src/lake/ledger/job.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { requestTotals } from '../../src/lake/ledger/run-queries.ts'
import { runLog } from '../../src/lake/store/layout.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { test } from '../helpers/lake-test.ts'
import { metrics, rewriteDeps, topUp } from '../helpers/lakes/top-ups.ts'
import { everyByte, registryKey, withRegistryRig } from '../helpers/registry-rig.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { reading, writing } from '../helpers/ledgers.ts'

const now = Date.UTC(2026, 2, 4, 12) / 1000

type Cells = Readonly<Record<string, unknown>>

async function rowsOf(root: string, sql: string): Promise<Cells[]> {
  using ledger = await Ledger.openToRead(root)
  return ledger.statement(sql).all()
}

const runsOf = async (root: string): Promise<Cells[]> =>
  await rowsOf(
    root,
    `SELECT id, job, started_at IS NOT NULL AND ended_at >= started_at AS ended, stopped_by, exit_code,
       plan IS NOT NULL AS planned, actual ->> '$.requests' AS requests FROM runs ORDER BY started_at, id`,
  )

describe('what a registry job writes down of itself', () => {
  test('the requests that it sent, repeats included, and how often each of them was', async () =>
    withRegistryRig(now, async (rig) => {
      rig.faults('status-503:each,first=1,share=0.5')
      const done = [await rig.snapshot(), await rig.sync()]
      const asked = rig.asked().length
      const runs = await runsOf(rig.root)
      expect(runs.map(({ requests }) => requests)).toEqual(done.map(({ requests }) => requests))
      const [sent] = await rowsOf(rig.root, 'SELECT sum(attempts) AS attempts, max(attempts) AS most FROM requests')
      expect(sent).toEqual({ attempts: asked, most: 2 })
      expect(done[0]?.requests).toBe(2)
    }))

  test('the run log of a registry job has its end: well, early or with an error', async () => {
    let stranger = false
    const instead = (): Response | undefined => (stranger ? new Response('{}') : undefined)
    await withRegistryRig(
      now,
      async (rig) => {
        await rig.snapshot({ maxRequests: 0 })
        rig.clock.now++
        await rig.sync()
        rig.clock.now++
        stranger = true
        await expect(rig.sync()).rejects.toThrow('data of another provider')
        const runs = await runsOf(rig.root)
        expect(runs.map(({ ended, planned }) => [ended, planned])).toEqual(runs.map(() => [1, 1]))
        expect(runs.map(({ job, stopped_by, exit_code, requests }) => [job, stopped_by, exit_code, requests])).toEqual([
          ['registry snapshot', 'max_requests', 5, 0],
          ['registry sync', null, 0, 2],
          ['registry sync', 'error', 2, 1],
        ])
      },
      { instead },
    )
  })

  test('requests of a registry job do not count towards the busiest minute of the metrics API', async () =>
    withRegistryRig(now, async (rig) => {
      await rig.snapshot()
      await rig.sync()
      const totals = await reading(rig.root, (ledger) => requestTotals(ledger, (now + 60) * 1_000_000))
      expect(totals.day).toBeGreaterThan(1)
      expect(totals.busiest_minute).toBe(0)
    }))

  test('hooks after a registry job receive its requests and versions', async () =>
    withRegistryRig(now, async (rig) => {
      const ends: unknown[] = []
      const atEnd = async ({ run, commits, requests }: RunEnd): Promise<void> =>
        await Promise.resolve(void ends.push({ run, commits, requests }))
      const told = []
      let before = 0
      for (const take of [rig.snapshot, rig.sync, rig.sync]) {
        const { run, requests, version } = await take({ deps: { atEnd } })
        told.push({ run, commits: version - before, requests })
        before = version
        rig.clock.now++
      }
      expect(ends).toEqual(told)
      expect(told.map(({ commits, requests }) => [commits, requests > 0])).toEqual([
        [1, true],
        [0, true],
        [0, true],
      ])
    }))

  test('each request, answer and commit of a registry job is in its log, without the key', async () =>
    withRegistryRig(now, async (rig) => {
      const { run } = await rig.snapshot()
      const lines = readFileSync(join(rig.root, runLog(run)), 'utf8')
        .trim()
        .split('\n')
      const events = lines.map((line) => (JSON.parse(line) as { event: string }).event)
      expect(events).toEqual(['planned', 'request', 'answer', 'commit'])
      expect(everyByte(rig.root)).not.toContain(registryKey)
    }))
})

describe('what a job writes down of itself that rewrites files', () => {
  test('a job that rewrites files records its plan, its result and its name with its versions', async ({ root }) => {
    const deps = rewriteDeps()
    await lakeOf(root, deps)
    await redate(root, catalogue, deps)
    deps.clock.now += 60
    const { version, files_removed, files_added } = await compact(root, deps)
    deps.clock.now += 60
    await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews: () => Promise.resolve() })
    const runs = await runsOf(root)
    expect(
      runs.map(({ job, ended, planned, stopped_by, exit_code }) => [job, ended, planned, stopped_by, exit_code]),
    ).toEqual(['redate', 'compact', 'vacuum'].map((job) => [job, 1, 1, null, 0]))
    const named = await rowsOf(root, 'SELECT v.version, r.job FROM versions v JOIN runs r ON r.id = v.run')
    expect(named).toContainEqual({ version, job: 'compact' })
    expect(named).toContainEqual({ version: version + 1, job: 'vacuum' })
    const [actual] = await rowsOf(root, `SELECT actual FROM runs WHERE job = 'compact'`)
    expect(JSON.parse(String(actual?.['actual']))).toMatchObject({ versions: 1, files_removed, files_added })
  })

  test('a job that rewrites files records the error that ended it and the work left undone', async ({ root }) => {
    const deps = rewriteDeps()
    await lakeOf(root, deps)
    const [first] = await writing(root, (ledger) => liveFiles(ledger))
    writeFileSync(join(root, first?.path ?? ''), 'no longer Parquet')
    await expect(redate(root, catalogue, deps)).rejects.toThrow()
    deps.clock.now += 60
    expect((await compact(root, deps)).abandoned).toHaveLength(1)
    const runs = await runsOf(root)
    expect(runs.map(({ job, ended, stopped_by, exit_code }) => [job, ended, stopped_by, exit_code])).toEqual([
      ['redate', 1, 'error', 1],
      ['compact', 1, null, 4],
    ])
  })
})

async function lakeOf(root: string, deps: ReturnType<typeof rewriteDeps>): Promise<void> {
  using ledger = await Ledger.open(root)
  for (const [n, metric] of [...metrics, ...metrics].entries()) {
    await topUp(ledger, deps, { metric, since: n * 10, days: 10 })
    deps.clock.now += 60
  }
}
