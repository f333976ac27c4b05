// @module-tag full
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Diagnosis } from '../../src/maintenance/upkeep/doctor.ts'
import { LakeError } from '../../src/base/errors.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { filesOnDisk } from '../../src/lake/ledger/index-queries.ts'
import { entryFile } from '../../src/lake/store/layout.ts'
import type { Ledger } from '../../src/lake/ledger/ledger.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { openQuery } from '../../src/query/lake.ts'
import { storedPoints } from '../helpers/fetching.ts'
import { rigOfFile } from '../helpers/rig-of-file.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { examined } from '../helpers/looking.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { need } from '../helpers/needs.ts'
import { writing } from '../helpers/ledgers.ts'
import { takesEveryCase } from '../helpers/tiers.ts'
import { makeFolder } from '../helpers/folders.ts'

type DoctorInput = NonNullable<Parameters<typeof examined>[2]>

const now = Date.UTC(2024, 5, 5, 12) / 1000
const selection = {
  assets: ['BTC'],
  paths: ['supply/current_pit', 'blockchain/block_height_pit'],
  since: now - 60 * 86_400,
}

/** The lake as it stood after each of two fetches: its newest version and every stored point. */
interface Stand {
  readonly version: number
  readonly points: readonly string[]
}

let sound: string
let first: Stand
let second: Stand

const deps = commitDeps({ nowMicros: () => now * 1e6 })
const views = async (ledger: Ledger): Promise<unknown> => await buildViews(ledger, { catalogue, deps, force: true })

async function stand(root: string): Promise<Stand> {
  const { version } = await writing(root, (ledger) => ledger.head())
  return { version, points: await storedPoints(root) }
}

const rig = rigOfFile(now, async (made) => {
  sound = `${made.root}-sound`
  await made.fetch(selection)
  first = await stand(made.root)
  await made.fetch({ ...selection, assets: ['BTC', 'ETH'] })
  second = await stand(made.root)
  await writing(made.root, async (ledger) => await views(ledger))
  renameSync(made.root, sound)
})
afterAll(() => rmSync(sound, { recursive: true, force: true }))

/** A copy of the sound lake where it was made. */
function copied(): string {
  const { root } = rig()
  rmSync(root, { recursive: true, force: true })
  cpSync(sound, root, { recursive: true })
  return root
}

const remedies: Readonly<Record<string, Partial<DoctorInput>>> = {
  nothing: {},
  '--rebuild-ledger': { rebuildLedger: true },
  '--repair': { repair: true },
  '--repair --rebuild-ledger': { repair: true, rebuildLedger: true },
}

async function treat(root: string, flags: Partial<DoctorInput>): Promise<Diagnosis> {
  return await examined(root, now, flags, { views })
}

function withoutLedger(root: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(root, `ledger.sqlite${suffix}`), { force: true })
}

/** Entries after the first fetch are not there. */
function withoutEntries(root: string): void {
  for (let version = first.version + 1; version <= second.version; version++) rmSync(join(root, entryFile(version)))
}

interface Harm {
  readonly does: (root: string) => Promise<void> | void
  /** What the journal says afterwards: what must be there whatever is done. */
  readonly journal: () => Stand
  /** Kinds of findings, sorted. */
  readonly finds: readonly string[]
  /**
   * The stand that each remedy leads to; undefined where the lake cannot be opened after it, which doctor goes on
   * saying.
   */
  readonly leads: Readonly<Record<string, (() => Stand) | undefined>>
}

const all = (to: (() => Stand) | undefined): Harm['leads'] =>
  Object.fromEntries(Object.keys(remedies).map((name) => [name, to]))
const one = () => first
const two = () => second

const harms: Readonly<Record<string, Harm>> = {
  'the ledger is lost': {
    does: withoutLedger,
    journal: two,
    finds: ['ledger_lost'],
    leads: { ...all(two), nothing: undefined },
  },
  'the ledger is torn': {
    does: (root) => writeFileSync(join(root, 'ledger.sqlite'), 'not a database'.repeat(400)),
    journal: two,
    finds: ['ledger_torn'],
    leads: { ...all(two), nothing: undefined },
  },
  'a copy has a ledger that is ahead of its journal, and not its files': {
    does: async (root) => {
      const late = await writing(root, (ledger) =>
        filesOnDisk(ledger).filter(({ added_version }) => added_version > first.version),
      )
      for (const { path } of late) rmSync(join(root, path))
      withoutEntries(root)
    },
    journal: one,
    finds: ['entry_lost', 'file_lost'],
    leads: { ...all(undefined), '--rebuild-ledger': one, '--repair --rebuild-ledger': one },
  },
  'the last entries are lost, and the ledger with all files knows them': {
    does: withoutEntries,
    journal: one,
    finds: ['entry_lost'],
    leads: { ...all(undefined), '--rebuild-ledger': one, '--repair': two, '--repair --rebuild-ledger': two },
  },
  'the first entry is lost': {
    does: (root) => rmSync(join(root, entryFile(1))),
    journal: two,
    finds: ['entry_lost'],
    leads: { ...all(two) },
  },
  'the last entry is torn': {
    does: (root) => truncateSync(join(root, entryFile(second.version)), 200),
    journal: two,
    finds: ['entry_torn'],
    leads: { ...all(undefined), '--repair': two, '--repair --rebuild-ledger': two },
  },
  'a torn checkpoint stands beside all entries': {
    does: async (root) => {
      const version = await writing(root, async (ledger) => await writeCheckpoint(realDisk, ledger))
      truncateSync(join(root, `journal/${String(version).padStart(10, '0')}.checkpoint.jsonl`), 300)
    },
    journal: two,
    finds: ['checkpoint_torn'],
    leads: all(two),
  },
  'lake.duckdb is torn': {
    does: (root) => truncateSync(join(root, 'lake.duckdb'), 5000),
    journal: two,
    finds: ['views_torn'],
    leads: all(two),
  },
  'an export is torn': {
    does: (root) => {
      const [name] = readdirSync(join(root, 'exports'))
      truncateSync(join(root, 'exports', name ?? ''), 10)
    },
    journal: two,
    finds: ['file_changed'],
    leads: all(two),
  },
  'runs are lost': {
    does: (root) => rmSync(join(root, 'runs'), { recursive: true }),
    journal: two,
    finds: ['runs_lost'],
    leads: all(two),
  },
  'a killed run left a file and a note': {
    does: (root) => {
      const file = readdirSync(join(root, 'points'), { recursive: true, encoding: 'utf8' }).find((name) =>
        name.endsWith('.parquet'),
      )
      cpSync(
        join(root, 'points', file ?? ''),
        join(root, 'points', `${file}`.replace(/[^/]+$/, '0000000001-left.parquet')),
      )
      writeFileSync(join(root, 'locks', 'metrics.json'), JSON.stringify({ pid: 1, host: 'h', command: 'c', since: 0 }))
    },
    journal: two,
    finds: ['orphans', 'stale_lock'],
    leads: all(two),
  },
}

/** What can be opened and read of it; undefined where it is refused with a word. */
async function standOf(root: string): Promise<Stand | undefined> {
  try {
    return await stand(root)
  } catch (error) {
    if (error instanceof LakeError && error.kind === 'integrity') return undefined
    throw error
  }
}

/** The n-th harm with every remedy; with doing nothing and each third one, unless every case is taken. */
const remediesOf = (n: number): readonly (readonly [string, Partial<DoctorInput>])[] =>
  Object.entries(remedies).filter(([name], m) => takesEveryCase || name === 'nothing' || (n + m) % 3 === 0)

describe.each(Object.entries(harms).map(([name, harm], n) => [name, harm, n] as const))('L2: %s', (_, harm, n) => {
  test.each(remediesOf(n))(
    'the last entry is torn, the ledger is lost, and doctor runs with %s',
    async (name, flags) => {
      const root = copied()
      await harm.does(root)
      const data = readdirSync(join(root, 'points'), { recursive: true, encoding: 'utf8' }).length
      if (name === 'nothing') {
        const found = await treat(root, {})
        expect([...new Set(found.findings.map(({ kind }) => kind))].toSorted()).toEqual(harm.finds)
      }
      const after = await treat(root, flags)
      const got = await standOf(root)
      const leads = harm.leads[name]
      expect(got).toEqual(leads?.())
      if (got) expect(harm.journal().points.filter((line) => !got.points.includes(line))).toEqual([])
      else expect(after.findings.some(({ severity }) => severity === 'damage')).toBe(true)
      // Nothing that a version names went away, and what was damage is mended or still told.
      if (!got) expect(readdirSync(join(root, 'points'), { recursive: true, encoding: 'utf8' })).toHaveLength(data)
      if (got && name === '--repair --rebuild-ledger') {
        const still = after.findings.filter(({ severity, kind }) => severity === 'damage' && kind !== 'runs_lost')
        expect(still.map(({ kind, path }) => `${kind} ${path}`)).toEqual([])
      }
    },
  )
})

describe('L2: the last entry is torn and the ledger is lost', () => {
  test('the lake returns to the version before and names the loss; a fetch restores it', async () => {
    const root = copied()
    for (let version = first.version + 2; version <= second.version; version++) rmSync(join(root, entryFile(version)))
    truncateSync(join(root, entryFile(first.version + 1)), 200)
    withoutLedger(root)
    expect((await treat(root, { rebuildLedger: true })).findings.map(({ kind }) => kind)).toContain('entry_torn')
    const healed = await treat(root, { repair: true, rebuildLedger: true })
    expect(healed.mended.join()).toMatch(
      new RegExp(`version ${first.version + 1} is lost.*at version ${first.version} again`),
    )
    expect(await standOf(root)).toEqual(first)
    expect(existsSync(join(root, `${entryFile(first.version + 1)}.damaged`))).toBe(true)
    await rig().fetch({ ...selection, assets: ['BTC', 'ETH'] })
    expect(await storedPoints(root)).toEqual(second.points)
  })
})

describe.each([
  ['another lake', `{"lake":"${'f'.repeat(32)}"}`],
  ['nothing that can be read', '{"lake":'],
])('L2: lake.json names %s', (_, text) => {
  const harmed = (): string => {
    const root = copied()
    writeFileSync(join(root, 'lake.json'), text)
    return root
  }
  const again = { ...selection, assets: ['BTC', 'ETH', 'LTC'] }

  test('no job commits next to a wrong lake.json; --repair moves it aside and writes the one of the journal', async () => {
    const root = harmed()
    await expect(rig().fetch(again)).rejects.toThrow(/lake\.json: expected the marker of the lake/)
    const { findings } = await treat(root, { rebuildLedger: true })
    expect(findings.map(({ kind, remedy }) => [kind, /--repair/.test(remedy)])).toEqual([['marker_differs', true]])
    expect((await treat(root, { repair: true })).findings).toEqual([])
    expect(readFileSync(join(root, 'lake.json.damaged'), 'utf8')).toBe(text)
    expect(readFileSync(join(root, 'lake.json'), 'utf8')).toEqual(readFileSync(join(sound, 'lake.json'), 'utf8'))
    expect((await rig().fetch(again)).points_added).toBeGreaterThan(0)
  })

  test('a wrong lake.json next to files that the journal does not name stays: they may belong to a second lake', async () => {
    const root = harmed()
    const other = join(root, 'points/metric=other/interval=24h/0000000001-other.parquet')
    mkdirSync(join(other, '..'), { recursive: true })
    writeFileSync(other, 'rows of the other lake')
    for (const flags of [{ repair: true }, { repair: true, rebuildLedger: true }]) {
      expect((await treat(root, flags)).findings.map(({ kind }) => kind)).toEqual(['marker_differs'])
      expect(readFileSync(join(root, 'lake.json'), 'utf8')).toBe(text)
      expect(existsSync(other)).toBe(true)
    }
  })
})

describe('L2: a copy on a file system that cannot be written', () => {
  test.for([
    ['as it was', () => undefined],
    ['without its ledger', withoutLedger],
    ['without lake.duckdb', (root: string) => rmSync(join(root, 'lake.duckdb'))],
    ['without a manifest, as it was made before', (root: string) => rmSync(join(root, 'lake.manifest.json'))],
    ['with a torn manifest', (root: string) => writeFileSync(join(root, 'lake.manifest.json'), '{"schema_version":')],
  ] as const)('%s: no false alarm, and it can be read there', async ([, does], context) => {
    need(context, 'mount')
    const place = makeFolder('read-only')
    const mount = (options: string) => spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', place]).status
    expect(mount('size=64m')).toBe(0)
    try {
      const root = join(place, 'copy')
      cpSync(sound, root, { recursive: true })
      does(root)
      expect(mount('remount,ro')).toBe(0)
      const { findings, version } = await treat(root, {})
      expect(findings.filter(({ severity }) => severity === 'damage')).toEqual([])
      expect(version).toBe(second.version)
      expect(await storedPoints(root)).toEqual(second.points)
      const session = await openQuery(root)
      const rows = await session.rows('SELECT count(*) AS n FROM points')
      session.close()
      expect(Number(rows[0]?.['n'])).toBe(second.points.length)
      await expect(treat(root, { rebuildLedger: true })).rejects.toThrow(/read-only/)
    } finally {
      spawnSync('umount', [place])
      rmSync(place, { recursive: true, force: true })
    }
  })
})
