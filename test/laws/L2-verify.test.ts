import { readFileSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { archiveRows } from '../../src/maintenance/upkeep/vacuum.ts'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { type verify, type VerifySummary, verifyVerdict } from '../../src/maintenance/upkeep/verify.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { storedVerified } from '../../src/lake/ledger/run-queries.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { pitlake } from '../helpers/command.ts'
import { depsAt, fetchKey, type Rig, settingsAt, trying, withRig } from '../helpers/fetching.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { askedAgain, exitOf } from '../helpers/looking.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { reading } from '../helpers/ledgers.ts'
import { temporaryFolder } from '../helpers/folders.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
const paths = [
  'addresses/profit_count_pit',
  'addresses/loss_count_pit',
  'blockchain/block_count_pit',
  'blockchain/block_height_pit',
  'supply/current_pit',
]
const selection = { assets: ['BTC', 'ETH'], paths, since: now - 30 * day }
type Again = Parameters<typeof askedAgain> extends [unknown, ...infer Rest] ? Rest : never

async function again(rig: Rig, ...[changes, deps]: Again): Promise<VerifySummary> {
  const settings = settingsAt({ ...rig, now: () => rig.clock.now }, { metrics: { credits: { '*': 1 } } })
  return await askedAgain(rig, { settings, budget: 300, ...changes }, deps)
}

async function onRecord(root: string): Promise<{ version: number; results: string[]; kinds: string[] }> {
  using ledger = await Ledger.openToRead(root)
  const { version } = ledger.head()
  const results = [...storedVerified(ledger).values()].flat().map(({ result }) => result)
  const kinds = ledger.statement('SELECT kind FROM violations ORDER BY kind').all()
  return { version, results: results.toSorted(), kinds: kinds.map((row) => String(row['kind'])) }
}

const code = (summary: VerifySummary): number => exitOf(verifyVerdict(summary))

test('L2/L4: the same answers make no version, and are remembered as identical', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(selection)
    const before = await onRecord(rig.root)
    const stored = await rig.stored()
    const events: string[] = []
    const done = await again(rig, {}, { onEvent: (event) => void events.push(event.kind) })
    expect([done.ok, code(done)]).toEqual([true, 0])
    expect(done.windows).toEqual({ held: 10, chosen: 10, verified: 10, refused: 0, failed: 0, left: 0 })
    expect(done.results).toMatchObject({ identical: 10, changed: 0 })
    expect(done.checked.points).toBe(stored.length)
    expect(done.requests).toBe(10)
    expect(events[0]).toBe('planned')
    const after = await onRecord(rig.root)
    expect(after).toEqual({ ...before, results: Array.from({ length: 10 }, () => 'identical') })
    expect(await rig.stored()).toEqual(stored)
    using rebuilt = await Ledger.inMemory(rig.root)
    expect([...storedVerified(rebuilt).values()].flat()).toHaveLength(10)
  }))

test('L2: each value that differs is reported with both values and never applied', async () =>
  withRig(now, async (rig) => {
    const [changed = '', vanished = '', filled = '', moved = '', late = ''] = paths
    rig.faults(`null-filled@${filled}:point=4,asset=BTC,first=1`, `late@${late}:asset=BTC,point=5,shown=${now + 30}`)
    await rig.fetch(selection)
    const stored = await rig.stored()
    rig.faults(
      `rewrite@${changed}:point=3,asset=BTC`,
      `vanished@${vanished}:point=2,n=2,asset=BTC`,
      `computed-at-changed@${moved}:point=6,asset=BTC`,
    )
    const done = await again(rig)
    expect(code(done)).toBe(4)
    expect(done.results).toEqual({
      changed: 1,
      vanished: 1,
      'null filled': 1,
      'computed_at changed': 1,
      revised: 0,
      appended: 1,
      identical: 5,
    })
    expect(done.differences.map(({ metric, result, asset }) => [metric, result, asset])).toEqual(
      expect.arrayContaining([
        [changed, 'changed', 'BTC'],
        [vanished, 'vanished', 'BTC'],
        [vanished, 'vanished', 'BTC'],
        [filled, 'null filled', 'BTC'],
        [moved, 'computed_at changed', 'BTC'],
      ]),
    )
    expect(done.differences).toHaveLength(5)
    const one = done.differences.find(({ result }) => result === 'changed')
    expect(Number(one?.offered)).toBeCloseTo(Number(one?.stored) * 1.01, 6)
    expect(one?.address).toContain(`${changed}?`)
    expect(one?.stored_request).not.toBe(one?.offered_request)
    expect(Date.parse(one?.stored_at ?? '')).toBeLessThan(Date.parse(one?.offered_at ?? ''))
    expect(done.points_added).toBe(1)
    const kept = await rig.stored()
    expect(kept).toHaveLength(stored.length + 1)
    expect(kept).toEqual(expect.arrayContaining(stored))
    const record = await onRecord(rig.root)
    expect(record.kinds).toEqual(['changed', 'computed_at_changed', 'null_filled', 'vanished', 'vanished'])

    const twice = await again(rig)
    expect([code(twice), twice.differences.length]).toEqual([4, 5])
    expect((await onRecord(rig.root)).version).toBe(record.version)
    expect(twice.damage).toEqual([])
  }))

test('if values depend on the requested range, verify compares only answers to the same range', async () =>
  withRig(now, async (rig) => {
    const path = paths[0] ?? ''
    const endpoint = catalogue.endpoints.get(path)
    if (endpoint === undefined) throw new Error('no endpoint')
    const ranged = { ...endpoint, overlap: 'fixed_range' } as const
    const input = { catalogue: { ...trying, endpoints: new Map(catalogue.endpoints).set(path, ranged) } }
    const one = { assets: ['BTC'], paths: [path], since: now - 20 * day }
    await rig.fetch(one, { input })
    expect((await again(rig, { catalogue: input.catalogue })).windows).toMatchObject({ held: 1, verified: 1 })
    rig.clock.now += day
    await rig.fetch(one, { input })
    expect((await again(rig, { catalogue: input.catalogue })).windows).toMatchObject({ held: 0 })
  }))

test('L2: verify names the request of a stored value even if its row went into files of the lake', async () =>
  withRig(now, async (rig) => {
    const [changed = ''] = paths
    const few = { assets: ['BTC'], paths: [changed], since: now - 20 * day }
    await rig.fetch({ ...few, until: now - 4 * day })
    const looked = async <T>(look: (ledger: Ledger) => Promise<T> | T): Promise<T> => {
      using ledger = await Ledger.open(rig.root)
      return await look(ledger)
    }
    const onHand = async (): Promise<unknown[]> =>
      await looked((ledger) => ledger.statement("SELECT id FROM requests WHERE path NOT LIKE '%assets'").all())
    const [first] = (await onHand()) as { id: string }[]
    rig.clock.now += 5 * day
    await rig.fetch(few)
    await looked(async (ledger) => await archiveRows(ledger, depsAt({ ...rig, now: () => rig.clock.now }), 1))
    expect(await onHand()).not.toContainEqual(first)
    rig.faults(`rewrite@${changed}:point=3,asset=BTC`)
    const { differences } = await again(rig)
    expect(differences.map(({ stored_request }) => stored_request)).toEqual([first?.id])
  }))

test('L2: an answer without content is not taken for agreement, a broken one not for a difference', async () =>
  withRig(now, async (rig) => {
    const [first = '', second = '', third = ''] = paths
    await rig.fetch({ ...selection, assets: ['BTC'] })
    rig.faults(`no-content-204@${first}`, `forbidden-403@${second}`, `poison-text-v@${third}:point=1`)
    const done = await again(rig)
    expect(done.results).toMatchObject({ vanished: 1, identical: 2 })
    expect(done.differences).toHaveLength(29)
    expect(new Set(done.failures.map(({ series }) => series.split('|')[0]))).toEqual(new Set([second, third]))
    expect(done.failures.every(({ reason }) => reason.length > 3)).toBe(true)
    // The same refusal again is no failure of the next run, whatever else failed meanwhile is.
    rig.faults(`forbidden-403@${second}`)
    const refused = await again(rig)
    expect([code(refused), refused.windows.refused]).toEqual([0, 1])
    rig.faults()
    expect(code(await again(rig))).toBe(0)
    expect((await rig.fetch({ ...selection, assets: ['BTC'] })).requests).toBe(0)
  }))

test('the budget is spread over the endpoints; early ends go on with what is left', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(selection)
    const few = await again(rig, { budget: 5 })
    expect(few.windows).toMatchObject({ held: 10, chosen: 5, verified: 5 })
    await reading(rig.root, (ledger) =>
      expect(new Set([...storedVerified(ledger).keys()].map((id) => id.split('|')[0])).size).toBe(5),
    )
    const others = await again(rig, { budget: 5 })
    expect([others.windows.verified, (await onRecord(rig.root)).results.length]).toEqual([5, 10])

    const cut = await again(rig, { budget: null, maxRequests: 4 })
    expect([code(cut), cut.stopped_by, cut.windows]).toEqual([
      5,
      'max_requests',
      { held: 10, chosen: 10, verified: 4, refused: 0, failed: 0, left: 6 },
    ])
    const halt = new AbortController()
    const onEvent: Parameters<typeof verify>[1]['onEvent'] = ({ kind }) => void (kind === 'answered' && halt.abort())
    const interrupted = await again(rig, { budget: null }, { signal: halt.signal, onEvent })
    expect([code(interrupted), interrupted.stopped_by, interrupted.windows.chosen]).toEqual([5, 'signal', 6])
    const rest = await again(rig, { budget: null })
    expect([code(rest), rest.windows.chosen]).toEqual([0, 6 - interrupted.windows.verified])
    expect((await again(rig, { budget: null })).windows.chosen).toBe(10)

    const part = { paths: [paths[0] ?? ''], assets: ['E*'], since: now - 10 * day, until: now - 5 * day }
    expect((await again(rig, { scope: part })).windows).toMatchObject({ held: 1, verified: 1 })
    await expect(again(rig, { scope: { ...part, assets: ['XRP'] } })).rejects.toThrow('nothing to verify')
  }))

test('verify names a damaged file before it sends a request, and still compares the rest', async () =>
  withRig(now, async (rig) => {
    await rig.fetch(selection)
    await compact(rig.root, { ...commitDeps(), signal: new AbortController().signal })
    const [file] = await reading(rig.root, (ledger) => liveFiles(ledger, { table: 'points' }))
    truncateSync(inLake(rig.root, file?.path ?? ''), 100)
    const order: string[] = []
    rig.onRequest(() => order.push('asked'))
    const onDamage = (damage: readonly { path: string }[]): void => void order.push(...damage.map(({ path }) => path))
    const done = await again(rig, {}, { onDamage })
    expect([code(done), order[0]]).toEqual([4, file?.path])
    expect(done.damage.map(({ kind, path }) => [kind, path])).toEqual([['file_torn', file?.path]])
    expect(done.windows).toMatchObject({ held: 8, verified: 8 })
    rmSync(join(rig.root, 'ledger.sqlite'))
    const lost = await again(rig)
    expect([code(lost), lost.damage[0]?.kind, lost.requests]).toEqual([4, 'ledger_lost', 0])
  }))

test('L2: both levels of files are compared; of a damaged recent one only its partitions are left out', async () =>
  withRig(now, async (rig) => {
    const [early = '', late = '', ...others] = paths
    const two = { ...selection, paths: [early, late] }
    const border = now - (now % day) - 10 * day
    await rig.fetch({ ...two, until: border })
    const deps = commitDeps({ nowMicros: () => rig.clock.now * 1_000_000 })
    await compact(rig.root, { ...deps, signal: new AbortController().signal })
    await rig.fetch(two)
    await rig.fetch({ ...selection, paths: others })
    const files = await reading(rig.root, (ledger) => liveFiles(ledger, { table: 'points' }))
    const [first, second, ...more] = files.filter(({ metric }) => metric === null)
    expect([files.flatMap(({ metric }) => metric ?? []).toSorted(), second?.metric, more]).toEqual([
      [early, late].toSorted(),
      null,
      [],
    ])
    const stored = await rig.stored()
    const sound = await again(rig)
    expect([code(sound), sound.results.identical, sound.checked.points]).toEqual([0, 10, stored.length])

    const own = border - 5 * day
    const recent = border + 3 * day
    rig.faults(`rewrite@${early}:t=${own},asset=BTC`, `rewrite@${late}:t=${recent},asset=BTC`)
    const found = await again(rig)
    expect(code(found)).toBe(4)
    const differing = found.differences.map(
      ({ metric, result, t }) => [metric, [result, Date.parse(t) / 1000]] as const,
    )
    expect(differing).toHaveLength(2)
    expect(Object.fromEntries(differing)).toEqual({ [early]: ['changed', own], [late]: ['changed', recent] })
    expect(await rig.stored()).toEqual(stored)

    rig.faults()
    truncateSync(inLake(rig.root, first?.path ?? ''), 100)
    const damaged = await again(rig)
    expect([code(damaged), damaged.damage.map(({ kind, path }) => [kind, path])]).toEqual([
      4,
      [['file_torn', first?.path]],
    ])
    expect([damaged.windows, damaged.results.identical]).toMatchObject([{ held: 6, verified: 6 }, 6])
    expect(damaged.checked.points).toBe(second?.rows)
    rig.clock.now += day
    expect((await rig.fetch({ ...selection, paths: others })).points_added).toBe(2 * others.length)
    await expect(rig.fetch(two)).rejects.toThrow(first?.path)
  }))

test('the command states its budget first and writes a report without the key', async () =>
  withRig(now, async (rig) => {
    using cwdFolder = temporaryFolder('verify')
    const cwd = cwdFolder.path
    await rig.fetch(selection)
    rig.faults(`rewrite@${paths[0]}:point=3,asset=BTC`)
    const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
    const argv = ['verify', '--data', rig.root, '--report', 'report.md', '--budget', '15']
    const ran = await pitlake(cwd, argv, env, { now: () => (rig.clock.now + 60) * 1000 })
    expect(ran.message).toContain('1 stored value differs upstream')
    const { out, notes: told } = ran
    expect(told).toContain('requests 10 of 10 windows of 5 endpoints again, with a budget of 15 credits')
    expect(told.indexOf('budget')).toBeLessThan(told.indexOf('version'))
    expect(out.split('\n').every((line) => line.length <= 80)).toBe(true)
    expect(out).toMatch(/results +1 changed, 9 identical/)
    const report = readFileSync(join(cwd, 'report.md'), 'utf8')
    expect(report).toContain(`${paths[0]}?`)
    expect(report).toMatch(/\| \S+T00:00:00Z \| changed \| `\S+` \| `\S+` \| \S+Z \| \S+ \|/)
    expect(report + out + told).not.toContain(fetchKey)
    const engine = await Engine.open(join(rig.root, 'lake.duckdb'), { readOnly: true })
    const [row] = await engine.rows(
      "SELECT bool_and(verified_at IS NOT NULL) AS compared FROM coverage WHERE state = 'covered'",
    )
    engine.close()
    expect(row).toEqual({ compared: true })
  }))
