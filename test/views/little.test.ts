import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'
import type { LakeCommit } from '../helpers/lakes/lake-recipe.ts'

const step = (n: number): LakeCommit => ({
  at: `2024-04-0${n}`,
  points: [
    { metric: 'm/x', asset: 'BTC', interval: '24h', t: `2024-03-0${n}`, available_at: `2024-03-0${n + 1}`, v: n },
  ],
})

/** A build of the views with the statements that its engines ran, the engines it opened and the files it left. */
async function built(root: string) {
  const { run } = Engine.prototype
  const { open } = Engine
  const ran: string[] = []
  let engines = 0
  Engine.prototype.run = async function counted(sql, ...rest) {
    ran.push(sql)
    return await run.call(this, sql, ...rest)
  }
  Engine.open = async (...given) => {
    engines++
    return await open.apply(Engine, given)
  }
  const files = (): string[] =>
    ['.', 'exports'].flatMap((folder) =>
      (existsSync(join(root, folder)) ? readdirSync(join(root, folder)) : []).map((name) => `${folder}/${name}`),
    )
  const before = new Set(files())
  const moved: string[] = []
  const move: typeof realDisk.move = async (from, to) => {
    moved.push(to)
    await realDisk.move(from, to)
  }
  try {
    const value = await makeViews(root, { deps: commitDeps({ disk: { ...realDisk, move } }) })
    const fresh = files().filter((name) => !before.has(name))
    const tables = ran
      .filter((sql) => sql.startsWith('COPY ('))
      .map((sql) => /-([a-z_]+)\.parquet/.exec(sql.slice(sql.indexOf(' TO ')))?.[1] ?? '')
    return { value, ran, engines, fresh, tables: tables.toSorted(), moved: moved.length }
  } finally {
    Engine.prototype.run = run
    Engine.open = open
  }
}

test('only the tables that changed are written out; where nothing did, nothing is run and nothing written', async ({
  root,
}) => {
  await makeLake(root, [step(1)])
  const first = await built(root)
  expect(first.tables.length).toBe(first.value.exports)
  expect(first.tables).toContain('endpoints')
  await makeLake(root, [step(2)])
  const little = await built(root)
  // One commit and nothing else: the catalogue, the links, violations and findings are as they were.
  expect(little.tables).toEqual(['versions'])
  expect(little.fresh).toEqual([expect.stringMatching(/^exports\/versions-/)])
  // That table, the database, the script, the manifest, and what was proved of the files.
  expect(little.moved).toBe(5)
  const nothing = await built(root)
  expect(nothing.value).toMatchObject({ made: false, exports: 0 })
  // One engine, which looks whether the database can be read.
  expect(nothing).toMatchObject({ tables: [], fresh: [], moved: 0, engines: 1 })
  expect(nothing.ran.filter((sql) => !sql.startsWith('SET'))).toEqual([])
})
