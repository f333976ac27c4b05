import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dispatch } from '../../src/commands/cli.ts'
import { clockNote } from '../../src/upkeep/clock-ahead.ts'
import { examine } from '../../src/upkeep/doctor.ts'
import { heldCoverage, heldVersions, liveFiles, versionAt } from '../../src/ledger/held.ts'
import { Engine } from '../../src/store/engine.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { readPoints } from '../../src/views/relations.ts'
import { depsAt, withRig } from '../helpers/fetching.ts'
import { leaping } from '../helpers/leaping.ts'
import { withProvider } from '../helpers/provider.ts'
import { makeViews } from '../helpers/views.ts'
import { reading } from '../helpers/ledgers.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const selection = { assets: ['BTC'], paths: [count, 'supply/current_pit'], since: start }

test('one run with the clock 50 years ahead is found and mended by one commit with a true instant', async () =>
  withRig(start + 20 * day + 7200, async (rig) => {
    const { root, clock } = rig
    await rig.fetch(selection)
    clock.now += day
    const ahead = () => clock.now * 1000 + 50 * 365 * day * 1000 + performance.now()
    const far = { now: ahead, nowMicros: () => Math.floor(ahead() * 1000) }
    await rig.fetch(selection, { deps: far, input: { now: Math.floor(ahead() / 1000) } })
    clock.now += day
    await rig.fetch(selection)
    const before = await rig.stored()
    const points = async (at: number): Promise<number> => {
      await makeViews(root)
      using engine = await Engine.open(`${root}/lake.duckdb`, { readOnly: true })
      await engine.run(`SET VARIABLE observed_as_of = make_timestamptz(${at * 1_000_000}::BIGINT)`)
      const [row] = await engine.rows('SELECT count(*) AS n FROM points')
      return Number(row?.['n'])
    }
    const all = before.length
    expect(await points(clock.now + 3600)).toBeLessThan(all)
    const doctor = async (repair: boolean) =>
      await examine(
        { data: root, thorough: false, rebuildLedger: false, repair, forgetLost: false },
        {
          ...depsAt({ ...rig, now: () => clock.now }),
          nowMicros: () => clock.now * 1_000_000,
          views: async () => await Promise.resolve(),
          space: async () => await Promise.resolve({ free: 1e12, total: 1e12 }),
        },
      )
    const found = await doctor(false)
    expect(found.findings.filter(({ kind }) => kind === 'clock_ahead')).toHaveLength(1)
    await reading(root, (one) =>
      expect(clockNote(one, clock.now * 1_000_000)).toMatch(/version \d+ was committed at 2076-.*doctor/),
    )
    clock.now += 3600
    const mended = await doctor(true)
    expect(mended.findings.filter(({ kind }) => kind === 'clock_ahead')).toEqual([])
    expect(await rig.stored()).toEqual(before)
    const ledger = await Ledger.openToRead(root)
    const versions = heldVersions(ledger)
    expect(versions.at(-1)?.committed_at).toBe(clock.now * 1_000_000)
    expect(versionAt(ledger, clock.now * 1_000_000)).toBe(versions.at(-1)?.version)
    const rows = [...heldCoverage(ledger).values()].flat()
    expect(Math.max(...rows.flatMap(({ until, asked_at }) => [until, asked_at]))).toBeLessThanOrEqual(clock.now)
    // What stored points prove is still covered, and not asked again.
    expect(rows.filter(({ state }) => state === 'covered').every(({ since }) => since === start)).toBe(true)
    expect(clockNote(ledger, clock.now * 1_000_000)).toBeNull()
    ledger.close()
    const rebuilt = await Ledger.inMemory(root)
    expect([...heldCoverage(rebuilt).values()].flat()).toEqual(rows)
    rebuilt.close()
    expect(await points(clock.now - 1)).toBeLessThan(all)
    expect(await points(clock.now + 1)).toBe(all)
    expect((await doctor(true)).mended.filter((text) => text.includes('clock'))).toEqual([])
    clock.now += 3 * day
    expect(await rig.fetch(selection)).toMatchObject({ violations: 0, windows: { failed: 0 } })
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))

test('vacuum, compact and stamp say that the last commit lies ahead of their clock', async () =>
  withRig(start + 20 * day + 7200, async ({ root, clock, fetch }) => {
    await fetch(selection)
    await writeFile(join(root, 'q.sql'), 'SELECT 1 AS one')
    for (const argv of [['vacuum'], ['compact'], ['stamp', join(root, 'q.sql'), '--out', join(root, 'r.parquet')]]) {
      for (const off of [-day, 60]) {
        let err = ''
        await dispatch([...argv, '--data', root], {
          ...leaping(),
          now: () => (clock.now + off) * 1000,
          random: Math.random,
          env: {},
          stdout: () => undefined,
          stderr: (text) => void (err += text),
          live: () => undefined,
          isTerminal: false,
          signal: new AbortController().signal,
          cwd: root,
        }).catch(() => undefined)
        expect([argv[0], off, err.includes('the clock of this machine says')]).toEqual([argv[0], off, off < 0])
      }
    }
  }))

test('an answer of the future is no witness that points came late', async () =>
  withProvider(start + 10 * day + 7200, async (own) => {
    own.answer((path, query) => {
      if (path === 'assets') return { status: 404, headers: { date: '' } }
      const days = Array.from({ length: Math.floor((own.clock.now - start) / day) }, (_, n) => start + n * day)
      const asked = days.filter((t) => t >= Number(query.get('s')) && t < Number(query.get('u')))
      // It tells no time.
      return { body: asked.map((t) => ({ t, v: t })), headers: { date: '' } }
    })
    const one = { assets: ['BTC'], paths: [count], since: start }
    const ahead = (): number => (own.clock.now + 50 * 365 * day) * 1000 + performance.now()
    const far = { now: ahead, nowMicros: () => Math.floor(ahead() * 1000) }
    await own.fetch(one, { deps: far, input: { now: Math.floor(ahead() / 1000) } })
    own.clock.now += 3 * day
    // Before anybody has mended it.
    expect(await own.fetch(one)).toMatchObject({ points_added: 3 })
    using ledger = await Ledger.openToRead(own.root)
    using engine = await Engine.open()
    const files = liveFiles(ledger, { table: 'points' })
    const bases = await engine.rows(`SELECT DISTINCT basis FROM ${readPoints(own.root, files)}`)
    expect(bases.map(({ basis }) => basis)).not.toContain('observed')
  }))
