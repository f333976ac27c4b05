// @module-tag full
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { storedViolations, summary } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { fetchKey, type Rig, withRig } from '../helpers/fetching.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const day = 86_400
const now = Math.floor(Date.now() / 1000)
const selection = { assets: ['BTC', 'ETH'], paths: ['addresses/*'], intervals: ['24h'], since: now - 40 * day }

/** The real command; `kill` is asked before each of its requests is answered whether it is to die. */
async function fetchOnce(rig: Rig, kill: (url: string) => boolean): Promise<{ code: number | null; out: string }> {
  const { assets, paths, since } = selection
  const of = ['--assets', assets.join(','), '--paths', paths.join(','), '--intervals', '24h', '--since', String(since)]
  const env = { ...process.env, PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey, PITLAKE_DATA: rig.root }
  const child = spawn(process.execPath, [main, 'fetch', '--json', ...of], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  rig.onRequest(({ url }) => {
    if (kill(url)) child.kill('SIGKILL')
  })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  return await new Promise((resolve) => child.on('close', (code) => resolve({ code, out })))
}

test('a kill between the second asking and its commit: the same command gives the same incident, and then nothing new', async () =>
  withRig(now, async (rig) => {
    await rig.fetch({ ...selection, until: now - 3 * day })
    const stored = await rig.stored()
    rig.faults('empty-list@addresses/*')
    const seen = new Set<string>()
    const killed = await fetchOnce(rig, (url) => {
      const again = seen.has(url)
      if (url.includes('/v1/metrics/addresses')) seen.add(url)
      return again
    })
    expect(killed.code).toBeNull()
    expect(await rig.stored()).toEqual(stored)
    const counts = async () => {
      using ledger = await Ledger.openToRead(rig.root)
      const { violations, incidents } = summary(ledger)
      const points = storedViolations(ledger).reduce((sum, one) => sum + one.points, 0)
      return { violations, incidents, points, version: ledger.head().version }
    }
    expect(await counts()).toMatchObject({ violations: 0, points: 0 })
    const done = await fetchOnce(rig, () => false)
    expect(done.code).toBe(4)
    expect(JSON.parse(done.out)).toMatchObject({ violations: 1, incidents: 1 })
    const told = await counts()
    // The overlap of each series: five points, of which the newest may not be due yet at this time of day.
    expect(told).toMatchObject({ violations: 1, incidents: 1 })
    expect(told.points).toBeGreaterThan(seen.size * 4)
    expect(told.points).toBeLessThanOrEqual(seen.size * 5)
    const more = await fetchOnce(rig, () => false)
    expect(more.code).toBe(4)
    expect(await counts()).toEqual(told)
    rig.faults()
    expect((await fetchOnce(rig, () => false)).code).toBe(0)
    expect(await counts()).toMatchObject({ violations: 0, incidents: 0 })
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))
