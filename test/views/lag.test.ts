import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { lagOf, lagOfMirror, lagText } from '../../src/lake/ledger/derived.ts'
import { openLake } from '../../src/index.ts'
import { openQuery } from '../../src/query/lake.ts'
import { runSession } from '../../src/interfaces/server/session.ts'
import type { LakeStanding } from '../../src/interfaces/report/status.ts'
import type { Damage } from '../../src/maintenance/upkeep/findings.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { Agent } from '../helpers/agent.ts'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { listening, sleep } from '../helpers/listening.ts'
import { newestVersion, viewsVersion } from '../helpers/lakes/written-by-commands.ts'

/* Views that are behind their journal, as a kill between commit and views leaves them: every interface mends them or says so. */

const views = ['lake.duckdb', 'lake.sql', 'lake.manifest.json']
const version = 'SELECT version FROM lake_info'

/** A lake with one series. */
async function begun(desk: Desk): Promise<string> {
  await grown(desk)
  return join(desk.folder, 'lake')
}

/** Another import; its version. */
async function grown(desk: Desk): Promise<number> {
  const root = join(desk.folder, 'lake')
  const name = `s${existsSync(root) ? newestVersion(root) : 0}`
  const done = await desk.take([
    desk.put(`${name}.csv`, 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02,2\n'),
    '--as',
    name,
    '--available',
    'end',
  ])
  expect(done.code).toBe(0)
  return newestVersion(root)
}

/** Brings in more, and puts the views back as they were. */
async function leftBehind(
  desk: Desk,
): Promise<{ readonly made: number; readonly newest: number; readonly words: string }> {
  const root = join(desk.folder, 'lake')
  const made = viewsVersion(root)
  for (const name of views) copyFileSync(join(root, name), join(desk.folder, name))
  const newest = await grown(desk)
  for (const name of views) copyFileSync(join(desk.folder, name), join(root, name))
  return { made, newest, words: `of version ${made}, the lake is at ${newest}: run pitlake views` }
}

/** Has the views say that they were made with a different catalogue, which keeps readers from making them. */
function madeElsewhere(root: string, change: object = { catalogue: 'a different one' }): void {
  const file = join(root, 'lake.manifest.json')
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), ...change }))
}

/** What `sql` answers and says beside. */
async function queried(desk: Desk): Promise<{ readonly notes: string; readonly rows: string }> {
  const out = join(desk.folder, 'answer.csv')
  const { notes } = await desk.run(['sql', version, '--out', out])
  return { notes, rows: readFileSync(out, 'utf8') }
}

test('`sql` over older views makes those of the newest version first', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    const { newest } = await leftBehind(desk)
    const { notes, rows } = await queried(desk)
    expect([rows, notes, viewsVersion(root)]).toEqual([`version\n${newest}\n`, '', newest])
  }))

test('`sql` over older views that were made with a different catalogue says so and leaves them', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    const { made, words } = await leftBehind(desk)
    madeElsewhere(root)
    const { notes, rows } = await queried(desk)
    expect([rows, viewsVersion(root)]).toEqual([`version\n${made}\n`, made])
    expect(notes).toContain(`note: these views are ${words}`)
  }))

test('`openLake`, also one that has been open, notes views that were left behind', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    const lake = await openLake(root)
    try {
      await lake.sql(version)
      expect(lake.notes).toEqual([])
      const { made, words } = await leftBehind(desk)
      await lake.sql(version)
      expect(lake.notes).toEqual([expect.stringContaining(words)])
      expect([await lake.refresh(), made]).toEqual([made, made])
      expect((await desk.run(['views'])).code).toBe(0)
      await lake.sql(version)
      expect(lake.notes).toEqual([])
    } finally {
      await lake.close()
    }
  }))

test('a session notes views that were left behind while it is open', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    const { words } = await leftBehind(desk)
    using engine = await openQuery(root)
    const input = new PassThrough()
    const output = new PassThrough()
    input.end(`${version};\n`)
    const deps = { input, output, terminal: false, size: () => ({ width: 80, height: 24 }), now: () => 0, sleep }
    await runSession(engine, root, { ...deps, historyFile: join(desk.folder, 'history') })
    expect(String(output.read())).toContain(words)
  }))

test('`serve` that has been open makes views that were left behind before it answers', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    const door = await listening(root, ['serve'])
    try {
      const asked = async () => await (await fetch(`${door.url}/query?sql=${encodeURIComponent(version)}`)).json()
      const before = newestVersion(root)
      expect(await asked()).toEqual({ version: before })
      const { newest } = await leftBehind(desk)
      expect(await asked()).toEqual({ version: newest })
      const later = await leftBehind(desk)
      madeElsewhere(root)
      const answer = await fetch(`${door.url}/query?sql=${encodeURIComponent(version)}`)
      expect(decodeURIComponent(answer.headers.get('pitlake-notes') ?? '')).toContain(later.words)
      expect(door.said()).toContain(`note: these views are ${later.words}`)
    } finally {
      await door.stop()
    }
  }))

test('`mcp` that has been open makes views that were left behind before it answers', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    await using agent = await Agent.at(root)
    const asked = async () =>
      (await agent.one('query', { sql: 'SELECT count(*) AS n FROM points', as_of: '2030-01-01' })).lake.version
    expect(await asked()).toBe(newestVersion(root))
    const { newest } = await leftBehind(desk)
    expect(await asked()).toBe(newest)
  }))

test('doctor reports views that are behind', async () =>
  await withDesk(async (desk) => {
    await begun(desk)
    const { made, newest } = await leftBehind(desk)
    const { out } = await desk.run(['doctor', '--json'])
    const found = `it is of version ${made}, the lake is at ${newest}`
    expect(JSON.parse(out)).toMatchObject({
      ok: true,
      findings: [{ kind: 'views_behind', found, remedy: 'run pitlake views' }],
    })
  }))

test('published tables, a backup and a mirror that are behind: `status` and `doctor` name them, the mirror says so to who opens it', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    const [pub, bak, mirror] = ['pub', 'bak', 'mirror'].map((name) => join(desk.folder, name)) as [
      string,
      string,
      string,
    ]
    const inMirror = async (...argv: string[]) => await pitlake(desk.folder, [...argv, '--data', mirror])
    /** What `status` and `doctor` say is behind, `doctor` in the same words. */
    const behind = async (run: (...argv: string[]) => Promise<Ended>): Promise<unknown> => {
      const standing = JSON.parse((await run('status', '--json')).out) as LakeStanding
      const { findings } = JSON.parse((await run('doctor', '--json')).out) as { readonly findings: readonly Damage[] }
      const words = standing.reasons.flatMap(({ kind, level, text, next }) =>
        kind === 'behind' ? [`${level} ${text}: run ${next}`] : [],
      )
      const found = findings.flatMap((one) => (one.kind === 'copy_behind' ? [`note ${one.found}: ${one.remedy}`] : []))
      expect(found).toEqual(words)
      return words
    }
    const lake = async (...argv: string[]) => await desk.run(argv)
    for (const argv of [
      ['publish', pub, '--lake'],
      ['backup', bak],
    ])
      expect((await desk.run(argv)).code).toBe(0)
    expect((await inMirror('pull', root)).code).toBe(0)
    const made = newestVersion(root)
    expect([await behind(lake), await behind(inMirror)]).toEqual([[], []])
    const newest = await grown(desk)
    const of = `of version ${made}, the lake is at ${newest}: run pitlake`
    expect(await behind(lake)).toEqual([
      `note files of the backup at ${bak} are ${of} backup ${bak}`,
      `note published tables at ${pub} are ${of} publish ${pub} --lake`,
    ])
    const words = `the data of this mirror are ${of} pull ${root}`
    expect(await behind(inMirror)).toEqual([`note ${words}`])
    expect((await inMirror('sql', version, '--out', join(desk.folder, 'm.csv'))).notes).toContain(`note: ${words}`)
    const opened = await openLake(mirror)
    await opened.sql(version)
    expect(opened.notes).toEqual([words])
    await opened.close()
    for (const argv of [
      ['publish', pub, '--lake'],
      ['backup', bak],
    ])
      expect((await desk.run(argv)).code).toBe(0)
    expect((await inMirror('pull', root)).code).toBe(0)
    expect([await behind(lake), await behind(inMirror)]).toEqual([[], []])
  }))

test('a mirror whose source is gone, or is a different lake now, says nothing of it', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    const mirror = join(desk.folder, 'mirror')
    expect((await pitlake(desk.folder, ['pull', root, '--data', mirror])).code).toBe(0)
    await grown(desk)
    expect((await lagOfMirror(mirror))?.lake.newest).toBe(newestVersion(root))
    const marker = join(root, 'lake.json')
    writeFileSync(marker, readFileSync(marker, 'utf8').replace(/"lake":"[0-9a-f]{4}/, '"lake":"abcd'))
    expect(await lagOfMirror(mirror)).toBe(null)
    rmSync(root, { recursive: true })
    expect(await lagOfMirror(mirror)).toBe(null)
  }))

test('a command without work rebuilds views of an older program', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    const file = desk.put('q.sql', 'SELECT 1')
    await desk.run(['preregister', file])
    for (const change of [
      { program: 'pitlake 0.0.1' },
      { templates: 'those of before' },
      { catalogue: 'another' },
      { runs: '0 files' },
    ]) {
      const made = readFileSync(join(root, 'lake.manifest.json'), 'utf8')
      madeElsewhere(root, change)
      if ('program' in change) expect((await queried(desk)).notes).toMatch(/these views were made by pitlake 0\.0\.1/)
      expect((await desk.run(['preregister', file])).code).toBe(0)
      const now = readFileSync(join(root, 'lake.manifest.json'), 'utf8')
      expect({ ...change, ...(JSON.parse(now) as object) }).toEqual(JSON.parse(made))
    }
  }))

/** Does work while nothing can be put in the place of `lake.duckdb`. */
async function withoutViews(code: string, work: () => Promise<void>): Promise<void> {
  const { rename } = fs
  const failing = async (from: string, to: string): Promise<void> => {
    if (to.endsWith('lake.duckdb')) throw Object.assign(new Error(`${code}: test, rename '${to}'`), { code, path: to })
    await rename(from, to)
  }
  Object.assign(fs, { rename: failing })
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    Object.assign(fs, { rename })
    syncBuiltinESMExports()
  }
}

test.each([
  ['import', 'ENOSPC', 'no space left on the disk; make room'],
  ['import', 'EROFS', 'the file system is read-only; mount it writable or name another folder with --data'],
  ['preregister', 'EIO', 'the disk reports an input/output error; check the disk'],
])(
  '`%s` that cannot replace the views (%s) ends with 6, and the same command makes them',
  async (command, code, words) =>
    await withDesk(async (desk) => {
      const root = await begun(desk)
      const file = desk.put('p.csv', 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02,2\n')
      const argv = command === 'try' ? ['preregister', file] : ['import', file, '--as', 'p', '--available', 'end']
      await withoutViews(code, async () => {
        const ended = await desk.run(argv)
        expect([ended.code, viewsVersion(root)]).toEqual([6, 1])
        const stay = `the views stay at version 1: expected version ${newestVersion(root)}, which is committed`
        expect(ended.message).toBe(`${stay}, got ${code}: ${words}, then run pitlake views: the data are safe`)
      })
      expect([(await desk.run(argv)).code, viewsVersion(root)]).toEqual([0, newestVersion(root)])
    }),
)

test('import reports the version at which the lake stands when it has ended', async () =>
  await withDesk(async (desk) => {
    const root = await begun(desk)
    for (let n = 0; n < 6; n++) {
      const name = desk.put('p.csv', `asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-0${n + 2},1\n`)
      const { told } = await desk.take([name, '--as', 'p', '--interval', '24h', '--available', 'end'])
      expect([told['version'], viewsVersion(root)]).toEqual([newestVersion(root), newestVersion(root)])
    }
    // Merges of small files made versions of their own.
    expect(newestVersion(root)).toBeGreaterThan(7)
  }))

test.each([
  ['of the newest version is current', 5, 'p', null],
  ['ahead of the journal is no lag', 6, 'p', null],
  ['of an earlier version is behind', 4, 'p', 'these views are of version 4, the lake is at 5: run pitlake views'],
  [
    'of no known version is behind',
    null,
    'p',
    'these views are of an unknown version, the lake is at 5: run pitlake views',
  ],
  ['of a different program is behind', 5, 'o', 'these views were made by o, this is p: run pitlake views'],
  ['of an unknown program is current', 5, null, null],
])('derived files that %s are rebuilt or reported', (_, made, program, words) => {
  const thing = { name: 'these views', version: made, program, remedy: 'pitlake views' }
  const lag = lagOf(thing, { newest: 5, program: 'p' })
  expect(lag && lagText(lag)).toBe(words)
})
