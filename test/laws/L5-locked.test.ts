import { globSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { explain } from '../../src/lake/store/database.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { exitCode } from '../../src/base/errors.ts'
import { pitlake } from '../helpers/command.ts'
import { withRig } from '../helpers/fetching.ts'

const now = Date.UTC(2024, 5, 5, 12) / 1000
const selection = { assets: ['BTC'], paths: ['blockchain/block_height_pit'], since: now - 40 * 86_400 }

test('an index that another program holds is exit 7 in words, never a stack', async () =>
  await withRig(now, async ({ root, fetch }) => {
    await fetch(selection)
    const path = join(root, 'ledger.sqlite')
    using other = new DatabaseSync(path)
    other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    using mine = new DatabaseSync(path, { timeout: 0 })
    let thrown: unknown
    try {
      mine.exec('BEGIN IMMEDIATE')
    } catch (error) {
      thrown = explain(error, 'opening', path)
    }
    expect(exitCode(thrown)).toBe(7)
    expect(String(thrown)).toMatch(/ledger\.sqlite is locked.*a different program.*run the same command again/s)
  }))

test('verify reports damage first, even if no provider is configured', async () =>
  await withRig(now, async ({ root, fetch }) => {
    await fetch(selection)
    const [file = ''] = globSync('points/**/*.parquet', { cwd: root })
    truncateSync(join(root, file), 100)
    const told = await pitlake(root, ['verify', '--data', root])
    expect(told).toMatchObject({ code: 4, message: expect.stringContaining(file) })
  }))

test('views of a version that the journal lost are damage, and whatever mends makes those of the one that it has', async () =>
  await withRig(now, async ({ root, fetch }) => {
    await fetch(selection)
    using first = await Ledger.open(root)
    await writeCheckpoint(realDisk, first)
    first.close()
    await fetch({ ...selection, assets: ['BTC', 'ETH'] })
    await pitlake(root, ['views', '--data', root])
    const [last = ''] = globSync('journal/*.json.gz', { cwd: root }).toSorted().slice(-1)
    for (const path of [last, 'ledger.sqlite', 'ledger.sqlite-wal', 'ledger.sqlite-shm'])
      rmSync(join(root, path), { force: true })
    const found = await pitlake(root, ['doctor', '--data', root])
    expect(found).toMatchObject({ code: 4, out: expect.stringMatching(/of version 3, the journal ends at 2/) })
    const rebuilt = await pitlake(root, ['doctor', '--rebuild-ledger', '--data', root])
    expect(rebuilt).toMatchObject({ code: 0, out: expect.stringMatching(/of version 3, which the journal lost/) })
    const asked = await pitlake(root, ['sql', 'SELECT version FROM lake_info', '--data', root])
    expect(asked).toMatchObject({ code: 0, message: '' })
    expect(JSON.parse(readFileSync(join(root, 'lake.manifest.json'), 'utf8'))).toMatchObject({ version: 2 })
  }))
