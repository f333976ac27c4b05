// @module-tag full
// @module-tag slow
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { lockJob } from '../../src/lake/store/lock.ts'
import { readManifest } from '../../src/query/views/manifest.ts'
import { checked, checkers } from '../helpers/certified.ts'
import { pitlake } from '../helpers/command.ts'
import { type Rig, apisAt, otherKey, fetchKey, storedPoints, withRig } from '../helpers/fetching.ts'
import { scratch } from '../helpers/scratch.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
const select = 'select: [{ assets: [BTC], paths: [supply/current_pit], since: 2026-02-01 }]\n'

/** The daily run in a folder beside the lake, with both APIs of the sandbox unless told otherwise. */
async function daily(rig: Rig, { argv = [], config = select, env = {}, signal }: Changes = {}) {
  writeFileSync(join(rig.root, 'pitlake.yaml'), config)
  const world = { now: () => rig.clock.now * 1000, ...(signal && { signal }) }
  const ended = await pitlake(
    rig.root,
    ['daily', '--data', lakeOf(rig), ...argv],
    { ...apisAt(rig.url), ...env },
    world,
  )
  const err = ended.notes + ended.message
  for (const key of [fetchKey, otherKey]) expect(ended.out + err).not.toContain(key)
  return { code: ended.code, lines: ended.out.split('\n').slice(0, -1), err }
}

interface Changes {
  readonly argv?: readonly string[]
  readonly config?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal
}

const lakeOf = (rig: Rig): string => join(rig.root, 'lake')
const names = (lines: readonly string[]): string[] => lines.map((line) => line.slice(0, 14).trim())
const codes = (lines: readonly string[]): number[] => lines.map((line) => Number(/^.{14} (\d)  \S/.exec(line)?.[1]))
const six = ['fetch', 'registry sync', 'views', 'merge', 'verify', 'status page']

/** What a first run said, and the lake that it began. */
const kept = scratch('daily')
let first: Awaited<ReturnType<typeof daily>>
beforeAll(async () =>
  withRig(now, async (rig) => {
    first = await daily(rig)
    cpSync(lakeOf(rig), kept, { recursive: true })
  }),
)

/** The same lake, as if that run had been there. */
const begun = (rig: Rig): void => cpSync(kept, lakeOf(rig), { recursive: true })

test('begins a lake, keeps it fresh, and a line for each step says so', async () =>
  withRig(now, async (rig) => {
    begun(rig)
    expect([first.code, names(first.lines), codes(first.lines)]).toEqual([0, six, [0, 0, 0, 0, 0, 0]])
    expect(first.lines[0]).toMatch(/\d+ points added with \d+ requests?, version \d/)
    expect(first.lines[4]).toMatch(/files? sound, 1 window, 60 addresses of the registry compared, nothing differs/)
    expect(first.lines[5]).toMatch(/status\.html written; trust: yes/)
    expect(readFileSync(join(lakeOf(rig), 'status.html'), 'utf8')).toContain('<html')
    rig.clock.now += day
    const second = await daily(rig, { argv: ['--json'] })
    const document = JSON.parse(second.lines.join('\n')) as {
      exit_code: number
      steps: { step: string; exit_code: number; report: Record<string, unknown> | null }[]
    }
    expect([second.code, document.exit_code, document.steps.map(({ step }) => step)]).toEqual([0, 0, six])
    expect(document.steps[0]?.report).toMatchObject({ points_added: 1, violations: 0 })
    expect(document.steps[5]?.report).toMatchObject({ trust: 'yes' })
    // Flags of points alone leave the registry out.
    const config = join(rig.root, 'pitlake.yaml')
    const argv = ['verify', '--config', config, '--data', lakeOf(rig), '--paths', 'supply/*', '--json']
    const verified = await pitlake(rig.root, argv, apisAt(rig.url), { now: () => rig.clock.now * 1000 })
    expect([verified.code, JSON.parse(verified.out)]).toEqual([0, expect.objectContaining({ registry: null })])
  }))

test('files that a daily run merges are merged in its views, too', async () =>
  withRig(now, async (rig) => {
    for (let run = 0; run < 3; run++) {
      await rig.fetch({ assets: ['BTC'], paths: ['supply/current_pit'], since: now - 20 * day }, { data: lakeOf(rig) })
      rig.clock.now += day
    }
    // Else the fetch would merge and the verify make views, each at its end.
    const none = { PITLAKE_METRICS_URL: undefined, PITLAKE_REGISTRY_URL: undefined, PITLAKE_REGISTRY_KEY: undefined }
    const done = await daily(rig, { env: none })
    expect(codes(done.lines)).toEqual([2, 0, 0, 0, 2, 0])
    expect(done.lines[3]).toMatch(/^merge +0 {2}\d+ files? became 1$/)
    expect((await readManifest(lakeOf(rig)))?.version).toBe(await versionOf(rig))
  }))

test('each step of a daily run starts even if others failed, and the gravest exit code wins', async () =>
  withRig(now, async (rig) => {
    begun(rig)
    rig.clock.now += day
    rig.faults(`rewrite@supply/*:t=${now - (now % day) - 2 * day},v=101`)
    const found = await daily(rig, { env: { PITLAKE_REGISTRY_KEY: 'not-the-right-key' } })
    // What the overlap found verify finds, too.
    expect([found.code, names(found.lines), codes(found.lines)]).toEqual([4, six, [4, 3, 0, 0, 4, 0]])
    expect(found.lines[0]).toContain('pitlake violations list')
    expect(found.lines[1]).toContain('check PITLAKE_REGISTRY_KEY')
    expect(found.lines[5]).toContain('trust: look')
    const lock = await lockJob(lakeOf(rig), 'registry', { pid: 1, host: 'h', command: 'pitlake x', since: 1 })
    rig.faults()
    const busy = await daily(rig)
    await lock.release()
    expect([busy.code, codes(busy.lines)]).toEqual([7, [0, 7, 0, 0, 0, 0]])
    expect(busy.lines[1]).toMatch(/another registry job is at work.*run the same command again/)
  }))

test('--dry-run of a daily run sends no request and writes no file, with and without a lake', async () =>
  withRig(now, async (rig) => {
    const none = await daily(rig, { argv: ['--dry-run'], config: `${select}daily: { vacuum: true }\n` })
    expect(names(none.lines)).toEqual([...six, 'vacuum'])
    expect(none.lines[0]).toMatch(/would send 1 request for 1 credit, about \d+ points/)
    expect(existsSync(lakeOf(rig))).toBe(false)
    begun(rig)
    rmSync(join(lakeOf(rig), 'status.html'))
    rig.clock.now += day
    const sent = rig.sandbox.requests().length
    const version = await versionOf(rig)
    const files = readdirSync(lakeOf(rig)).toSorted()
    const little = await daily(rig, { argv: ['--dry-run'], config: `${select}daily: { verify_budget: 5 }\n` })
    expect(little.lines.find((line) => line.startsWith('verify'))).toContain('would compare within 5 credits')
    const dry = await daily(rig, { argv: ['--dry-run'] })
    expect([dry.code, codes(dry.lines)]).toEqual([0, [0, 0, 0, 0, 0, 0]])
    for (const [i, line] of dry.lines.entries()) expect(line).toMatch(i === 3 ? /would merge|nothing due/ : /would /)
    expect(rig.sandbox.requests().length).toBe(sent)
    expect([await versionOf(rig), readdirSync(lakeOf(rig)).toSorted()]).toEqual([version, files])
  }))

async function versionOf(rig: Rig): Promise<number> {
  using ledger = await Ledger.openToRead(lakeOf(rig))
  const { version } = ledger.head()
  return version
}

test('vacuum is a step only where the config says so, and keeps thirty days; features where there are some', async () =>
  withRig(now, async (rig) => {
    const config = `${select}daily: { vacuum: true }\n`
    const env = { PITLAKE_REGISTRY_URL: undefined, PITLAKE_REGISTRY_KEY: undefined }
    const sql = `SELECT ts, asset, v FROM pit_join('grid', 'supply/current_pit', '24h')`
    const feature = `features: { level: { why: a test, grid: 24h, assets: [BTC], sql: "${sql}" } }\n`
    writeFileSync(join(rig.root, 'features.yaml'), feature)
    for (let run = 0; run < 3; run++) {
      const last = run === 2
      const done = await daily(rig, { config: last ? `${config}catalogs: [features.yaml]\n` : config, env })
      const steps = [...six.slice(0, 3), ...(last ? ['features'] : []), ...six.slice(3), 'vacuum']
      expect([names(done.lines), done.code]).toEqual([steps, 0])
      if (last) expect(done.lines[3]).toMatch(/^features +0 +3\d rows of 1 feature added$/)
      rig.clock.now += day
    }
    const ledger = await Ledger.openToRead(lakeOf(rig))
    const dropped = () =>
      Number(ledger.statement('SELECT count(*) AS n FROM files WHERE dropped_version IS NOT NULL').get()?.['n'])
    expect(dropped()).toBe(0)
    ledger.close()
    const wrong = await daily(rig, { config: `${select}daily: { vacum: true }\n` })
    expect([wrong.code, wrong.lines]).toEqual([2, []])
    expect(wrong.err).toContain('vacum')
  }))

test('an API that is neither set up nor in the lake is skipped; one that is in the lake is missed', async () =>
  withRig(now, async (rig) => {
    const metricsOnly = { PITLAKE_REGISTRY_URL: undefined, PITLAKE_REGISTRY_KEY: undefined }
    const skipped = await daily(rig, { env: metricsOnly })
    expect([skipped.code, skipped.lines[1]]).toEqual([
      0,
      expect.stringContaining('skipped: PITLAKE_REGISTRY_URL is not set'),
    ])
    rmSync(lakeOf(rig), { recursive: true })
    begun(rig)
    expect(codes((await daily(rig, { env: metricsOnly })).lines)).toEqual([0, 2, 0, 0, 0, 0])
    const nothing = { ...metricsOnly, PITLAKE_METRICS_URL: undefined, PITLAKE_METRICS_KEY: undefined }
    rmSync(lakeOf(rig), { recursive: true })
    const none = await daily(rig, { env: nothing })
    expect([none.code, none.lines]).toEqual([2, []])
    expect(none.err).toContain('PITLAKE_METRICS_URL')
  }))

test('a lake of user files alone is checked every day without a provider', async () =>
  withRig(now, async (rig) => {
    const env = {
      PITLAKE_REGISTRY_URL: undefined,
      PITLAKE_REGISTRY_KEY: undefined,
      PITLAKE_METRICS_URL: undefined,
      PITLAKE_METRICS_KEY: undefined,
    }
    const file = join(rig.root, 'signal.csv')
    writeFileSync(file, 'asset,t,v\nBTC,2024-01-01,1\nBTC,2024-01-02,2\n')
    const flags = ['--as', 'signal', '--value', 'v', '--available', 'end+5m', '--data', lakeOf(rig)]
    const world = { now: () => rig.clock.now * 1000 }
    expect((await pitlake(rig.root, ['import', file, ...flags], env, world)).code).toBe(0)
    const { code, lines } = await daily(rig, { env })
    expect([code, codes(lines)]).toEqual([0, [0, 0, 0, 0, 0, 0]])
    expect(lines.slice(0, 2).map((line) => line.includes('skipped: PITLAKE_'))).toEqual([true, true])
    expect(lines[4]).toContain('1 file sound')
  }))

test('an interrupt ends the run after the step at work', async () =>
  withRig(now, async (rig) => {
    const stop = new AbortController()
    stop.abort()
    const { code, lines } = await daily(rig, { signal: stop.signal })
    expect([code, codes(lines)]).toEqual([5, [5, 5, 5, 5, 5, 5]])
    expect(lines[0]).toContain('run the same command again')
  }))

test('a daily run without select tops up stored series; without series it sends no request', async () =>
  withRig(now, async (rig) => {
    const config = 'metrics: { requests_per_minute: 60000 }\n'
    const env = { PITLAKE_REGISTRY_URL: undefined, PITLAKE_REGISTRY_KEY: undefined }
    const none = await daily(rig, { config, env })
    expect([none.code, codes(none.lines).slice(0, 2)]).toEqual([2, [2, 0]])
    expect(none.lines[0]).toContain('nothing is selected')
    rmSync(lakeOf(rig), { recursive: true, force: true })
    const held = [
      { assets: ['BTC'], paths: ['supply/current_pit'], currencies: ['usd'], since: now - 20 * day },
      { assets: ['ETH', 'BTC'], paths: ['addresses/active_count_pit'], since: now - 10 * day },
      { assets: ['BTC'], paths: ['market/*'], intervals: ['1h'], since: now - 3 * day },
    ]
    for (const selection of held) await rig.fetch(selection, { data: lakeOf(rig) })
    rig.clock.now += 2 * day
    const planned = await daily(rig, { config, env, argv: ['--dry-run'] })
    expect(planned.lines[0]).toMatch(/^fetch +0 +would send [1-9]/)
    const done = await daily(rig, { config, env })
    expect([done.code, codes(done.lines)]).toEqual([0, [0, 0, 0, 0, 0, 0]])
    const wanted = held.flatMap((selection) => rig.truth(selection)).toSorted()
    expect(await storedPoints(lakeOf(rig))).toEqual(wanted)
  }))

test('a daily run with a key writes the head of the log and runs the hook; a certificate names user tables', async () =>
  withRig(now, async (rig) => {
    const key = join(rig.root, 'own.key')
    const told = join(rig.root, 'told.json')
    const run = async (...argv: readonly string[]) => await pitlake(rig.root, [...argv, '--data', lakeOf(rig)])
    await run('keygen', '--out', key, '--name', 'somebody')
    const config = `${select}hooks:\n  on_head: cat > ${told}\n`
    const env = {
      PITLAKE_HEAD_KEY_FILE: key,
      PATH: process.env['PATH'],
      PITLAKE_REGISTRY_URL: undefined,
      PITLAKE_REGISTRY_KEY: undefined,
    }
    const { code, lines } = await daily(rig, { config, env })
    const metrics = six.filter((name) => name !== 'registry sync')
    expect([code, names(lines).filter((name) => name !== 'registry sync')]).toEqual([
      0,
      [...metrics.slice(0, -1), 'head', 'status page'],
    ])
    const head = JSON.parse(readFileSync(told, 'utf8')) as {
      readonly hook: string
      readonly note: string
      readonly file: string
    }
    expect(head.hook).toBe('on_head')
    expect(readFileSync(join(lakeOf(rig), head.file), 'utf8')).toBe(head.note)
    expect(head.note).toMatch(/^pitlake\/[0-9a-f]{32}\n\d+\n[^\n]{44}\n\n— somebody /)
    writeFileSync(join(rig.root, 'kept.txt'), head.note)
    expect(await run('verify', '--head', 'kept.txt', '--key', key)).toMatchObject({ code: 0, out: /^extends/ })
    // Of a join the engine tells no plan: then nobody knows.
    const asked = [
      [
        'SELECT metric, state FROM coverage ORDER BY ALL',
        { complete: true, own_tables: ['coverage'] },
        /; 0 lists of 0 files,/,
      ],
      [
        'SELECT c.metric, p.v FROM coverage AS c JOIN points AS p USING (metric) ORDER BY ALL',
        { complete: false, own_tables: null },
        /; 2 lists of 2 files,/,
      ],
    ] as const
    for (const [n, [sql, reads, proved]] of asked.entries()) {
      writeFileSync(join(rig.root, 'q.sql'), sql)
      await run('stamp', 'q.sql', '--out', `${n}.parquet`)
      expect(await run('certify', `${n}.parquet`, '--key', key, '--out', `${n}.json`)).toMatchObject({ code: 0 })
      expect(JSON.parse(readFileSync(join(rig.root, `${n}.json`), 'utf8'))).toMatchObject({ reads })
      for (const checker of checkers)
        expect(checked(checker, rig.root, [`${n}.json`, '--head', 'kept.txt'])).toMatchObject({
          status: 0,
          lines: [proved],
        })
    }
  }))
