import { expect, test } from 'vitest'
import { summary } from '../../src/lake/ledger/index-queries.ts'
import { inWindow } from '../helpers/days.ts'
import { reading } from '../helpers/ledgers.ts'
import { withProvider } from '../helpers/provider.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const selection = { assets: ['BTC'], paths: ['blockchain/block_count_pit'], since: start }

test.each([
  ['a list without points', []],
  ['an answer without content', { status: 204 }],
] as const)(
  'L2: points that %s lacks are differences until they are back, also behind the overlap of a later fetch',
  async (_, nothing) =>
    withProvider(start + 40.1 * day, async (own) => {
      let away = false
      own.answer((path, query) => {
        if (path === 'assets') return { status: 404 }
        const ended = Math.floor((own.clock.now - start) / day)
        const points = Array.from({ length: ended }, (_, n) => ({ t: start + n * day, v: n }))
        return away ? nothing : inWindow(query, points)
      })
      await own.fetch(selection)
      away = true
      own.clock.now += day
      const { violations } = await own.fetch(selection)
      expect(violations).toBeGreaterThan(1)
      away = false
      own.clock.now += 30 * day
      await own.fetch(selection)
      expect(await reading(own.root, summary)).toMatchObject({ violations: 0, reverted: violations })
    }),
)
