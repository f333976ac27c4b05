import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'

const bars = 'asset,t,open,close\nBTC,2024-03-01,100,110\nBTC,2024-03-02,110,115\n'
const argv = ['--as', 'bars', '--components', 'open,close', '--available', 'open=start,close=end'] as const
/** Right before and at the first instant at which a newer value should be known, and years later. */
const instants = {
  open: [
    ['2024-03-02T23:59:59Z', 110],
    ['2024-03-03T00:00:00Z', null],
    ['2033-03-03T00:00:00Z', null],
  ],
  close: [
    ['2024-03-03T23:59:59Z', 115],
    ['2024-03-04T00:00:00Z', null],
    ['2033-03-03T00:00:00Z', null],
  ],
} as const

test("`unresolved := 'null'` gives NULL past the resolved range of a component with its own clock, in each join", async () => {
  await withDesk(async ({ put, take, rows, run }) => {
    expect((await take([put('bars.csv', bars), ...argv])).message).toBe('')
    for (const [part, all] of Object.entries(instants)) {
      const name = `own/bars#/${part}`
      const values = all.map(([ts], id) => `(${id}, 'BTC', TIMESTAMPTZ '${ts}')`).join(', ')
      const d = `WITH d AS (SELECT * FROM (VALUES ${values}) AS d (id, asset, ts))`
      const owed = all.map(([, v]) => v)
      for (const join of [
        `pit_join('d', '${name}', '24h'`,
        `pit_long('d', ['${name}'], '24h'`,
        `pit_window('d', '${name}', '24h', 1`,
      ]) {
        const found = await rows(`${d} SELECT v FROM ${join}, unresolved := 'null') ORDER BY id`)
        expect(
          found.map(({ v }) => v),
          join,
        ).toEqual(owed)
      }
      const [hole] = await rows(
        `SELECT CAST(epoch_ms(since) AS VARCHAR) AS since, until FROM unresolved(['${name}'], '24h')`,
      )
      expect(hole, name).toEqual({ since: String(Date.parse(all[1][0])), until: null })
      const noted = await run(['sql', `${d} SELECT v FROM pit_join('d', '${name}', '24h')`])
      expect(noted.notes, name).toMatch(
        new RegExp(`'own/bars(#/${part})?' get its newest value: 2, from ${all[1][0]} on`),
      )
    }
  })
})
