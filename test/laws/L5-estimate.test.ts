// @module-tag full
import { expect, test } from 'vitest'
import { preparePlan } from '../../src/sources/metrics/prepare.ts'
import { settingsAt, withRig } from '../helpers/fetching.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000

test('the plan of a top-up estimates the points that arrive within a factor of two', async () =>
  withRig(start, async (rig) => {
    const paths = ['blockchain/*', 'supply/current_pit', 'indicators/*', 'options/*']
    const selection = { assets: ['BTC', 'ETH'], paths, since: start - 400 * day }
    await rig.fetch(selection)
    for (const days of [1, 2, 7, 30]) {
      rig.clock.now += days * day + 3600
      const now = rig.clock.now
      const input = {
        settings: settingsAt({ ...rig, now: () => now }),
        catalogue,
        selections: [selection],
        gapsOnly: false,
      }
      const { totals } = (await preparePlan({ ...input, now })).plan
      const { points_added } = await rig.fetch(selection)
      expect(points_added).toBeGreaterThan(0)
      expect([days, totals.points / points_added >= 0.5, totals.points / points_added <= 2]).toEqual([days, true, true])
    }
  }))
