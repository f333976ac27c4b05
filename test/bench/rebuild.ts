import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { archiveRows } from '../../src/maintenance/upkeep/vacuum.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import type { CoverageRow, RequestRow } from '../../src/lake/ledger/entry.ts'
import { foldJournal } from '../../src/lake/ledger/checkpoint-writer.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { commitDeps, draftOf, dump, seriesRow } from '../helpers/lakes.ts'
import { judged, type Measured, scaled } from './measured.ts'
import { mostMemory } from './memory.ts'

const [versions, series, day] = [scaled(1300), 224, 86_400]
const quick: Disk = { ...realDisk, sync: async () => undefined, syncFolder: async () => undefined }

/** A lake of so many versions, each with a request and a window of every series, folded as runs fold it. */
async function grow(root: string): Promise<void> {
  let now = 1_700_000_000
  const deps = commitDeps({ disk: quick, nowMicros: () => now * 1_000_000 })
  const ledger = await Ledger.open(root)
  const numbers = Array.from({ length: series }, (_, n) => n)
  for (let version = 0; version < versions; version++) {
    now += day / 4
    const since = version * day
    const run = `r-${version}`
    const requests = numbers.map((n): RequestRow => {
      const about = { api: 'metrics', path: '/v1/metrics/m/x', query: { a: `A${n}`, s: String(since) } } as const
      const cost = { status: 200, outcome: 'body', points: 1, bytes: 90, credits: 1, attempts: 1 }
      const asked_at = now * 1_000_000 + n
      const place = { id: `${run}-${n}`, run, series: seriesRow(n).id, since, until: since + day }
      return { ...place, ...about, ...cost, asked_at, seconds: 0.1, detail: null }
    })
    const coverage = numbers.map((n): CoverageRow => {
      const about = { state: 'covered', reason: null, asked_at: now, request: `${run}-${n}` } as const
      return { series: seriesRow(n).id, since, until: since + day, ...about }
    })
    const own = draftOf(root, version)
    const all = numbers.map((n) => seriesRow(n))
    await commit(ledger, { ...own, run, series: all, requests, coverage }, deps)
    await archiveRows(ledger, deps)
    await foldJournal(ledger, deps)
  }
  ledger.close()
}

/** Everything that the ledger of a lake holds. */
async function heldIn(root: string): Promise<string> {
  using ledger = await Ledger.openToRead(root)
  return JSON.stringify(dump(ledger))
}

/** Makes the ledger of a long journal anew, in a process of its own: seconds and the most memory that it took. */
export async function benchRebuild(): Promise<Measured[]> {
  const root = mkdtempSync(join(tmpdir(), 'pitlake-rebuild-'))
  try {
    await grow(root)
    const before = await heldIn(root)
    const own = fileURLToPath(import.meta.url)
    const done = spawnSync(process.execPath, [own, root], { encoding: 'utf8' })
    const { seconds, megabytes, version } = JSON.parse(done.stdout) as Record<string, number>
    if (version === undefined || version < versions) throw new Error(`rebuilt up to version ${version}`)
    if ((await heldIn(root)) !== before) throw new Error('the ledger that was made anew holds something else')
    const line = `ledger of ${version} versions made anew`
    return [
      judged(`${line}: ${seconds} s`, seconds ?? Number.NaN, 5, ' s'),
      judged(`${line}: ${megabytes} MB`, megabytes ?? Number.NaN, 200, ' MB'),
    ]
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const [root] = process.argv.slice(2)
if (root !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  const began = performance.now()
  const ledger = await Ledger.rebuild(root)
  const { version } = ledger.head()
  ledger.close()
  const seconds = Math.round((performance.now() - began) / 100) / 10
  const megabytes = mostMemory()
  console.log(JSON.stringify({ seconds, megabytes, version }))
}
