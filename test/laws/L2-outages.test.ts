import { expect, test } from 'vitest'
import { summary } from '../../src/lake/ledger/index-queries.ts'
import { inWindow } from '../helpers/days.ts'
import { reading } from '../helpers/ledgers.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const selection = { assets: ['BTC'], paths: ['blockchain/block_count_pit'], since: start }

/** Answers a point a day, but for the days that are away. */
function answerDaily(own: OwnProvider, isAway: (n: number) => boolean): void {
  own.answer((path, query) => {
    if (path === 'assets') return { status: 404 }
    const ended = Array.from({ length: Math.floor((own.clock.now - start) / day) }, (_, n) => n)
    return inWindow(
      query,
      ended.filter((n) => !isAway(n)).map((n) => ({ t: start + n * day, v: n })),
    )
  })
}

test.each([
  ['a list without points', []],
  ['an answer without content', { status: 204 }],
] as const)('L2: points that %s lacks are differences until they are back', async (_, nothing) =>
  withProvider(start + 40.1 * day, async (own) => {
    answerDaily(own, () => false)
    await own.fetch(selection)
    own.answer((path) => (path === 'assets' ? { status: 404 } : nothing))
    own.clock.now += day
    const { violations } = await own.fetch(selection)
    expect(violations).toBeGreaterThan(1)
    answerDaily(own, () => false)
    own.clock.now += day
    await own.fetch(selection)
    expect(await reading(own.root, summary)).toMatchObject({ violations: 0, reverted: violations })
  }),
)

test('L2: points that an outage took away are requested until they are back, also once newer points are stored', async () =>
  withProvider(start + 40.1 * day, async (own) => {
    answerDaily(own, () => false)
    await own.fetch(selection)
    answerDaily(own, (n) => n >= 36 && n <= 38)
    for (const days of [1, 20, 20]) {
      own.clock.now += days * day
      await own.fetch(selection)
    }
    expect(await reading(own.root, summary)).toMatchObject({ violations: 3, reverted: 0 })
    answerDaily(own, () => false)
    own.clock.now += day
    await own.fetch(selection)
    expect(await reading(own.root, summary)).toMatchObject({ violations: 0, reverted: 3 })
  }))
