import { expect, test } from 'vitest'
import { type Ended, pitlake } from '../helpers/command.ts'
import { fetchKey, withRig } from '../helpers/fetching.ts'
import { leaping } from '../helpers/leaping.ts'

const now = Date.UTC(2026, 2, 4, 12) / 1000

/** Runs commands on one lake of the sandbox. */
async function withLake(work: (run: (line: string) => Promise<Ended>) => Promise<void>): Promise<void> {
  await withRig(now, async ({ root, url, clock }) => {
    const env = { PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: fetchKey, PITLAKE_DATA: root }
    const world = leaping(() => clock.now)
    await work(async (line) => await pitlake(root, line.split(' '), env, world))
  })
}

test('a first fetch of an asset that the provider does not list names the listed one', async () =>
  await withLake(async (run) => {
    const first = await run('fetch --assets BITCOIN,ETHH,ETH --paths supply/current_pit --since 2026-02-20')
    expect(first).toMatchObject({ code: 0 })
    expect(first.out).toMatch(/^not listed +BITCOIN; the provider lists BTC, ETHH; the provider lists ETH$/m)
    const again = await run('fetch --assets BITCOIN --paths supply/current_pit')
    expect(again).toMatchObject({ code: 2, message: expect.stringMatching(/got BITCOIN; did you mean `BTC`\?/) })
    const right = await run('fetch --assets ETH --paths supply/current_pit --since 2026-02-20 --json')
    expect(JSON.parse(right.out)).toMatchObject({ mistyped_assets: [] })
  }))

test('a mistyped asset that is not requested, because metadata lack it, is named too', async () =>
  await withLake(async (run) => {
    const first = await run('fetch --assets BTC,BITCOIN --paths supply/*,addresses/* --since 2026-02-20')
    expect(first.notes).toMatch(/windows are not requested: not in the metadata/)
    expect(first.out).toMatch(/^not listed +BITCOIN; the provider lists BTC$/m)
  }))

test('a selection that begins in the future is planned with a note, and requests nothing', async () =>
  await withLake(async (run) => {
    const future = await run('fetch --assets BTC --paths supply/current_pit --since 2027-01-01')
    expect(future).toMatchObject({ code: 0, out: expect.stringMatching(/^requests +0$/m) })
    expect(future.notes).toMatch(/note: the selection begins on 2027-01-01, which is in the future/)
    const due = await run('fetch --assets BTC --paths supply/current_pit --since 2026-03-01')
    expect(due.notes).not.toMatch(/future/)
  }))
