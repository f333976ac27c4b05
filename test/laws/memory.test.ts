// @module-tag full
// @module-tag slow
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { limitedGroup } from '../helpers/cgroup.ts'
import { firstHour, type LargeLake, makeLargeLake } from '../helpers/lakes/large-lake.ts'
import { need } from '../helpers/needs.ts'
import { isFullTier, sample, takesEveryCase } from '../helpers/tiers.ts'
import { scratch } from '../helpers/scratch.ts'

const peak = fileURLToPath(new URL('../bench/peak.ts', import.meta.url))
/** What is promised, in megabytes. */
const promised = 512
/** Two million points, five of them where every case is taken: what is promised is the same. */
const [metrics, hours] = isFullTier ? [67, takesEveryCase ? 7463 : 3000] : [40, 500]

/** Not in memory, as the folder of other tests may be: what is spilled there is held by whoever spilled it. */
const disk = '/var/tmp'
const home = scratch('memory', disk)
let lake: LargeLake
/** Where there is one, the kernel keeps them to it, too, files that they map included. */
const group = limitedGroup(promised * 2 ** 20)
afterAll(() => group?.[Symbol.dispose]())
beforeAll(async () => {
  lake = await makeLargeLake(join(home, 'lake'), metrics, hours)
})

/** Runs a command in a process of its own that keeps to what it was told; gives the most that it held, in megabytes. */
async function held(...argv: readonly string[]): Promise<number> {
  const line = [process.execPath, peak, ...argv, '--data', lake.root, '--memory', `${promised}MB`]
  const [program = '', ...rest] = [...(group?.prefix ?? []), ...line]
  const env = { ...process.env, TMPDIR: disk }
  const { stdout } = await promisify(execFile)(program, rest, { cwd: home, maxBuffer: 2 ** 30, env })
  const { megabytes } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { megabytes: number }
  expect(megabytes).toBeGreaterThan(60)
  return megabytes
}

const iso = (seconds: number): string => new Date(seconds * 1000).toISOString()

/** Work that needs memory, by its title. */
const kept: Readonly<Record<string, () => Promise<void>>> = {
  'a panel in one of its formats': async () => {
    const grid = ['--calendar', `${iso(firstHour)},${iso(firstHour + hours * 3600)},1h`, '--interval', '1h']
    const what = [...grid, '--assets', lake.assets.join(','), '--metrics', lake.metrics.join(',')]
    for (const ending of sample(['csv', 'jsonl', 'arrow', 'parquet'], 1)) {
      const out = join(home, `panel.${ending}`)
      expect(await held('panel', ...what, '--out', out), ending).toBeLessThan(promised)
      if (ending !== 'parquet') continue
      using engine = await Engine.open()
      const [row] = await engine.rows(`SELECT count(*) AS n FROM ${quote(out)}`)
      expect(row?.['n']).toBe(BigInt(hours * 10))
    }
  },
  'sql: a sort of more than it may hold, and all points as a file': async () => {
    const sorted =
      'SELECT sum(n) AS n FROM (SELECT row_number() OVER (ORDER BY hash(i)) AS n FROM range(12000000) r(i))'
    expect(await held('sql', sorted)).toBeLessThan(promised)
    expect(await held('sql', 'FROM points', '--out', join(home, 'points.parquet'))).toBeLessThan(promised)
  },
  'publish, compact, views': async () => {
    expect(await held('publish', join(home, 'published'), '--json')).toBeLessThan(promised)
    expect(await held('compact', '--json')).toBeLessThan(promised)
    expect(await held('views')).toBeLessThan(promised)
  },
}

describe('a process keeps to the memory that it was promised', () => {
  test.each(sample(Object.entries(kept), 3))('%s stays within its memory', async (_, work) =>
    expect(await work()).toBeUndefined(),
  )

  test('a process that takes more memory than its limit is ended by the kernel', async (context) => {
    need(context, 'cgroup')
    const words = [...(group?.prefix ?? []), process.execPath, '-e', 'Buffer.alloc(6e8, 1)']
    await expect(promisify(execFile)(words[0] ?? '', words.slice(1))).rejects.toMatchObject({ signal: 'SIGKILL' })
  })

  test('no spilled file is left behind', () => {
    expect(readdirSync(join(lake.root, 'spool')).filter((name) => name !== 'made')).toEqual([])
  })
})
