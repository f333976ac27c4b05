// @module-tag full
import { expect } from 'vitest'
import { type IngestSummary, verdict } from '../../src/sources/metrics/run-summary.ts'
import { verifyVerdict } from '../../src/maintenance/upkeep/verify.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { loadCoverage, summary } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { pitlake as command } from '../helpers/command.ts'
import { type Rig, withRig } from '../helpers/fetching.ts'
import { commitDeps, coverageRow, dump, seriesRow } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { askedAgain, exitOf } from '../helpers/looking.ts'
import { withViews } from '../helpers/views.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
const selection = { assets: ['BTC'], paths: ['supply/current_pit'], since: now - 30 * day }

/** Orders another value for the point of so many days ago. */
const rewritten = (days: number, v: number): string => `rewrite@supply/*:t=${now - (now % day) - days * day},v=${v}`

interface Shown {
  readonly id: string
  readonly kind: string
  readonly t: string
  readonly stored: string | null
  readonly offered: string | null
  readonly acknowledged: string | null
  readonly why: string | null
}

const pitlake = async (root: string, ...argv: string[]): ReturnType<typeof command> =>
  await command(root, [...argv, '--data', root], {}, { now: () => now * 1000 })

const listed = async (root: string, ...argv: string[]): Promise<Shown[]> =>
  (JSON.parse((await pitlake(root, 'violations', 'list', '--json', ...argv)).out) as { violations: Shown[] }).violations

const code = (summary: IngestSummary): number => exitOf(verdict(summary))

async function verified(rig: Rig): Promise<{ code: number; differences: number; acknowledged: number }> {
  const done = await askedAgain(rig)
  return { code: exitOf(verifyVerdict(done)), differences: done.differences.length, acknowledged: done.acknowledged }
}

test('a rewrite is exit 4 until it is accepted; a third value is another one; no data change', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(selection)
    rig.clock.now += day
    rig.faults(rewritten(20, 101), rewritten(19, 102))
    expect(code(await rig.fetch(selection))).toBe(0)
    for (let look = 0; look < 3; look++)
      expect(await verified(rig)).toEqual({ code: 4, differences: 2, acknowledged: 0 })
    const status = async (): Promise<Record<string, unknown>> =>
      JSON.parse((await pitlake(rig.root, 'status', '--json')).out) as Record<string, unknown>
    expect(await status()).toMatchObject({ violations: 2, acknowledged: 0, verified: { differing: 1 } })
    const stored = await rig.stored()

    const [first, second] = await listed(rig.root)
    expect([first?.kind, first?.acknowledged, second?.id === first?.id]).toEqual(['changed', null, false])
    expect(Number(first?.offered)).toBe(101)
    const none = await pitlake(rig.root, 'violations', 'acknowledge', first?.id ?? '')
    expect([none.code, none.message]).toEqual([2, expect.stringContaining('--why')])
    const before = (await status())['version']
    const done = await pitlake(
      rig.root,
      'violations',
      'acknowledge',
      first?.id ?? '',
      '--why',
      'the method changed',
      '--json',
    )
    expect(JSON.parse(done.out)).toEqual({
      version: Number(before) + 1,
      made: true,
      acknowledged: [first?.id],
      known: [],
    })
    const again = await pitlake(rig.root, 'violations', 'acknowledge', first?.id ?? '', '--why', 'x', '--json')
    expect(JSON.parse(again.out)).toMatchObject({ version: Number(before) + 1, made: false, known: [first?.id] })
    expect((await listed(rig.root)).map(({ id }) => id)).toEqual([second?.id])
    expect((await listed(rig.root, '--all'))[0]).toMatchObject({
      why: 'the method changed',
      acknowledged: expect.any(String),
    })
    // The views are those of the acceptance.
    const told = async (before: boolean): Promise<unknown> =>
      await withViews(rig.root, async (engine) => {
        const instant = '(SELECT max(committed_at) - INTERVAL 1 microsecond FROM versions)'
        if (before) await engine.run(`SET VARIABLE observed_as_of = ${instant}`)
        return await engine.rows(
          `SELECT v.offered::DOUBLE AS offered, v.acknowledged_at = (SELECT max(committed_at) FROM versions) AS dated, v.why
           FROM violations AS v ORDER BY 1`,
        )
      })
    const open = { offered: 102, dated: null, why: null }
    expect(await told(false)).toEqual([{ offered: 101, dated: true, why: 'the method changed' }, open])
    // Before its version nobody had accepted it.
    const earlier = { offered: 101, dated: null, why: null }
    expect(await told(true)).toEqual([earlier, open])
    expect(await verified(rig)).toEqual({ code: 4, differences: 1, acknowledged: 1 })

    await pitlake(rig.root, 'violations', 'acknowledge', '--paths', 'supply/*', '--why', 'both', '--yes')
    expect(await verified(rig)).toEqual({ code: 0, differences: 0, acknowledged: 2 })
    expect(await status()).toMatchObject({ violations: 0, acknowledged: 2 })
    expect(JSON.stringify((await status())['reasons'])).not.toMatch(/differ/)

    rig.faults(rewritten(20, 103), rewritten(19, 102))
    expect(await verified(rig)).toEqual({ code: 4, differences: 1, acknowledged: 1 })
    expect((await listed(rig.root)).map(({ offered }) => Number(offered))).toEqual([103])
    expect(await rig.stored()).toEqual(stored)
  }))

test('an overlap that sees an accepted value again is exit 0, and counts it', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(selection)
    rig.clock.now += day
    rig.faults(rewritten(2, 101))
    const seen = await rig.fetch(selection)
    expect([code(seen), seen.violations, seen.acknowledged]).toEqual([4, 1, 0])
    await pitlake(rig.root, 'violations', 'acknowledge', '--assets', 'BTC', '--why', 'known', '--yes')
    rig.clock.now += day
    const again = await rig.fetch(selection)
    expect([code(again), again.violations, again.acknowledged]).toEqual([0, 0, 1])
  }))

test('acknowledged violations are in the journal: a rebuilt ledger and a checkpoint have them, too', async ({
  root,
  ledger,
}) => {
  const violation = { series: seriesRow(1).id, t: day, kind: 'changed', stored: '1', stored_at: 1, offered_at: 2 }
  const provider = { metrics: 'https://a.example', synthetic: false }
  const draft = { job: 'fetch', run: 'r', provider, series: [seriesRow(1)], coverage: [coverageRow(1, 0, 2 * day)] }
  const violations = [
    { ...violation, offered: '2', request: 'a' },
    { ...violation, offered: null, kind: 'vanished', request: 'b' },
  ]
  await commit(ledger, { ...draft, violations }, commitDeps())
  const ids = (await listed(root)).map(({ id }) => id)
  expect((await pitlake(root, 'violations', 'acknowledge', ...ids, '--why', 'so be it')).code).toBe(0)
  await ledger.catchUp()
  expect(summary(ledger)).toMatchObject({ violations: 0, acknowledged: 2 })
  const rebuilt = await Ledger.inMemory(root)
  expect(dump(rebuilt)).toEqual(dump(ledger))
  rebuilt.close()
  await writeCheckpoint(realDisk, ledger)
  using folded = await Ledger.inMemory(root)
  expect(dump(folded)).toEqual(dump(ledger))
})

test('a refused series with points is listed, and withdrawn once it is accepted', async ({ root, ledger }) => {
  const refused = { state: 'failed', reason: 'refused since 2026-03-01T00:00:00Z: 403, outside the plan: no' } as const
  const provider = { metrics: 'https://a.example', synthetic: false }
  const draft = { job: 'fetch', run: 'r', provider, series: [seriesRow(1), seriesRow(2)] }
  const coverage = [
    coverageRow(1, 0, 5 * day),
    coverageRow(1, 5 * day, 6 * day, refused),
    coverageRow(1, 8 * day, 9 * day, refused),
    coverageRow(2, 0, day, { state: 'failed', reason: 'HTTP 500' }),
  ]
  await commit(ledger, { ...draft, coverage }, commitDeps())
  const [alarm, ...others] = await listed(root)
  expect(others).toEqual([])
  expect(alarm).toMatchObject({ kind: 'refused', t: '1970-01-06T00:00:00Z', stored: null, offered: refused.reason })
  expect((await pitlake(root, 'violations', 'acknowledge', alarm?.id ?? '', '--why', 'we left that plan')).code).toBe(0)
  await ledger.catchUp()
  const states = (loadCoverage(ledger).get(seriesRow(1).id) ?? []).map(({ state, reason }) => [state, reason])
  expect(states).toEqual([
    ['covered', null],
    ['unsupported', `withdrawn, ${refused.reason}`],
    ['unsupported', `withdrawn, ${refused.reason}`],
  ])
  expect(loadCoverage(ledger).get(seriesRow(2).id)?.[0]?.state).toBe('failed')
  expect(await listed(root)).toEqual([])
})

test('accept with an unknown id, without an id or with id and all ends with 2', async ({ root }) => {
  const ledger = await Ledger.open(root)
  const provider = { metrics: 'https://a.example', synthetic: false }
  await commit(
    ledger,
    { job: 'x', run: 'r', provider, series: [seriesRow(1)], coverage: [coverageRow(1, 0, day)] },
    commitDeps(),
  )
  ledger.close()
  const accept = async (...argv: string[]) => await pitlake(root, 'violations', 'acknowledge', '--why', 'x', ...argv)
  expect(await accept('abcdef')).toMatchObject({ code: 2, message: expect.stringContaining('pitlake violations list') })
  expect(await accept()).toMatchObject({ code: 2, message: expect.stringContaining('got neither') })
  expect(await accept('abcdef', '--paths', '*')).toMatchObject({
    code: 2,
    message: expect.stringContaining('got both'),
  })
})
