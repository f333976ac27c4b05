import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  commitFile,
  commitTable,
  type Logs,
  noTable,
  ownProtocol,
  readTable,
  requireOwn,
  type TableState,
} from '../../src/maintenance/publish/log.ts'
import { destinationOf } from '../../src/maintenance/publish/s3.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { freshFolder } from '../helpers/scratch.ts'

let home = ''
let engine: Engine
let logs: Logs
freshFolder('log', (path) => (home = path))
beforeEach(async () => {
  engine = await Engine.open(':memory:', { threads: 1 })
  const to = destinationOf(join(home, 'out'), { disk: realDisk, mark: 'a' })
  logs = { to, engine, local: (name) => join(home, name) }
})
afterEach(() => {
  engine.close()
})

const metaData = (lake: string) => ({
  id: '1',
  name: 't',
  format: { provider: 'parquet', options: {} },
  schemaString: '{"type":"struct","fields":[]}',
  partitionColumns: [],
  createdTime: 5,
  configuration: { 'pitlake.lake': lake },
})

const addOf = (n: number): Parameters<typeof commitTable>[3][number] => ({
  add: {
    path: `several/ä %41-${n}.parquet`,
    partitionValues: {},
    size: 2 ** 40 + n,
    modificationTime: 1_700_000_000_000 + n,
    dataChange: true,
    stats: `{"numRecords":${n}}`,
    tags: { since: '1@2', until: `${n}@9` },
  },
})

/** A table of so many versions, each of which adds a file and removes the one before the last. */
async function tableOf(versions: number, lake = 'L'): Promise<TableState> {
  let state: TableState = noTable
  for (let n = 0; n < versions; n++) {
    const gone =
      n < 2 ? [] : [{ remove: { path: addOf(n - 2).add?.path ?? '', deletionTimestamp: n, dataChange: true } }]
    const first = n > 0 ? [] : [{ protocol: ownProtocol }, { metaData: metaData(lake) }]
    const actions = [...first, { txn: { appId: 'v', version: n } }, ...gone, addOf(n)]
    const next = await commitTable(logs, 't', state, actions, 1000)
    if (!next) throw new Error('somebody else')
    state = next
  }
  return state
}

test('a log is read back as it was written, from its commits and from its checkpoint alone', async () => {
  const state = await tableOf(24)
  expect(state).toMatchObject({ version: 23, checkpoint: 19 })
  expect(state.files.size).toBe(2)
  expect(await readTable(logs, 't')).toEqual(state)
  for (let version = 0; version < 19; version++) rmSync(join(home, 'out', commitFile('t', version)))
  rmSync(join(home, 'out/t/_delta_log/00000000000000000009.checkpoint.parquet'))
  expect(await readTable(logs, 't')).toEqual(state)
  expect(JSON.parse((await logs.to.read('t/_delta_log/_last_checkpoint'))?.toString() ?? '')).toMatchObject({
    version: 19,
  })
})

test('of two writers of a version the loser gets an error, and the log is that of the winner', async () => {
  const state = await tableOf(2)
  const mine = await commitTable(logs, 't', state, [addOf(7)], 0)
  expect(await commitTable(logs, 't', state, [addOf(8)], 0)).toBe(false)
  expect(await readTable(logs, 't')).toEqual(mine)
})

test.each([
  ['an empty commit', (file: string) => writeFileSync(file, ''), /an empty file/],
  ['a torn commit', (file: string) => writeFileSync(file, '{"txn":{"appId":"v","ver'), /a torn one/],
  ['something else', (file: string) => writeFileSync(file, '{"add":{"path":7}}\n'), /a torn one/],
  ['a gap', (file: string) => rmSync(file), /no such file, but later ones/],
])('%s is reported in one line, and the log is read no further', async (_, harm, words) => {
  await tableOf(5)
  harm(join(home, 'out', commitFile('t', 3)))
  const before = readdirSync(join(home, 'out/t/_delta_log'))
  await expect(readTable(logs, 't')).rejects.toThrow(words)
  await expect(readTable(logs, 't')).rejects.toMatchObject({ kind: 'integrity' })
  await expect(readTable(logs, 't')).rejects.toThrow(/nothing was written; put the file back/)
  expect(readdirSync(join(home, 'out/t/_delta_log'))).toEqual(before)
})

test('a torn checkpoint is an error, not an empty table', async () => {
  await tableOf(12)
  writeFileSync(join(home, 'out/t/_delta_log/00000000000000000009.checkpoint.parquet'), 'PAR1')
  await expect(readTable(logs, 't')).rejects.toMatchObject({ kind: 'integrity' })
})

test('a table of a second lake or of a third party is refused', async () => {
  const own = await tableOf(1, 'mine')
  expect(() => requireOwn(logs.to, 't', own, 'mine')).not.toThrow()
  expect(() => requireOwn(logs.to, 't', noTable, 'mine')).not.toThrow()
  expect(() => requireOwn(logs.to, 't', own, 'yours')).toThrow(
    /expected one of the lake yours, got one of the lake mine/,
  )
  const plain = { ...own, protocol: { minReaderVersion: 1, minWriterVersion: 2 } }
  expect(() => requireOwn(logs.to, 't', plain, 'mine')).toThrow(/somebody else/)
  expect(() => requireOwn(logs.to, 't', { ...own, metaData: undefined }, 'mine')).toThrow(/somebody else/)
})
