import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { constants, zstdCompressSync } from 'node:zlib'
import { compact } from '../../src/maintenance/upkeep/compact.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { stamp } from '../../src/trust/results/stamp.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { foldJournal } from '../../src/lake/ledger/checkpoint-writer.ts'
import { fetchOnce } from '../helpers/fetching.ts'
import {
  answer,
  begun,
  type Frozen,
  keptSelection,
  ledgerQuestions,
  questions,
  registryStory,
  withProviderOf,
} from '../helpers/kept-lakes.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { withLag } from '../helpers/lags.ts'
import { withRegistryRig } from '../helpers/registry-rig.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { reading, writing } from '../helpers/ledgers.ts'

// Makes the small lakes that every later layout must open: `node test/lakes/make.ts LAYOUT [FOLDER]`. FOLDER is a lake
// that `make lake` began, with a pitlake.yaml of two assets, three paths and four months. What is kept is never made
// again: a new layout gets a folder of its own.

const [layout = '', begunByMake] = process.argv.slice(2)
const out = join(import.meta.dirname, layout)
const day = 86_400
const clock = { now: begun }
let told = registryStory(0).answer
const deps = {
  ...commitDeps({ nowMicros: () => clock.now * 1_000_000 }),
  signal: new AbortController().signal,
  threads: 1,
}

/** Reads the lake's answers through its views and packs it; `earlier` is an instant that shall be asked too. */
async function keep(name: string, root: string, earlier?: number): Promise<void> {
  const { lake, version, committed_at } = await reading(root, (ledger) => ledger.head())
  const frozen = await withViews(root, async (engine): Promise<Frozen> => {
    const asked = await answer(engine, { ...questions, ...ledgerQuestions })
    if (earlier === undefined) return { lake: lake ?? '', version, committed_at, asked }
    await engine.run(`SET VARIABLE observed_as_of = make_timestamptz(${earlier})`)
    const then = { at: earlier, asked: await answer(engine, questions) }
    return { lake: lake ?? '', version, committed_at, asked, earlier: then }
  })
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, `${name}.json`), `${JSON.stringify(frozen, null, 2)}\n`)
  const home = dirname(root)
  const what = ['lake', ...(name === 'stamped' ? ['result.parquet', 'later.parquet'] : [])]
  const skip = ['lake/locks', 'lake/lake.duckdb', 'lake/ledger.sqlite-*'].map((path) => `--exclude=${path}`)
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--sort=name']
  const packed = execFileSync('tar', ['-C', home, ...skip, ...owner, '-cf', '-', ...what], { maxBuffer: 1 << 28 })
  // A long window finds the rows that several files of a lake share.
  const level = { [constants.ZSTD_c_compressionLevel]: 19, [constants.ZSTD_c_windowLog]: 27 }
  const params = { ...level, [constants.ZSTD_c_enableLongDistanceMatching]: 1 }
  writeFileSync(join(out, `${name}.tar.zst`), zstdCompressSync(packed, { params }))
}

async function inHome(work: (root: string) => Promise<void>): Promise<void> {
  const home = mkdtempSync('/tmp/pitlake-')
  try {
    await work(join(home, 'lake'))
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** Two fetches with a late point, a failed window and a rewritten point between them. */
async function twoFetches(root: string): Promise<void> {
  clock.now = begun
  await withProviderOf(7, clock, async ({ metrics, faults }) => {
    const place = { root, url: metrics, now: () => clock.now }
    faults('late@supply/current_pit:t=2024-02-20,shown=2024-03-03T12:00Z')
    await fetchOnce(place, keptSelection)
    clock.now += 3 * day
    faults('status-500@addresses/supply*', 'rewrite@addresses/*:asset=ETH,t=2024-02-28,v=101')
    await fetchOnce(place, keptSelection)
    faults()
  })
}

await inHome(async (root) => {
  await twoFetches(root)
  await makeViews(root)
  await keep('plain', root)
})

await inHome(async (root) => {
  await twoFetches(root)
  const before = clock.now
  clock.now += day
  await redate(root, withLag('addresses/active_count_pit', 5400, 'rule'), deps)
  await makeViews(root)
  await keep('redated', root, before * 1_000_000 + 60_000_000)
})

await inHome(async (root) => {
  await twoFetches(root)
  await makeViews(root)
  const query = `SELECT asset, count(*) AS points, sum(v) AS v FROM points GROUP BY asset ORDER BY asset`
  const run = { sleep: async () => await Promise.resolve() }
  const result = (name: string): string => join(dirname(root), `${name}.parquet`)
  await stamp({ root, catalogue, query, out: result('result'), variables: {} }, run, deps)
  clock.now += day
  await compact(root, deps)
  clock.now += day
  const variables = { as_of: '2024-02-10' }
  await stamp({ root, catalogue, query, out: result('later'), variables }, run, deps)
  await makeViews(root)
  await keep('stamped', root)
})

await inHome(async (root) => {
  await twoFetches(root)
  const few = { ...keptSelection, paths: ['supply/current_pit'], assets: ['BTC'] }
  const topUp = async (): Promise<void> =>
    await withProviderOf(7, clock, async ({ metrics }) => {
      clock.now += day
      await fetchOnce({ root, url: metrics, now: () => clock.now }, few)
    })
  for (let n = 0; n < 6; n++) await topUp()
  await compact(root, deps)
  for (let n = 0; n < 20; n++) await topUp()
  await writing(root, async (ledger) => await foldJournal(ledger, deps, 1))
  await makeViews(root)
  clock.now += day
  const buildViews = async (): Promise<unknown> => await makeViews(root)
  const freed = await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews })
  if (freed.data.files === 0 || freed.journal.files === 0) throw new Error('nothing was vacuumed')
  await makeViews(root)
  await keep('vacuumed', root)
})

await withRegistryRig(
  begun,
  async (rig) => {
    const root = join(rig.root, 'lake')
    for (const chapter of [0, 1, 2]) {
      told = registryStory(chapter).answer
      if (chapter === 0) await rig.snapshot({ root })
      await rig.sync({ root })
      rig.clock.now += 2 * day
    }
    await makeViews(root)
    await keep('registry', root)
  },
  { instead: (request) => told(request) },
)

if (begunByMake !== undefined) {
  const log = readFileSync(join(begunByMake, 'journal/0000000001.json'), 'utf8')
  if (!log.includes('sandbox:1')) throw new Error(`${begunByMake}: not begun by make lake`)
  await keep('begun', begunByMake)
}
