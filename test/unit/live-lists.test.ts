import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { liveLines, liveListsAt, liveListsDigest } from '../../src/lake/ledger/live-lists.ts'
import { storedLeaves, logHashes } from '../../src/lake/ledger/log.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { withRig } from '../helpers/fetching.ts'
import { withLag } from '../helpers/lags.ts'
import { commitDeps, stage } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { reading } from '../helpers/ledgers.ts'
import { seeded } from '../helpers/random.ts'

const sha = (text: string): string => createHash('sha256').update(text).digest('hex')
const digestOf = (lines: readonly string[]): string => sha(lines.map((line) => `${line}\n`).join(''))
const byBytes = (lines: readonly string[]): string[] =>
  lines.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

/** Lines of the live lists as the page on proofs defines them, from the files alone. */
function definedLines(files: readonly ReturnType<typeof liveFiles>[number][]): string[] {
  const lists = Map.groupBy(files, ({ table, metric }) => `${table} ${metric ?? '-'}`)
  const lines = [...lists].map(([name, own]) => {
    const told = own.map(
      ({ path, sha256, rows, label }) => `${path} ${sha256} ${rows}${label === '' ? '' : ` ${label}`}`,
    )
    return `${name} ${digestOf(byBytes(told))}`
  })
  return byBytes(lines)
}

/**
 * Every leaf of the log follows from the journal's entries and the files of its version; an index made anew has the
 * same.
 */
async function expectDefined(root: string): Promise<readonly string[]> {
  using made = await Ledger.inMemory(root)
  return await reading(root, (ledger) => {
    expect(liveLines(ledger)).toEqual(definedLines(liveFiles(ledger)))
    for (const { version, live } of storedLeaves(ledger)) {
      const files = liveFiles(ledger, { version })
      expect(live, `version ${version}`).toBe(digestOf(definedLines(files)))
      expect(liveListsDigest(liveListsAt(ledger, version))).toBe(live)
    }
    const { version, committed_at, entry, rules, preregistered, live } =
      storedLeaves(ledger).at(-1) ?? expect.fail('none')
    expect({ version, entry }).toEqual({ version: ledger.head().version, entry: ledger.head().digest })
    const text = `pitlake version\nversion ${version}\ncommitted_at ${committed_at}\nentry ${entry}\nrules ${rules}\npreregistered ${preregistered}\nlive ${live}\n`
    expect(logHashes(ledger).at(-1)).toBe(sha(`\0${text}`))
    expect(logHashes(made)).toEqual(logHashes(ledger))
    return logHashes(ledger)
  })
}

test('the list of live files is exact in each version, whatever commits add and remove', async () => {
  await inFolder(async (root) => {
    const random = seeded(5)
    const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
    using ledger = await Ledger.open(root)
    for (let n = 0; n < 25; n++) {
      const add = Array.from({ length: Math.floor(random() * 4) }, (_, k) => {
        const table = pick(['points', 'redated', 'raw', 'issuers'])
        const metric = table === 'points' || table === 'redated' ? pick(['a/b', 'ü/𝄞', null]) : null
        return stage(root, `f${n}-${k}`, `${n} ${k}`, { table, metric, label: pick(['', '', '2024-01-0' + n]) })
      })
      const live = [...new Set(liveFiles(ledger).map(({ path }) => path))]
      const remove = live.filter(() => random() < 0.2)
      const draft = { job: 'sync', run: `s${n}`, provider: { synthetic: true }, add, remove }
      await commit(ledger, draft, commitDeps())
    }
    expect(liveLines(ledger).length).toBeGreaterThan(3)
    await expectDefined(root)
  })
})

test('merging and redating change the live lists of later versions only', async () => {
  const begun = 1_709_500_000
  const day = 86_400
  await withRig(begun, async ({ root, clock, fetch }) => {
    const world = () => ({
      ...commitDeps({ nowMicros: () => clock.now * 1_000_000 }),
      signal: new AbortController().signal,
      threads: 1,
    })
    const selection = { paths: ['supply/current_pit'], assets: ['BTC'], intervals: ['24h'] as const }
    const logs: (readonly string[])[] = []
    for (let n = 0; n < 3; n++) {
      await fetch({ ...selection, since: begun - 10 * day, until: begun + 20 * day })
      clock.now += day
      logs.push(await expectDefined(root))
    }
    await compact(root, world())
    logs.push(await expectDefined(root))
    clock.now += day
    await redate(root, withLag('supply/current_pit', 5400, 'rule'), world())
    logs.push(await expectDefined(root))
    const last = logs.at(-1) ?? []
    for (const log of logs) expect(log).toEqual(last.slice(0, log.length))
  })
})
