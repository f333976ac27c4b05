import { expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { fetchKey, withRig } from '../helpers/fetching.ts'

const now = Date.UTC(2026, 2, 10, 12) / 1000

test('a fetch reports where its time went: all of it, each moment once', async () =>
  await withRig(now, async (rig) => {
    let at = 0
    const world = { now: () => now * 1000, elapsed: () => (at += 7) }
    const env = { PITLAKE_DATA: rig.root, PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
    const asked = ['fetch', '--assets', 'BTC', '--paths', 'supply/current_pit', '--since', '2026-03-01']
    const told = await pitlake(rig.root, [...asked, '--json', '-v'], env, world)
    const { seconds } = JSON.parse(told.out) as { seconds: Record<string, number> }
    const parts = ['asking', 'reading', 'proving', 'writing', 'committing', 'views', 'other']
    expect(parts.filter((part) => !((seconds[part] ?? 0) > 0))).toEqual([])
    expect(Object.values(seconds).reduce((sum, one) => sum + one, 0)).toBeCloseTo(at / 1000, 6)
    expect(told.notes).toMatch(
      /^took [\d.]+ s: other [\d.]+, waiting .*, writing [\d.]+, committing [\d.]+, views [\d.]+$/m,
    )
    expect((await pitlake(rig.root, asked, env, world)).notes).not.toContain('took')
  }))
