import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { completeState } from '../../src/trust/heads/complete.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { heldSeries } from '../../src/lake/ledger/index-queries.ts'
import { heldChains } from '../../src/lake/ledger/state-tree.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { firstHour, makeLargeLake } from '../helpers/large-lake.ts'
import { commitDeps, inFolder } from '../helpers/lakes.ts'
import { reading, writing } from '../helpers/ledgers.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const [metrics, hours, assets] = [3, 20_000, 10]
/** What an engine may count that cannot hold all of these points together. */
const small = '64MiB'

/** A lake whose ledger does not know the months of its series. */
async function unchainedLake(root: string): Promise<void> {
  const lake = await makeLargeLake(root, metrics, hours)
  const series = lake.metrics.flatMap((metric) =>
    lake.assets.map((asset) => {
      const { currency, exchange, network } = { ...catalogue.endpoints.get(metric)?.defaults } as const
      const [one = null, two = null, three = null] = [currency, exchange, network]
      const named = { currency: one, exchange: two, network: three, interval: '1h', settled: '1h' } as const
      return { id: `${metric}|${asset}`, metric, asset, ...named, params: {} }
    }),
  )
  const progress = series.map(({ id }) => {
    return { series: id, points: hours, first_t: firstHour, last_t: firstHour + (hours - 1) * 3600 }
  })
  const draft = { job: 'fetch', run: 'told', provider: { synthetic: true }, series, progress }
  await writing(root, async (ledger) => await commit(ledger, draft, commitDeps()))
}

const chains = async (root: string) =>
  await reading(root, (ledger) => heldChains(ledger, [...heldSeries(ledger).keys()]))
const versionOf = async (root: string) => await reading(root, (ledger) => ledger.head().version)

test('months of a lake too large for the engine are told in parts, each once, also after a cut', async () => {
  await inFolder(async (folder) => {
    const [root, whole] = [join(folder, 'lake'), join(folder, 'whole')]
    await unchainedLake(root)
    cpSync(root, whole, { recursive: true })
    await writing(whole, async (ledger) => await completeState(ledger, commitDeps()))
    const version = await versionOf(root)
    expect(await versionOf(whole)).toBe(version + 1)

    // The process dies in the middle of the second part.
    let entries = 0
    const claim = async (from: string, to: string): Promise<boolean> => {
      if (entries++ === 1) throw new Error('cut')
      return await realDisk.claim(from, to)
    }
    const cut = commitDeps({ disk: { ...realDisk, claim } })
    await writing(root, async (ledger) => await expect(completeState(ledger, cut, small)).rejects.toThrow('cut'))
    expect(await versionOf(root)).toBe(version + 1)
    const stopped = { ...commitDeps(), signal: AbortSignal.abort() }
    await writing(root, async (ledger) => await completeState(ledger, stopped, small))
    expect(await versionOf(root)).toBe(version + 1)

    await writing(root, async (ledger) => await completeState(ledger, commitDeps(), small))
    const parts = Math.ceil((metrics * assets) / Math.floor((32 * 2 ** 20) / 224 / hours))
    expect(await versionOf(root)).toBe(version + parts)
    const told = await chains(root)
    expect(told).toEqual(await chains(whole))
    expect([...told.keys()]).toHaveLength(metrics * assets)
    const points = [...told.values()].map((own) => own.reduce((sum, [, text]) => sum + Number(text.split(' ')[0]), 0))
    expect(points).toEqual(points.map(() => hours))
    await writing(root, async (ledger) => await completeState(ledger, commitDeps(), small))
    expect(await versionOf(root)).toBe(version + parts)
  })
})
