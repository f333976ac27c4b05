import { expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { check, readStanding } from '../../src/interfaces/report/status.ts'
import { settingsAt, trying } from '../helpers/fetching.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { inWindow } from '../helpers/days.ts'

const day = 86_400
const start = Date.UTC(2026, 6, 13) / 1000
const count = 'blockchain/block_count_pit'

/** Daily points of these days, counted from the start. */
const answering = (own: OwnProvider, has: (n: number) => boolean): void =>
  own.answer((path, query) =>
    path === 'assets'
      ? { status: 404 }
      : inWindow(
          query,
          Array.from({ length: 200 }, (_, n) => ({ t: start + n * day, v: n })).filter(({ v }) => has(v)),
        ),
  )

async function told(own: OwnProvider): Promise<readonly string[]> {
  using ledger = await Ledger.openToRead(own.root)
  const settings = settingsAt({ root: own.root, url: own.url, now: () => own.clock.now })
  const { standing } = await readStanding(ledger, { settings, catalogue: trying, now: own.clock.now })
  return check(standing).lines
}

test('a gap at the head of a first answer is reported as such by the run and by status', async () =>
  withProvider(start + 200 * day + 7200, async (own) => {
    answering(own, (n) => n >= 57)
    const summary = await own.fetch({ assets: ['BTC'], paths: [count], since: start })
    const begins = { metric: count, asset: 'BTC', interval: '24h', begins: '2026-09-08', asked_from: '2026-07-13' }
    expect(summary.begins_later).toEqual([begins])
    expect(await told(own)).toContainEqual(
      `note: 1 series begins later than requested: ${count} BTC begins 2026-09-08, requested from 2026-07-13; pitlake sql 'FROM coverage'`,
    )
  }))

test.each([38, 50])('a gap of %i days in the middle of a first answer is reported by status', async (days) =>
  withProvider(start + 200 * day + 7200, async (own) => {
    answering(own, (n) => n < 60 || n >= 60 + days)
    const summary = await own.fetch({ assets: ['BTC'], paths: [count], since: start })
    expect(summary.begins_later).toEqual([])
    const where = `${days} points of ${count} BTC from 2026-09-11 on`
    expect(await told(own)).toContainEqual(
      `note: points are missing in 1 window, the most in a row: ${where}; pitlake sql 'FROM gaps'`,
    )
  }),
)
