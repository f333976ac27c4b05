import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ownMemory } from '../../src/interfaces/cli/memory.ts'
import type { LakeError } from '../../src/base/errors.ts'
import { openLake } from '../../src/index.ts'
import { explainThrown } from '../../src/interfaces/commands/frame.ts'
import { bytesOf, kinds, sizeText } from '../../src/base/option-kinds.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { engineMemory, keepMemory, keptMemory, memoryWith, tooLarge, usualMemory } from '../../src/lake/store/memory.ts'
import { pitlake } from '../helpers/command.ts'
import { plain, point, threeDays } from '../helpers/lakes/three-days.ts'
import { scratch } from '../helpers/scratch.ts'

const mega = 2 ** 20
const giga = 2 ** 30
const setting = `SELECT current_setting('memory_limit') AS told`
const toldBy = (rows: Iterable<{ told: unknown }>): number => bytesOf(String([...rows][0]?.told)) ?? 0

const home = scratch('kept')
let root = ''
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  mkdirSync(join(home, 'configured'))
  ;({ root, remove } = await threeDays((day) => [point(plain, day, { v: day })]))
})
afterAll(async () => {
  keepMemory(ownMemory(), 'the machine')
  await remove()
})

test('a memory size is read and shown with its unit', () => {
  expect(['512MB', '1.5GB', '1 TiB', '64kb'].map(bytesOf)).toEqual([512 * mega, 1.5 * giga, 1024 * giga, 65_536])
  expect(['512', 'MB', '-1GB', '1PB', '1GB or so'].map(bytesOf)).toEqual(Array.from({ length: 5 }, () => undefined))
  expect([giga, 3 * giga, 1.5 * giga, mega + 1].map(sizeText)).toEqual(['1GB', '3GB', '1536MB', '2MB'])
  expect(() => kinds.size.read('--memory', 'much')).toThrow('--memory: expected a size such as 512MB or 16GB, got much')
})

test('the default memory is a quarter of the machine and at least half a gigabyte', () => {
  expect([64, 2, 0.5].map((machine) => usualMemory(machine * giga))).toEqual([16 * giga, 512 * mega, 512 * mega])
})

test('the engines get what Node leaves; more than one share it', async () => {
  keepMemory(giga, '--memory')
  const all = bytesOf(engineMemory()) ?? 0
  expect(all).toBeGreaterThan(0.5 * giga)
  expect(all).toBeLessThan(giga - 200 * mega)
  expect(Math.abs(2 * (bytesOf(engineMemory(1 / 2)) ?? 0) - all)).toBeLessThanOrEqual(2 * mega)
  using engine = await Engine.open()
  expect(toldBy(await engine.rows<{ told: string }>(setting))).toBeCloseTo(all, -7)
  // What an engine lacks is told as what the process must keep to, in steps that one types.
  expect(memoryWith(all, all)).toBe(keptMemory())
  expect(memoryWith(all, 2 * all) % (64 * mega)).toBe(0)
  expect(memoryWith(all, 2 * all)).toBeGreaterThan(1.7 * giga)
})

test('a command with too little memory does not start', () => {
  const refused = '--memory: expected at least 384MB, got 100MB'
  expect(() => keepMemory(100 * mega, '--memory')).toThrow(refused)
  expect(keptMemory()).toBe(giga)
})

describe('what an engine says of too little', () => {
  const said = async (memoryLimit: string, spillLimit: number, sql: string): Promise<LakeError | undefined> => {
    using engine = await Engine.open(':memory:', { memoryLimit, spillLimit, threads: 1 })
    return tooLarge(await engine.rows(sql).catch((error: unknown) => error), 'pitlake publish')
  }

  test('becomes words that name what to raise', async () => {
    const told = await said('40MB', giga, 'SELECT list(i) FROM range(30000000) AS r (i)')
    expect(told?.message).toMatch(
      /^pitlake publish: more memory than it may take; query less data at once, or raise it: --memory 2GB$/,
    )
    expect(told?.kind).toBe('incomplete')
    const disk = await said('40MB', mega, 'SELECT count(DISTINCT hash(i)) FROM range(9000000) AS r (i)')
    expect(disk?.message).toBe(
      'pitlake publish: more disk than it may take; query less data at once, or leave it more of the disk',
    )
    expect(tooLarge(new Error('Binder Error: no'), 'x')).toBeUndefined()
  })

  test('ends a job with the option to raise', async () => {
    const thrown = new Error('Out of Memory Error: failed to allocate data of size 16.0 MiB')
    expect(await explainThrown(thrown, 'fetch', '/no/lake')).toMatchObject({
      kind: 'incomplete',
      message: 'pitlake fetch: more memory than it may take; raise it: --memory 2GB, then run the same command again',
    })
    const other = new Error('Binder Error: no')
    expect(await explainThrown(other, 'fetch', '/no/lake')).toBe(other)
  })
})

describe('every door', () => {
  test('commands: a flag, else the config file; too little is refused before anything begins', async () => {
    const cwd = join(home, 'configured')
    const told = join(home, 'told.csv')
    const sql = async (...own: readonly string[]) =>
      await pitlake(cwd, ['sql', setting, '--data', root, '--out', told, ...own])
    const limit = async (...own: readonly string[]): Promise<number> => {
      expect(await sql(...own)).toMatchObject({ code: 0 })
      return bytesOf(readFileSync(told, 'utf8').split('\n')[1] ?? '') ?? 0
    }
    const half = await limit('--memory', '512MB')
    const one = await limit('--memory', '1GB')
    expect(half).toBeGreaterThan(200 * mega)
    expect(half).toBeLessThan(300 * mega)
    expect(one).toBeGreaterThan(half + 300 * mega)
    writeFileSync(join(home, 'configured', 'pitlake.yaml'), 'data: x\nmemory: 1GB\n')
    expect(await limit()).toBe(one)
    expect(await limit('--memory', '512MB')).toBe(half)
    expect(await sql('--memory', '100MB')).toMatchObject({
      code: 2,
      message: '--memory: expected at least 384MB, got 100MB',
    })
    writeFileSync(join(home, 'configured', 'pitlake.yaml'), 'data: x\nmemory: 100MB\n')
    expect(await sql()).toMatchObject({
      code: 2,
      message: 'pitlake.yaml:2: memory: expected at least 384MB, got 100MB',
    })
  })

  test('a panel that needs more is refused with what it needs', async () => {
    const metrics = Array.from({ length: 90 }, (_, n) => `m${n}=${plain}`).join(',')
    const fields = 'v,t,available_at,o,age'
    const grid = [
      '--calendar',
      '2024-03-01,2024-03-05,1m',
      '--assets',
      'BTC,ETH',
      '--metrics',
      metrics,
      '--fields',
      fields,
    ]
    const out = join(home, 'wide.csv')
    const done = await pitlake(home, ['panel', ...grid, '--data', root, '--memory', '384MB', '--out', out])
    expect(done).toMatchObject({
      code: 2,
      message: expect.stringMatching(
        /^a panel of 11520 rows and 450 columns, --memory: expected at least \d+[MG]B, got 384MB$/,
      ),
    })
  })

  test('TypeScript: an option of the lake that is opened', async () => {
    const limit = async (memory?: string): Promise<number> => {
      const lake = await openLake(root, { memory })
      const table = await lake.sql(setting)
      await lake.close()
      return toldBy(table.toArray().map((row) => row.toJSON() as { told: unknown }))
    }
    expect(await limit('2GB')).toBeGreaterThan((await limit('1GB')) + 300 * mega)
    expect(await limit()).toBeGreaterThan(100 * mega)
    await expect(openLake(root, { memory: '100MB' })).rejects.toThrow('memory: expected at least 384MB, got 100MB')
    await expect(openLake(root, { memory: 'much' })).rejects.toThrow('memory: expected a size such as 512MB or 16GB')
  })
})
