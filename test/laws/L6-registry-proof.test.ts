// @module-tag full
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { StagedFile } from '../../src/lake/ledger/draft.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { heldMembers } from '../../src/lake/ledger/state-tree.ts'
import { registryDays } from '../../src/sources/registry/digests.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { parseInstant } from '../../src/base/time.ts'
import { mendClock } from '../../src/maintenance/upkeep/clock-ahead.ts'
import { checked, digesting } from '../helpers/certified.ts'
import { pitlake } from '../helpers/command.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { reading, writing } from '../helpers/ledgers.ts'
import { withRegistryRig } from '../helpers/registry-rig.ts'
import { sample } from '../helpers/tiers.ts'

const start = parseInstant('2026-06-01T05:00Z') as number
const day = 86_400
const sha = (...parts: readonly (string | Buffer)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The root of a tree of RFC 6962. */
function rootOf(leaves: readonly Buffer[]): Buffer {
  if (leaves.length <= 1) return leaves[0] ?? sha('')
  let left = 1
  while (left * 2 < leaves.length) left *= 2
  return sha('\u0001', rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)))
}

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.parquet') && !name.includes('_delta_log'))
    .map((name) => join(folder, name))

/** The value of a published table as the page tells it, from its rows alone. */
async function twin(folder: string, name: string): Promise<string> {
  using engine = await Engine.open()
  const from = `read_parquet([${filesOf(folder).map(quote).join(', ')}], union_by_name = true)`
  const types = await engine.rows<{ column_name: string; column_type: string }>(`DESCRIBE FROM ${from}`)
  const columns = types.map(({ column_name: own, column_type: type }) =>
    type.startsWith('TIMESTAMP') ? `epoch_ms("${own}")::DOUBLE AS "${own}"` : `CAST("${own}" AS VARCHAR) AS "${own}"`,
  )
  const rows = await engine.rows(`SELECT ${columns.join(', ')} FROM ${from}`)
  const told = (row: object, seen: unknown, left: readonly string[], only?: readonly string[]) => {
    const parts = Object.entries(row).filter(([key, value]) => value !== null && !left.includes(key))
    const line = parts
      .filter(([key]) => only?.includes(key) ?? true)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => ({ key, value: typeof value === 'number' ? instantOf(value) : String(value) }))
    return { seen: Number(seen), line: sha(JSON.stringify(line)).toString('hex') }
  }
  const lines = rows.flatMap((row) => {
    if (!name.startsWith('history_')) return [told(row, row['observed_at'], [])]
    const ended = row['valid_to'] === null ? [] : [told(row, row['valid_to'], [], ['id', 'valid_to', 'closed_by'])]
    return [told(row, row['valid_from'], ['valid_to', 'closed_by']), ...ended]
  })
  const days = new Map<string, readonly [number, string]>()
  for (const [seen, some] of [...Map.groupBy(lines, (one) => one.seen)].toSorted(([a], [b]) => a - b)) {
    const own = new Date(seen).toISOString().slice(0, 10)
    const [count, chain] = days.get(own) ?? [0, '']
    const digest = sha(
      Buffer.from(
        some
          .map(({ line }) => line)
          .toSorted()
          .join(''),
        'hex',
      ),
    ).toString('hex')
    days.set(own, [count + some.length, `b${sha(`${chain}\n${seen} ${some.length} ${digest}`).toString('hex')}`])
  }
  const leaves = [...days].map(([own, [count, chain]]) => sha(`\0${own}\n${count} ${chain}`))
  return `${leaves.length} ${rootOf(leaves).toString('hex')}`
}

/** An instant as the engine writes it. */
function instantOf(millis: number): string {
  const [date, clock = ''] = new Date(millis).toISOString().split('T')
  return `${date} ${clock.slice(0, 8)}${clock.slice(8, 12).replace(/\.?0+$/, '')}+00`
}

/** Publishes a lake and holds what its state tells of the registry against the published rows; gives how many tables. */
async function held(home: string, root: string): Promise<number> {
  expect(await pitlake(home, ['publish', 'pub', '--data', root])).toMatchObject({ code: 0 })
  const members = await reading(root, (ledger) => heldMembers(ledger, 'registry'))
  for (const [name, value] of members) expect([name, value]).toEqual([name, await twin(join(home, 'pub', name), name)])
  return members.length
}

/** What a commit that brings a table's last file again, or nothing, would tell so many microseconds behind the newest, and what all rows tell. */
async function toldAgain(root: string, micros: number, again: 'all' | 'nothing' = 'nothing') {
  using engine = await Engine.open()
  return await writing(root, async (ledger) => {
    const at = ledger.head().committed_at + micros
    const files = liveFiles(ledger).filter(({ path }) => again === 'all' && path.startsWith('registry/'))
    const grown = [...new Map(files.filter(({ label }) => label === '').map((file) => [file.table, file])).values()]
    const add = grown.map((file) => ({ ...file, temporary: file.path })) as readonly StagedFile[]
    const change = { add, remove: add.map(({ path }) => path) }
    return [await registryDays(ledger, engine, change, at), await registryDays(ledger, engine, {})] as const
  })
}

/** Changes of the published registry that a stranger is to find. */
const changes = [
  ['history_products', "UPDATE p SET symbol = 'ZZZ' WHERE id = (SELECT min(id) FROM p)"],
  ['history_products', 'UPDATE p SET valid_from = valid_from - INTERVAL 1 hour WHERE id = (SELECT min(id) FROM p)'],
  ['history_products', "UPDATE p SET valid_to = TIMESTAMPTZ '2026-06-02' WHERE id = (SELECT min(id) FROM p)"],
  ['history_products', "UPDATE p SET closed_by = 'deleted' WHERE id = (SELECT min(id) FROM p)"],
  ['history_deployments', 'DELETE FROM p WHERE id = (SELECT min(id) FROM p)'],
  ['history_deployments', 'INSERT INTO p FROM p LIMIT 1'],
  ['snapshot_products', "UPDATE p SET record = record || ' ' WHERE id = (SELECT min(id) FROM p)"],
  ['snapshot_products', 'UPDATE p SET observed_at = NULL WHERE id = (SELECT min(id) FROM p)'],
  ['snapshot_products', 'UPDATE p SET as_of_at = as_of_at + INTERVAL 1 day WHERE id = (SELECT min(id) FROM p)'],
  ['registry_events', 'UPDATE p SET "position" = 9999 WHERE "position" = (SELECT min("position") FROM p)'],
  ['registry_snapshots', "UPDATE p SET source = 'lists'"],
] as const

test('L6: a stranger digests the published registry, and finds whatever changed in it', () =>
  withRegistryRig(start, async (rig) => {
    await rig.snapshot()
    // What comes later on the day of a snapshot goes on from it.
    rig.clock.now += 7 * 3600
    const { opened, updated, closed } = await rig.sync()
    expect(opened + updated + closed).toBeGreaterThan(0)
    rig.clock.now += 3 * day
    await rig.sync()
    rig.clock.now += 40 * day
    await rig.sync()
    await rig.snapshot()
    rig.clock.now += 3600
    await rig.snapshot()
    const home = mkdtempSync(`${rig.root}-home`)
    const run = async (...argv: readonly string[]) => await pitlake(home, [...argv, '--data', rig.root])
    try {
      const sql = `SELECT e.polled_at AS ts, p.id, h.op, v.known_since FROM registry_events AS e, snapshots.products AS p,
        history.products AS h, history.deployments AS d, registry_start AS v WHERE h.id = p.id AND d.id = h.id ORDER BY ALL LIMIT 5`
      writeFileSync(join(home, 'q.sql'), sql)
      await run('views')
      await run('keygen', '--out', 'k.key')
      expect(await run('stamp', 'q.sql', '--out', 'q.parquet')).toMatchObject({ code: 0 })
      expect(await run('certify', 'q.parquet', '--key', 'k.key', '--out', 'c.json')).toMatchObject({ code: 0 })
      expect(await held(home, rig.root)).toBeGreaterThan(15)
      // Within a millisecond of another commit all rows of what it brings are told anew, and say what was told day by day.
      const [near, whole] = await toldAgain(rig.root, 0, 'all')
      expect(whole).toMatchObject(near)
      expect(Object.keys(near).toSorted()).toEqual(Object.keys(whole).toSorted())
      const told = await reading(rig.root, (ledger) => Object.keys(whole).map((name) => heldMembers(ledger, name)))
      expect(
        Object.values(whole).map((days) => Object.entries(days).toSorted(([one], [other]) => (one < other ? -1 : 1))),
      ).toEqual(told)
      for (const behind of [0, 1000]) expect((await toldAgain(rig.root, behind))[0]).toEqual({})
      const says = (checker: (typeof digesting)[number]) => checked(checker, home, ['c.json', '--tables', 'pub'])
      for (const checker of digesting)
        expect(says(checker)).toMatchObject({ status: 0, lines: [/5 tables of the registry digested anew/] })
      for (const [n, [name, change]] of sample(changes, 4).entries()) {
        using engine = await Engine.open()
        const [path = ''] = filesOf(join(home, 'pub', name))
        expect(existsSync(path), name).toBe(true)
        const before = readFileSync(path)
        await engine.run(`CREATE TABLE p AS FROM read_parquet(${quote(path)})`)
        await engine.run(change)
        await engine.run(`COPY p TO ${quote(path)} (FORMAT parquet)`)
        for (const checker of digesting.slice(0, n === 0 ? 2 : 1))
          expect(says(checker), change).toMatchObject({
            status: 4,
            lines: [new RegExp(`^not valid .*the rows of ${name} are not those that the state tells`)],
          })
        writeFileSync(path, before)
      }
      for (const checker of digesting) expect(says(checker)).toMatchObject({ status: 0 })
    } finally {
      rmSync(home, { recursive: true })
    }
  }))

test('L6: polls of a clock that was ahead are told under their true day once it is mended', () =>
  withRegistryRig(start, async (rig) => {
    await rig.snapshot()
    const now = rig.clock.now
    rig.clock.now += 400 * day
    await rig.snapshot()
    rig.clock.now = now + day
    const { root, clock } = rig
    await writing(
      root,
      async (ledger) => await mendClock(ledger, { ...commitDeps(), nowMicros: () => clock.now * 1_000_000 }),
    )
    const home = mkdtempSync(`${root}-home`)
    try {
      expect(await held(home, root)).toBeGreaterThan(15)
    } finally {
      rmSync(home, { recursive: true })
    }
  }))
