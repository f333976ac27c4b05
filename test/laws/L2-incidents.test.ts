// @module-tag full
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { storedViolations, summary } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { type IngestSummary, verdict } from '../../src/sources/metrics/run-summary.ts'
import type { VerifySummary } from '../../src/maintenance/upkeep/verify.ts'
import { pitlake as command } from '../helpers/command.ts'
import { type Rig, withRig } from '../helpers/fetching.ts'
import { dump } from '../helpers/lakes/drafts.ts'
import { leaping } from '../helpers/leaping.ts'
import { askedAgain, exitOf } from '../helpers/looking.ts'
import { withViews } from '../helpers/views.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
const selection = {
  assets: ['BTC', 'ETH'],
  paths: ['supply/*', 'market/*', 'indicators/*', 'addresses/*'],
  intervals: ['24h'],
  since: now - 90 * day,
}

interface Shown {
  readonly id: string
  readonly kind: string
  readonly status: string
  readonly reverted: string | null
  readonly incident?: { readonly points: number; readonly open: number; readonly counts: Record<string, number> }
}

const pitlake = async (rig: Rig, ...argv: string[]): ReturnType<typeof command> =>
  await command(
    rig.root,
    [...argv, '--data', rig.root],
    {},
    leaping(() => rig.clock.now),
  )

const listed = async (rig: Rig, ...argv: string[]): Promise<Shown[]> =>
  (JSON.parse((await pitlake(rig, 'violations', 'list', '--json', ...argv)).out) as { violations: Shown[] }).violations

const verified = async (rig: Rig): Promise<VerifySummary> => await askedAgain(rig)

const code = (done: IngestSummary): number => exitOf(verdict(done))

/** Bytes of the journal. */
function journalBytes(root: string): number {
  const folder = join(root, 'journal')
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

/** The journal alone gives the same index. */
async function rebuiltAlike(root: string): Promise<void> {
  using held = await Ledger.openToRead(root)
  using again = await Ledger.inMemory(root)
  const tables = ({ violations, passed, accepted }: Record<string, unknown[]>) => ({ violations, passed, accepted })
  expect(tables(dump(again))).toEqual(tables(dump(held)))
}

test('a day of nothing and a day of halves are incidents that pass by themselves; nine rewrites among them stay', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(selection)
    const stored = await rig.stored()
    expect(stored.length).toBeGreaterThan(4000)

    rig.clock.now += day
    rig.faults('empty-list')
    const before = journalBytes(rig.root)
    const bad = await rig.fetch(selection)
    expect(bad).toMatchObject({ violations: 1, incidents: 1 })
    expect(code(bad)).toBe(4)
    expect(journalBytes(rig.root) - before).toBeLessThan(200_000)
    const asked = journalBytes(rig.root)
    expect(await verified(rig)).toMatchObject({ ok: false, incidents: 1, differences: [] })
    expect(journalBytes(rig.root) - asked).toBeLessThan(200_000)
    const [one, ...none] = await listed(rig)
    expect([one?.kind, one?.status, none]).toEqual(['incident', 'open', []])
    expect(one?.incident).toMatchObject({
      points: stored.length,
      open: stored.length,
      counts: { vanished: stored.length },
    })
    expect(await rig.stored()).toEqual(stored)

    // The same command again, and a verify: nothing new.
    const held = (await Ledger.openToRead(rig.root)).head().version
    expect(await rig.fetch(selection)).toMatchObject({ version: held, incidents: 1 })
    expect((await verified(rig)).version).toBe(held)
    await rebuiltAlike(rig.root)

    rig.clock.now += day
    rig.faults('vanished:point=0,n=45')
    const half = journalBytes(rig.root)
    expect(code(await rig.fetch(selection))).toBe(4)
    expect(journalBytes(rig.root) - half).toBeLessThan(200_000)
    const [left] = await listed(rig)
    expect(left?.incident?.points).toBe(stored.length)
    expect(left?.incident?.open).toBeLessThan(stored.length)
    expect(left?.incident?.open).toBeGreaterThan(1000)
    await rebuiltAlike(rig.root)

    rig.clock.now += day
    const midnight = rig.clock.now - (rig.clock.now % day)
    rig.faults(
      ...Array.from(
        { length: 9 },
        (_, n) => `rewrite@supply/current_pit:asset=BTC,t=${midnight - (40 + n) * day},v=${n}`,
      ),
    )
    expect(await rig.fetch(selection)).toMatchObject({ violations: 9, incidents: 0 })
    const check = await pitlake(rig, 'status', '--check')
    expect(check.out).toMatch(/integrity: 9 stored values differ upstream/)
    expect(check.out).not.toMatch(/incident/)
    expect(check.code).toBe(4)
    expect((await listed(rig)).map(({ kind }) => kind)).toEqual(Array.from({ length: 9 }, () => 'changed'))
    const all = await listed(rig, '--all')
    expect(all.find(({ kind }) => kind === 'incident')).toMatchObject({
      status: 'reverted',
      reverted: expect.any(String),
      incident: { open: 0 },
    })
    await rebuiltAlike(rig.root)

    // The days of the future are right: what passed and the rewrites stay as they are.
    rig.clock.now += day
    expect(await verified(rig)).toMatchObject({ incidents: 0 })
    rig.faults()
    expect(await verified(rig)).toMatchObject({ ok: true, differences: [], incidents: 0 })
    await rig.fetch(selection)
    using ledger = await Ledger.openToRead(rig.root)
    expect(summary(ledger)).toMatchObject({ violations: 0, incidents: 0, acknowledged: 0, reverted: 10 })
    expect((await rig.stored()).filter((line) => stored.includes(line))).toEqual(stored)
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))

test('many values that differ at once are requested again, and a right second answer leaves no violation', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(selection)
    rig.clock.now += day
    rig.faults('empty-list:each,first=1')
    const done = await rig.fetch(selection)
    expect(done).toMatchObject({ violations: 0, incidents: 0, windows: { failed: 0 } })
    expect(code(done)).toBe(0)
    expect(await listed(rig, '--all')).toEqual([])
    expect(await rig.stored()).toEqual(rig.truth(selection))
    // Both answers of each are on record.
    expect(done.requests).toBeGreaterThan(190)
    using ledger = await Ledger.openToRead(rig.root)
    const [row] = ledger.statement('SELECT count(*) AS n FROM requests WHERE run = ?').all(done.run)
    expect(Number(row?.['n'])).toBeGreaterThanOrEqual(190)
  }))

test('a run that may not send a second request reports the first answer', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(selection)
    rig.clock.now += day
    rig.faults('empty-list')
    const most = 110
    expect(await rig.fetch(selection, most)).toMatchObject({ violations: 1, incidents: 1, stopped_by: 'max_requests' })
    // Answers out of a cache, made before anybody saw a difference, say nothing of it.
    rig.faults()
    rig.clock.now -= 1800
    await rig.fetch(selection)
    expect((await listed(rig)).map(({ kind }) => kind)).toEqual(['incident'])
    rig.clock.now += 1800
    expect(await rig.fetch(selection)).toMatchObject({ violations: 0 })
    expect(await listed(rig)).toEqual([])
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))

const one = { assets: ['BTC'], paths: ['supply/current_pit'], since: now - 30 * day }
const at = (days: number): number => now - (now % day) - days * day

test('a single difference passes when an answer no longer shows it, and opens again when one does', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(one)
    const states = async (): Promise<string[]> =>
      (await listed(rig, '--all')).map(({ kind, status }) => `${kind} ${status}`).toSorted()
    const counts = async (): Promise<number[]> => {
      using ledger = await Ledger.openToRead(rig.root)
      const { violations, reverted } = summary(ledger)
      return [violations, reverted]
    }
    rig.faults(`rewrite@supply/*:t=${at(20)},v=1`, `vanished@supply/*:t=${at(10)}`)
    expect((await verified(rig)).differences).toHaveLength(2)
    expect(await states()).toEqual(['changed open', 'vanished open'])

    // A top-up speaks of its own window alone.
    rig.clock.now += day
    rig.faults()
    await rig.fetch(one)
    expect(await states()).toEqual(['changed open', 'vanished open'])
    const open = rig.clock.now
    expect(await verified(rig)).toMatchObject({ ok: true, differences: [] })
    expect(await states()).toEqual(['changed reverted', 'vanished reverted'])
    expect(await counts()).toEqual([0, 2])
    expect((await pitlake(rig, 'status', '--check')).out).toMatch(/^trusted/)
    await rebuiltAlike(rig.root)

    rig.faults(`rewrite@supply/*:t=${at(20)},v=1`)
    expect((await verified(rig)).differences).toHaveLength(1)
    expect(await states()).toEqual(['changed open', 'vanished reverted'])
    const version = (await verified(rig)).version
    expect((await verified(rig)).version).toBe(version)
    // Another value: the first one is not shown any more, both are kept.
    rig.faults(`rewrite@supply/*:t=${at(20)},v=2`)
    await verified(rig)
    expect(await states()).toEqual(['changed open', 'changed reverted', 'vanished reverted'])
    await rebuiltAlike(rig.root)

    // As the lake stood before the first passing both were open.
    await pitlake(rig, 'views')
    const seen = async (instant: string | null): Promise<unknown> =>
      await withViews(rig.root, async (engine) => {
        if (instant !== null) await engine.run(`SET VARIABLE observed_as_of = '${instant}'`)
        return await engine.rows(
          'SELECT kind, offered::DOUBLE AS v, status, reverted_at IS NULL AS shown FROM violations ORDER BY 1, 2',
        )
      })
    expect(await seen(new Date(open * 1000).toISOString())).toEqual([
      { kind: 'changed', v: 1, status: 'open', shown: true },
      { kind: 'vanished', v: null, status: 'open', shown: true },
    ])
    expect(await seen(null)).toEqual([
      { kind: 'changed', v: 1, status: 'reverted', shown: false },
      { kind: 'changed', v: 2, status: 'open', shown: true },
      { kind: 'vanished', v: null, status: 'reverted', shown: false },
    ])
  }))

test('every offered value of an incident is recorded, and each point that is right again is marked as reverted', async () =>
  withRig(now, async (rig) => {
    const long = { ...one, since: now - 200 * day }
    await rig.fetch(long)
    rig.faults('rewrite@supply/*:point=0,n=150,by=2')
    expect(await verified(rig)).toMatchObject({ incidents: 1, differences: [] })
    using ledger = await Ledger.openToRead(rig.root)
    const rows = storedViolations(ledger)
    expect(rows).toHaveLength(150)
    for (const { stored, offered, incident } of rows) {
      expect(Number(offered)).toBeCloseTo(2 * Number(stored), 3)
      expect(incident).toBe('metrics-2026-03-04')
    }
    // By itself what is found later is no part of it, and one that is accepted stays accepted.
    rig.clock.now += day
    rig.faults('rewrite@supply/*:point=0,n=150,by=2', `rewrite@supply/*:t=${at(3)},v=1`)
    expect(await verified(rig)).toMatchObject({ incidents: 1, differences: [{ result: 'changed' }] })
    const kinds = async (): Promise<string[]> => (await listed(rig)).map(({ kind }) => kind).toSorted()
    expect(await kinds()).toEqual(['changed', 'incident'])
    const accept = ['violations', 'acknowledge', '--paths', '*', '--why', 'seen', '--json'] as const
    const shown = JSON.parse((await pitlake(rig, ...accept)).out) as { made: boolean; chosen: unknown }
    expect(shown).toMatchObject({
      made: false,
      acknowledged: [],
      chosen: [
        { kind: 'incident', day: '2026-03-04', count: 1 },
        { kind: 'changed', day: '2026-03-05', count: 1 },
      ],
    })
    expect(await kinds()).toEqual(['changed', 'incident'])
    const mixed = await pitlake(rig, ...accept, '--yes')
    expect([mixed.code, mixed.message]).toEqual([2, expect.stringMatching(/--kinds.*--days/)])
    expect(await kinds()).toEqual(['changed', 'incident'])
    await pitlake(rig, ...accept, '--yes', '--kinds', 'incident')
    expect(await kinds()).toEqual(['changed'])
    expect(await verified(rig)).toMatchObject({ incidents: 0, differences: [{ result: 'changed' }] })

    // Half of it is right again; more than the accepted one is another incident.
    rig.faults('rewrite@supply/*:point=0,n=120,by=3')
    expect(await verified(rig)).toMatchObject({ incidents: 1 })
    expect((await listed(rig, '--all')).map(({ kind, status }) => `${kind} ${status}`)).toEqual([
      'incident acknowledged',
      'changed reverted',
      'incident open',
    ])
    // What comes on the very day after somebody took note is none of that.
    await pitlake(rig, 'violations', 'acknowledge', 'metrics-2026-03-05', '--why', 'seen')
    rig.faults('rewrite@supply/*:point=0,n=120,by=4')
    expect(await verified(rig)).toMatchObject({ incidents: 1 })
    expect((await listed(rig)).map(({ id }) => id)).toEqual(['metrics-2026-03-05-2'])
    rig.faults()
    expect(await verified(rig)).toMatchObject({ ok: true })
    expect(await listed(rig)).toEqual([])
    await rebuiltAlike(rig.root)
  }))
