// @module-tag full
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { withoutPoints } from '../../src/lake/ledger/draft.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { ownFolders } from '../../src/lake/store/layout.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { reading, writing } from '../helpers/ledgers.ts'
import { pitlake } from '../helpers/command.ts'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { fetchKey } from '../helpers/fetching.ts'
import { withProvider } from '../helpers/provider.ts'
import { sample } from '../helpers/tiers.ts'

/*
 * L2: what a command advises mends the state that it was advised for. Each test causes a state, runs the advised
 * command as it stands in the message, and looks at the lake again.
 */

const days = Array.from({ length: 20 }, (_, n) => `2026-05-${String(n + 1).padStart(2, '0')}`)
const csv = ['asset,t,value', ...days.map((t, n) => `BTC,${t},${n / 4}`)].join('\n')
const importWords = ['--as', 'flows', '--interval', '24h', '--available', 'end']

/** Runs the work with a lake of user data, whose only file is `flows.csv`. */
async function withFlows(work: (desk: Desk, lake: string) => Promise<void>): Promise<void> {
  await withDesk(async (desk) => {
    desk.put('flows.csv', csv)
    expect(await desk.run(['import', 'flows.csv', ...importWords])).toMatchObject({ code: 0 })
    await work(desk, join(desk.folder, 'lake'))
  })
}

/** The commands that a message advises, without `pitlake`. */
const advisedIn = (text: string): string[][] =>
  [...text.matchAll(/pitlake ([a-z]+(?: --[a-z-]+)*)/g)].map(([, words = '']) => words.split(' '))

/** A lake with a signed head, and the words that sign. */
async function withHead(work: (desk: Desk, lake: string, sign: readonly string[]) => Promise<void>): Promise<void> {
  await withFlows(async (desk, lake) => {
    const key = join(desk.folder, 'key')
    expect((await desk.run(['keygen', '--out', key])).code).toBe(0)
    const sign = ['head', '--key', key]
    expect((await desk.run(sign)).code).toBe(0)
    expect((await desk.run(['doctor'])).message).toBe('')
    await work(desk, lake, sign)
  })
}

const headNames = (lake: string): string[] => readdirSync(join(lake, 'heads')).filter((name) => name.endsWith('.txt'))

describe('L2: a file in place of a folder', () => {
  // What stands in these folders is lost with them: their remedies are tried in L2-remedies and L3-pairs.
  const places = ownFolders.filter((place) => !['points', 'journal'].includes(place))

  test.each(sample(places, 3))('%s is found by doctor, which moves it aside', async (place) => {
    await withFlows(async (desk, lake) => {
      rmSync(join(lake, place), { recursive: true, force: true })
      writeFileSync(join(lake, place), 'notes of somebody')
      const found = await desk.run(['doctor'])
      expect(found).toMatchObject({ code: 4, message: expect.stringContaining(`${place}: a file stands where`) })
      const [command = []] = advisedIn(found.message)
      expect(command).toEqual(['doctor', '--repair'])
      await desk.run(command)
      expect(readFileSync(join(lake, `${place}.damaged`), 'utf8')).toBe('notes of somebody')
      expect(await desk.run(['doctor'])).toMatchObject({ code: 0, message: '' })
      expect(await desk.run(['import', 'flows.csv', '--as', 'flows'])).toMatchObject({ code: 0 })
    })
  })

  test.each(sample(['points', 'journal'], 1))('%s is moved aside, and the folder may be put back', async (place) => {
    await withFlows(async (desk, lake) => {
      renameSync(join(lake, place), join(desk.folder, 'copy'))
      writeFileSync(join(lake, place), 'notes of somebody')
      const [command = []] = advisedIn((await desk.run(['doctor'])).message)
      await desk.run(command)
      rmSync(join(lake, place), { recursive: true, force: true })
      cpSync(join(desk.folder, 'copy'), join(lake, place), { recursive: true })
      expect(await desk.run(['doctor'])).toMatchObject({ code: 0, message: '' })
    })
  })
})

describe('L2: a stored head', () => {
  const harms: Readonly<Record<string, (lake: string) => void>> = {
    'whose folder is lost': (lake) => rmSync(join(lake, 'heads'), { recursive: true }),
    'whose file is lost': (lake) => rmSync(join(lake, 'heads', headNames(lake)[0] ?? '')),
    'whose signature has a flipped bit': (lake) => {
      const path = join(lake, 'heads', headNames(lake)[0] ?? '')
      const bytes = readFileSync(path)
      bytes[bytes.length - 9] = (bytes[bytes.length - 9] ?? 0) ^ 1
      writeFileSync(path, bytes)
    },
  }

  test.each(sample(Object.entries(harms), 2))('%s is found, and both remedies mend it', async (_, harm) => {
    await withHead(async (desk, lake, sign) => {
      cpSync(join(lake, 'heads'), join(desk.folder, 'copy'), { recursive: true })
      harm(lake)
      const found = await desk.run(['doctor'])
      expect(found).toMatchObject({ code: 4, message: expect.stringMatching(/^heads\/\d+\.txt: it/) })
      // From a copy.
      mkdirSync(join(lake, 'heads'), { recursive: true })
      cpSync(join(desk.folder, 'copy'), join(lake, 'heads'), { recursive: true })
      expect((await desk.run(['doctor'])).message).toBe('')
      // And without one.
      harm(lake)
      const commands = advisedIn(found.message)
      expect(commands).toEqual([['doctor', '--forget-lost'], ['head']])
      expect(await desk.run(commands[0] ?? [])).toMatchObject({ code: 0 })
      expect(await desk.run(sign)).toMatchObject({ code: 0 })
      expect(headNames(lake)).toHaveLength(1)
      expect(await desk.run(['doctor'])).toMatchObject({ code: 0, message: '' })
      expect((await desk.run(['doctor', '--rebuild-ledger'])).message).toBe('')
    })
  })

  test.each(sample(Object.entries(harms), 1, 3))(
    '%s is found by verify, which compares all the same',
    async (_, harm) => {
      await withHead(async (desk, lake, sign) => {
        expect(await desk.run(['verify'])).toMatchObject({ code: 0, message: '' })
        harm(lake)
        const { code, out, message } = await desk.run(['verify', '--json'])
        expect([code, message]).toEqual([4, expect.stringMatching(/^heads\/\d+\.txt: it/)])
        const { damage, own } = JSON.parse(out) as { damage: { kind: string }[]; own: { files: unknown[] } | null }
        expect(damage.map(({ kind }) => kind)).toEqual([expect.stringMatching(/^head_/)])
        expect(own?.files).toHaveLength(1)
        const [forget = [], signs = []] = advisedIn(message)
        expect([forget, signs]).toEqual([['doctor', '--forget-lost'], ['head']])
        expect(await desk.run(forget)).toMatchObject({ code: 0 })
        expect(await desk.run(sign)).toMatchObject({ code: 0 })
        expect(await desk.run(['verify'])).toMatchObject({ code: 0, message: '' })
      })
    },
  )

  test('is part of a backup, and a restored lake is healthy', async () => {
    await withHead(async (desk, lake) => {
      const [name = ''] = headNames(lake)
      expect(await desk.run(['backup', join(desk.folder, 'safe')])).toMatchObject({ code: 0 })
      const text = readFileSync(join(lake, 'heads', name), 'utf8')
      rmSync(lake, { recursive: true })
      expect(await desk.run(['restore', join(desk.folder, 'safe')])).toMatchObject({ code: 0 })
      expect(readFileSync(join(lake, 'heads', name), 'utf8')).toBe(text)
      expect(await desk.run(['doctor'])).toMatchObject({ code: 0, message: '' })
    })
  })
})

test('L2: a lost key file is to be restored first, and a new key is called what it is', async () => {
  await withHead(async (desk, lake, sign) => {
    const key = sign[2] ?? ''
    const text = readFileSync(key)
    rmSync(key)
    const refused = await desk.run(sign)
    expect(refused).toMatchObject({ code: 2, message: expect.stringContaining(`no file ${key}`) })
    expect(refused.message).toMatch(/put the file back from a backup; a new key \(pitlake keygen\) begins a new line/)
    writeFileSync(key, text)
    expect(await desk.run(sign)).toMatchObject({ code: 0 })
    rmSync(key)
    const renewed = await desk.run(['keygen', '--out', key])
    expect(renewed).toMatchObject({ code: 0, notes: expect.stringContaining('signature of an earlier key') })
    expect(existsSync(dirname(lake))).toBe(true)
  })
})

describe('L2: lost user data', () => {
  test('a report of lost user data names the import that restores them', async () => {
    await withFlows(async (desk, lake) => {
      const before = await desk.rows('SELECT asset, t, v FROM points ORDER BY ALL')
      rmSync(join(lake, 'points'), { recursive: true })
      const found = await desk.run(['doctor'])
      expect(found).toMatchObject({ code: 4, message: expect.stringContaining('pitlake import FILE --as flows') })
      expect(found.out).not.toMatch(/\bfetch\b/)
      const verified = await desk.run(['verify'])
      expect(verified).toMatchObject({ code: 4, message: expect.stringContaining('pitlake import FILE --as flows') })
      expect(verified.message + verified.out).not.toMatch(/\bfetch\b/)
      const [forget = []] = advisedIn(found.message)
      const forgotten = await desk.run(forget)
      expect(forgotten.out).toMatch(/20 points of 1 series .*pitlake import FILE --as flows/)
      expect(forgotten.out).not.toMatch(/\bfetch\b/)
      const { reasons } = JSON.parse((await desk.run(['status', '--json'])).out) as { reasons: { next: string }[] }
      expect(reasons.map(({ next }) => next)).toContain('pitlake import FILE --as flows')
      expect(await desk.run(['import', 'flows.csv', '--as', 'flows'])).toMatchObject({ code: 0 })
      expect(await desk.rows('SELECT asset, t, v FROM points ORDER BY ALL')).toEqual(before)
      expect((await desk.run(['status', '--json'])).out).not.toContain('lost points with a file')
    })
  })
})

test('L2: a verify after the loss of one metric of user data names its import and compares the others', async () => {
  await withFlows(async (desk, lake) => {
    const words = ['--as', 'later', '--interval', '24h', '--available', 'end']
    expect(await desk.run(['import', 'flows.csv', ...words])).toMatchObject({ code: 0 })
    // Each metric has a file of its own then.
    expect(await desk.run(['compact'])).toMatchObject({ code: 0 })
    const files = await reading(lake, (ledger) => liveFiles(ledger, { table: 'points' }))
    const lost = files.filter(({ metric }) => metric === 'own/flows').map(({ path }) => path)
    expect(lost).toHaveLength(1)
    for (const path of lost) rmSync(join(lake, path))
    const { code, out, message } = await desk.run(['verify', '--json'])
    expect([code, message]).toEqual([4, expect.stringContaining('pitlake import FILE --as flows')])
    const { damage, own } = JSON.parse(out) as { damage: { path: string }[]; own: { files: unknown[] } | null }
    expect(damage.map(({ path }) => path)).toEqual(lost)
    expect(own?.files).toMatchObject([{ metric: 'own/later', state: 'held' }])
  })
})

test('L2: a feature over user data waits for their import, with exit code 0', async () => {
  await withFlows(async (desk) => {
    const sql = "SELECT ts, asset, v FROM pit_join('grid', 'own/later', '24h')"
    const feature = `level: { why: a test, grid: 24h, assets: [BTC], since: 2026-05-02, sql: "${sql}" }`
    const catalogue = desk.put('f.yaml', `features:\n  ${feature}\n`)
    const config = ['--config', desk.put('pitlake.yaml', `catalogs: [${catalogue}]\n`)]
    const waiting = await desk.run(['features', ...config])
    expect(waiting).toMatchObject({ code: 0, out: expect.stringMatching(/waits for own\/later: .*\(pitlake import\)/) })
    const words = ['--as', 'later', '--interval', '24h', '--available', 'end']
    expect(await desk.run(['import', 'flows.csv', ...words, ...config])).toMatchObject({ code: 0 })
    const [row] = await desk.rows("SELECT count(*) AS n FROM points WHERE metric = 'feature/level' AND v IS NOT NULL")
    expect(row?.['n']).toBeGreaterThan(15n)
  })
})

test('L2: the first fetch of a lake with a feature over user data ends with 0 and names the import', async () =>
  withProvider(Date.parse('2026-06-01T12:00:00Z') / 1000, async (own) => {
    const t = Date.parse('2026-05-01') / 1000
    own.answer((path) => (path === 'blockchain/block_count_pit' ? [{ t, v: 1 }] : { status: 404 }))
    const sql = "SELECT ts, asset, v FROM pit_join('grid', 'own/later', '24h')"
    const feature = `level: { why: a test, grid: 24h, assets: [BTC], since: 2026-05-02, sql: "${sql}" }`
    writeFileSync(join(own.root, 'f.yaml'), `features:\n  ${feature}\n`)
    const select =
      'select: [{ assets: [BTC], paths: [blockchain/block_count_pit], since: 2026-05-01, until: 2026-05-02 }]'
    writeFileSync(join(own.root, 'pitlake.yaml'), `catalogs: [f.yaml]\n${select}\n`)
    const env = { PITLAKE_METRICS_URL: own.url, PITLAKE_METRICS_KEY: fetchKey, PITLAKE_DATA: join(own.root, 'lake') }
    const ended = await pitlake(own.root, ['fetch'], env, { now: () => own.clock.now * 1000 })
    expect(ended).toMatchObject({ code: 0, message: '' })
    expect(ended.out + ended.notes).toMatch(/waits for own\/later: .*\(pitlake import\)/)
  }))

test('L2: an import whose spool is a file names the finding of doctor, and doctor moves the file aside', async () => {
  await withFlows(async (desk, lake) => {
    rmSync(join(lake, 'spool'), { recursive: true, force: true })
    writeFileSync(join(lake, 'spool'), 'notes of somebody')
    const refused = await desk.run(['import', 'flows.csv', '--as', 'flows'])
    expect(refused.code).not.toBe(0)
    const [mend = []] = advisedIn(refused.message)
    expect([refused.message, mend[0]]).toEqual([expect.stringContaining('spool'), 'doctor'])
    const found = await desk.run(mend)
    const advised = found.code === 0 ? mend : (advisedIn(found.message)[0] ?? [])
    await desk.run(advised)
    expect(await desk.run(['import', 'flows.csv', '--as', 'flows'])).toMatchObject({ code: 0, message: '' })
  })
})

test('L2: a stamp over points alone replays after a registry body was forgotten', async () => {
  await withFlows(async (desk, lake) => {
    desk.put('q.sql', 'SELECT asset, t, v FROM points ORDER BY ALL')
    const provider = { synthetic: false }
    mkdirSync(join(lake, 'spool'), { recursive: true })
    writeFileSync(join(lake, 'spool', 'body'), '{"products":[]}')
    const path = 'registry/raw/feed/0000000002-body.json'
    const body = { temporary: 'spool/body', path, table: 'raw', label: '', rows: 1, meta: {}, ...withoutPoints }
    await writing(lake, async (ledger) => {
      await commit(ledger, { job: 'test', run: 'test', provider, add: [body] }, commitDeps())
    })
    expect(await desk.run(['stamp', 'q.sql', '--out', 'r.parquet'])).toMatchObject({ code: 0 })
    rmSync(join(lake, path))
    expect((await desk.run(['doctor'])).message).toContain('--forget-lost')
    await desk.run(['doctor', '--repair', '--forget-lost'])
    expect(await desk.run(['replay', 'r.parquet'])).toMatchObject({ code: 0, message: '' })
  })
})
