import { mkdirSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { loadCoverage } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { passingFacts } from '../../src/sources/registry/staging.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { checkClock, clockNote, mendClock } from '../../src/maintenance/upkeep/clock-ahead.ts'
import { commitDeps, coverageRow, seriesRow } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'

const now = Date.UTC(2026, 0, 2) * 1000
const hour = 3600 * 1e6
const year = 365 * 86_400 * 1e6

/** A lake whose versions were committed at these instants. */
async function withVersions(
  synthetic: boolean,
  instants: readonly number[],
  work: (ledger: Ledger, found: () => readonly string[]) => Promise<void> | void,
): Promise<void> {
  await inFolder(async (root) => {
    using ledger = await Ledger.open(root)
    for (const [n, at] of instants.entries())
      await commit(
        ledger,
        { job: 'fetch', run: 'r', provider: { metrics: 'p', synthetic }, state: { n } },
        commitDeps({ nowMicros: () => at }),
      )
    await work(ledger, () =>
      checkClock(ledger, now).map(({ kind, severity, path, found }) => `${severity} ${kind} ${path}: ${found}`),
    )
  })
}

test('the first version that has not come yet is damage, of made-up data a notice; an hour ahead is nothing', async () => {
  const words = 'clock_ahead journal: version 3 was committed at 2027-01-02T00:00:00Z, which has not come yet'
  const ahead = [now - hour, now, now + year, now + 2 * year]
  await withVersions(false, ahead, (ledger, found) => {
    expect(found()).toEqual([`damage ${words}`])
    expect(clockNote(ledger, now)).toBe(
      'version 4 was committed at 2028-01-02T00:00:00Z, the clock of this machine says 2026-01-02T00:00:00Z: see pitlake doctor',
    )
  })
  await withVersions(true, ahead, (_, found) => expect(found()).toEqual([`notice ${words}`]))
  await withVersions(false, [now, now + hour], (ledger, found) => {
    expect([found(), clockNote(ledger, now)]).toEqual([[], null])
  })
})

test('a run of the future that made no version is a notice, whatever of it was written down', async () => {
  const at = now + hour + 1
  for (const line of [{ run: { id: 'far', job: 'fetch', started_at: at } }, { soft: { polled: { at, value: 1 } } }])
    await withVersions(false, [now], async (ledger, found) => {
      expect(found()).toEqual([])
      mkdirSync(inLake(ledger.root, places.runs), { recursive: true })
      writeFileSync(inLake(ledger.root, `${places.runs}/r.jsonl`), `${JSON.stringify({ after: 0, ...line })}\n`)
      await ledger.catchUp()
      expect(found()).toEqual([
        'notice clock_ahead journal: a run was at work at 2026-01-02T01:00:00Z, which has not come yet',
      ])
    })
})

test('a clock repair takes back answers more than an hour ahead and the time of the last poll', async () => {
  const mended = now + 2 * hour
  const seconds = mended / 1e6
  const line = (value: number) => ({ after: 0, soft: { 'registry.polled': { at: now + year, value } } })
  for (const [ahead, polled] of [
    // Rather too early than too late: after the commit that came before, or never.
    [[now, now + year], now / 1000],
    [[now + year], null],
  ] as const)
    await withVersions(false, ahead, async (ledger) => {
      mkdirSync(inLake(ledger.root, places.runs), { recursive: true })
      writeFileSync(inLake(ledger.root, `${places.runs}/r.jsonl`), `${JSON.stringify(line((now + year) / 1000))}\n`)
      const covered = [3600, 3601].map((late, n) => coverageRow(n, 0, seconds + late, { state: 'empty' }))
      const draft = { job: 'fetch', run: 'r', provider: { metrics: 'p', synthetic: false } }
      await commit(
        ledger,
        { ...draft, series: [seriesRow(0), seriesRow(1)], coverage: covered },
        commitDeps({ nowMicros: () => now + year + hour }),
      )
      expect(await mendClock(ledger, commitDeps({ nowMicros: () => mended }))).toHaveLength(1)
      expect(checkClock(ledger, mended)).toEqual([])
      expect(passingFacts(ledger).polled).toBe(polled)
      expect([...loadCoverage(ledger).values()].flat().map(({ series }) => series)).toEqual([seriesRow(0).id])
    })
})
