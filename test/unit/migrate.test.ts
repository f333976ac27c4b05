import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commit, migration } from '../../src/lake/ledger/commit.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { encodeEntry, journalSchema, sha256, vintagesSchema } from '../../src/lake/ledger/entry.ts'
import { heldState, heldVersions } from '../../src/lake/ledger/index-queries.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { checkpointFile, entryFile, inLake, places } from '../../src/lake/store/layout.ts'
import { textsIn } from '../../src/lake/store/sql.ts'
import { checkJournal } from '../../src/maintenance/upkeep/damage-journal.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { pitlake } from '../helpers/command.ts'
import { frozen, withKept } from '../helpers/kept-lakes.ts'
import { commitDeps, draftOf, dump, inFolder } from '../helpers/lakes.ts'

const run = async (root: string, ...argv: readonly string[]) => await pitlake(root, [...argv, '--data', root])

const journalOf = (root: string): string[] => readdirSync(inLake(root, places.journal)).toSorted()

describe('a lake of the first layout', () => {
  test('is read by every reading command without a commit', async () => {
    await withKept('1/plain', async (root) => {
      const before = journalOf(root)
      expect((await run(root, 'views')).code).toBe(0)
      const commands = [
        ['status', '--json'],
        ['doctor', '--json'],
        ['sql', 'SELECT count(*) AS n FROM points', '--format', 'json'],
        ['vacuum'],
        ['registry', 'status'],
      ]
      for (const argv of commands) expect(await run(root, ...argv), argv.join(' ')).toMatchObject({ code: 0 })
      expect(journalOf(root)).toEqual(before)
    })
  })

  test('is brought forward by one commit before the next, once', async () => {
    await withKept('1/plain', async (root) => {
      const { version } = frozen('1/plain')
      const ledger = await Ledger.open(root)
      expect(ledger.head().schema).toBe(1)
      const provider = ledger.head().provider ?? { synthetic: true }
      const draft = (n: number) => ({ job: 'test', run: 'r', provider, state: { n } })
      expect((await commit(ledger, draft(1), commitDeps())).version).toBe(version + 2)
      expect((await commit(ledger, draft(2), commitDeps())).version).toBe(version + 3)
      expect(
        heldVersions(ledger)
          .map(({ job }) => job)
          .slice(-3),
      ).toEqual(['migrate', 'test', 'test'])
      expect(ledger.head().schema).toBe(journalSchema)
      ledger.close()
      const { entry } = await readEntry(root, version + 1)
      expect(entry).toMatchObject({ schema_version: journalSchema, state: {}, coverage: [] })
      expect(entry['migration']).toEqual([
        expect.stringMatching(/^2: /),
        expect.stringMatching(/^3: /),
        expect.stringMatching(/^4: /),
      ])
      // An index that is made anew says the same.
      using made = await Ledger.inMemory(root)
      expect(made.head()).toMatchObject({ version: version + 3, schema: journalSchema })
    })
  })
})

test('steps are taken together, each named, and bring the state that they need', async () => {
  await withKept('1/plain', async (root) => {
    using ledger = await Ledger.open(root)
    const steps = [
      { to: 1, about: 'long ago' },
      { to: 2, about: 'two', state: () => ({ two: heldState(ledger, 'none') ?? 2 }) },
      { to: 3, about: 'three' },
    ]
    const draft = migration(ledger, ledger.head().provider, steps)
    expect(draft).toMatchObject({ job: 'migrate', state: { two: 2 }, further: { migration: ['2: two', '3: three'] } })
    expect(migration(ledger, ledger.head().provider, steps.slice(0, 1))).toBeUndefined()
  })
})

test('a new lake is of the newest layout and is never brought forward', async () => {
  await inFolder(async (root) => {
    using ledger = await Ledger.open(root)
    for (let n = 0; n < 3; n++) await commit(ledger, draftOf(root, n), commitDeps())
    expect(ledger.head()).toMatchObject({ version: 3, schema: journalSchema })
  })
})

test('a lake of a later layout is refused by every command that opens its ledger, exit 2, with what to do', async () => {
  await withKept('1/plain', async (root) => {
    await run(root, 'views')
    const { version } = frozen('1/plain')
    const { entry, digest } = await readEntry(root, version)
    const later = { ...entry, schema_version: vintagesSchema + 1, version: version + 1, previous: digest, later: ['?'] }
    writeFileSync(inLake(root, entryFile(version + 1)), encodeEntry(later).text)
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
      expect([argv[0], code, message]).toEqual([argv[0], 2, expect.stringContaining('update the program')])
    }
    expect((await run(root, 'doctor')).message).toContain('update the program')
    expect(journalOf(root)).toContain('0000000004.json')
    expect(journalOf(root)).toHaveLength(version + 1)
  })
})

test('of a newer lake a checkpoint says, too, what to install, where its entries are gone', async () =>
  await inFolder(async (root) => {
    {
      using ledger = await Ledger.open(root)
      await commit(ledger, draftOf(root, 0), commitDeps({ program: 'pitlake 9.1.0' }))
      await writeCheckpoint(realDisk, ledger)
    }
    const file = inLake(root, checkpointFile(1))
    const [own = ''] = readFileSync(file, 'latin1').split('\n')
    const header = { ...(JSON.parse(own) as object), schema_version: 99 }
    expect(header).toMatchObject({ version: 1, program: 'pitlake 9.1.0' })
    const text = `${JSON.stringify(header)}\n`
    writeFileSync(file, `${text}${JSON.stringify({ sha256: sha256(text) })}\n`)
    rmSync(inLake(root, entryFile(1)))
    const install = /by a newer pitlake \(pitlake 9\.1\.0\): update the program \(npm install pitlake@latest\)/
    expect((await checkJournal(root)).findings).toMatchObject([
      { kind: 'newer_version', path: checkpointFile(1), remedy: expect.stringMatching(install) },
    ])
    await expect(Ledger.rebuild(root)).rejects.toThrow(install)
  }))

test('an index of another shape is made anew by many at once, and none is in the way of another', async () => {
  await withKept('1/stamped', async (root) => {
    const ledgers = await Promise.all(Array.from({ length: 6 }, async () => await Ledger.openToRead(root)))
    const { version } = frozen('1/stamped')
    expect(ledgers.map((ledger) => ledger.head().version)).toEqual(Array.from({ length: 6 }, () => version))
    const tables = ledgers.map((ledger) => JSON.stringify(dump(ledger)))
    expect(new Set(tables).size).toBe(1)
    for (const ledger of ledgers) ledger.close()
    expect(readdirSync(root).filter((name) => name.includes('rebuild'))).toEqual([])
    writeFileSync(join(root, 'ledger.sqlite.rebuild-left'), 'x')
    ;(await Ledger.rebuild(root)).close()
    expect(readdirSync(root).filter((name) => name.includes('rebuild'))).toEqual([])
  })
})

test('an index of another shape has another number', () => {
  const statements = textsIn(new URL('../../src/lake/ledger/sql/', import.meta.url)).map(([, text]) =>
    text.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim(),
  )
  const source = readFileSync(new URL('../../src/lake/ledger/ledger.ts', import.meta.url), 'utf8')
  const number = /^const indexSchema = (\d+)$/m.exec(source)?.[1]
  expect({ number, shape: sha256(statements.join('\n')).slice(0, 16) }, 'raise indexSchema, then say so here').toEqual({
    number: '9',
    shape: '927c052e9111ce28',
  })
})
