import { DatabaseSync } from 'node:sqlite'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { encodeEntry, layoutNumber, remakeHint, sha256 } from '../../src/lake/ledger/entry.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { checkpointFile, entryFile, inLake, places } from '../../src/lake/store/layout.ts'
import { checkJournal } from '../../src/maintenance/upkeep/damage-journal.ts'
import { createTableSql, ledgerTables } from '../../src/lake/ledger/columns.ts'
import { indexShape, Ledger } from '../../src/lake/ledger/ledger.ts'
import { pitlake } from '../helpers/command.ts'
import { commitDeps, draftOf, dump } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { entryText, writeEntryText } from '../helpers/entries.ts'

const run = async (root: string, ...argv: readonly string[]) => await pitlake(root, [...argv, '--data', root])

const journalOf = (root: string): string[] => readdirSync(inLake(root, places.journal)).toSorted()

/** A lake of three versions, with views. */
async function withLake(work: (root: string) => Promise<void>): Promise<void> {
  await inFolder(async (root) => {
    {
      using ledger = await Ledger.open(root)
      for (let n = 0; n < 3; n++) await commit(ledger, draftOf(root, n), commitDeps())
    }
    await work(root)
  })
}

test('every entry, checkpoint and footer of a new lake carries the one layout number', async () => {
  await withLake(async (root) => {
    using ledger = await Ledger.open(root)
    await writeCheckpoint(realDisk, ledger)
    for (const version of [1, 2, 3]) expect((await readEntry(root, version)).entry.schema_version).toBe(layoutNumber)
    const [header = ''] = readFileSync(inLake(root, checkpointFile(3)), 'latin1').split('\n')
    expect(JSON.parse(header)).toMatchObject({ schema_version: layoutNumber })
  })
})

const other = [
  ['a later', layoutNumber + 1, 'update pitlake'],
  ['an earlier, unreleased', layoutNumber - 1, remakeHint],
  ['the first, unreleased', 1, remakeHint],
] as const

test.each(other)(
  'a lake of %s layout is refused by every command that opens its ledger, exit 2, with what to do, and stays as it is',
  async (_, layout, next) => {
    await withLake(async (root) => {
      await run(root, 'views')
      const { entry, digest } = await readEntry(root, 3)
      const further = { ...entry, schema_version: layout, version: 4, previous: digest, later: ['?'] }
      writeEntryText(inLake(root, entryFile(4)), encodeEntry(further).text)
      writeFileSync(join(root, 'q.sql'), 'SELECT 1 AS one')
      const commands = [
        ['status'],
        ['views'],
        ['compact'],
        ['vacuum', '--yes'],
        ['stamp', join(root, 'q.sql'), '--out', join(root, 'r.parquet')],
      ]
      for (const argv of commands) {
        const { code, message } = await run(root, ...argv)
        expect([argv[0], code, message]).toEqual([argv[0], 2, expect.stringContaining(next)])
        const refusals = message.split('\n').filter((line) => line.includes(`expected layout ${layoutNumber}`))
        expect([argv[0], refusals]).toEqual([argv[0], [expect.stringContaining(next)]])
      }
      const doctor = await run(root, 'doctor', '--repair')
      expect([doctor.code, doctor.message]).toEqual([2, expect.stringContaining(next)])
      expect(journalOf(root)).toHaveLength(4)
    })
  },
)

test('a lake whose every entry is of an unreleased layout is refused in one line by readers and writers', async () => {
  await withLake(async (root) => {
    let previous: string | null = null
    for (const version of [1, 2, 3]) {
      const { entry } = await readEntry(root, version)
      const { text, digest } = encodeEntry({ ...entry, schema_version: 5, previous })
      previous = digest
      writeEntryText(inLake(root, entryFile(version)), text)
    }
    rmSync(inLake(root, places.ledger))
    for (const open of [Ledger.inMemory, Ledger.rebuild])
      await expect(open(root)).rejects.toThrow(`expected layout ${layoutNumber}, got 5; ${remakeHint}`)
    expect((await checkJournal(root)).findings.map(({ kind }) => kind)).toEqual(
      Array.from({ length: 3 }, () => 'unreleased_version'),
    )
  })
})

test('a lake with uncompressed entries, as unreleased programs wrote them, is refused in one line and stays as it is', async () => {
  await withLake(async (root) => {
    for (const version of [1, 2, 3]) {
      const file = inLake(root, entryFile(version))
      writeFileSync(file.replace(/\.gz$/, ''), entryText(file))
      rmSync(file)
    }
    rmSync(inLake(root, places.ledger))
    const before = journalOf(root)
    const commands = [['status'], ['views'], ['doctor', '--repair'], ['publish', '--lake', join(root, '../copy')]]
    for (const argv of commands) {
      const { code, message } = await run(root, ...argv)
      expect([argv[0], code, message]).toEqual([argv[0], 2, expect.stringContaining(`expected layout ${layoutNumber}`)])
      expect(message).toContain(remakeHint)
    }
    const pulled = await pitlake(root, ['pull', root, '--data', join(root, '../mirror')])
    expect([pulled.code, pulled.message]).toEqual([2, expect.stringContaining(remakeHint)])
    expect(journalOf(root)).toEqual(before)
  })
})

test.each([
  [99, 'newer_version', /by a newer pitlake \(pitlake 9\.1\.0\): update pitlake/],
  [5, 'unreleased_version', /made by an unreleased version of pitlake: fetch the data again/],
] as const)(
  'a checkpoint of layout %s is refused with what to do if its entries are gone',
  async (layout, kind, advice) =>
    await inFolder(async (root) => {
      {
        using ledger = await Ledger.open(root)
        await commit(ledger, draftOf(root, 0), commitDeps({ program: 'pitlake 9.1.0' }))
        await writeCheckpoint(realDisk, ledger)
      }
      const file = inLake(root, checkpointFile(1))
      const [own = ''] = readFileSync(file, 'latin1').split('\n')
      const header = { ...(JSON.parse(own) as object), schema_version: layout }
      expect(header).toMatchObject({ version: 1, program: 'pitlake 9.1.0' })
      const text = `${JSON.stringify(header)}\n`
      writeFileSync(file, `${text}${JSON.stringify({ sha256: sha256(text) })}\n`)
      rmSync(inLake(root, entryFile(1)))
      expect((await checkJournal(root)).findings).toMatchObject([
        { kind, path: checkpointFile(1), remedy: expect.stringMatching(advice) },
      ])
      await expect(Ledger.rebuild(root)).rejects.toThrow(advice)
    }),
)

test('an index of an old shape is rebuilt by many processes at once without a conflict', async () => {
  await withLake(async (root) => {
    const index = new DatabaseSync(inLake(root, places.ledger))
    index.exec("UPDATE meta SET value = '9' WHERE key = 'schema'")
    index.close()
    const ledgers = await Promise.all(Array.from({ length: 6 }, async () => await Ledger.openToRead(root)))
    expect(ledgers.map((ledger) => ledger.head().version)).toEqual(Array.from({ length: 6 }, () => 3))
    const tables = ledgers.map((ledger) => JSON.stringify(dump(ledger)))
    expect(new Set(tables).size).toBe(1)
    for (const ledger of ledgers) ledger.close()
    expect(readdirSync(root).filter((name) => name.includes('rebuild'))).toEqual([])
    writeFileSync(join(root, 'ledger.sqlite.rebuild-left'), 'x')
    ;(await Ledger.rebuild(root)).close()
    expect(readdirSync(root).filter((name) => name.includes('rebuild'))).toEqual([])
  })
})

test('an index whose tables changed has a different shape number', () => {
  const { requests } = ledgerTables
  const more = { ...requests, columns: { ...requests.columns, source_url: requests.columns.series } }
  expect(createTableSql('requests', more)).not.toBe(createTableSql('requests', requests))
  expect(Number.isSafeInteger(indexShape()) && indexShape() > 0).toBe(true)
  const index = new DatabaseSync(':memory:')
  index.exec(createTableSql('requests', requests))
  const columns = index.prepare('SELECT name, type, "notnull", pk FROM pragma_table_info(\'requests\')').all()
  expect(columns).toHaveLength(Object.keys(requests.columns).length)
  expect(columns.filter(({ notnull }) => notnull === 0).map(({ name }) => name)).toEqual([
    'series',
    'since',
    'until',
    'status',
    'points',
    'bytes',
    'credits',
    'seconds',
    'provider_date',
  ])
  index.close()
})
