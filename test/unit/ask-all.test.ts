import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { expand } from '../../src/catalog/series.ts'
import { askAll, batchBytes } from '../../src/sources/metrics/ask-all.ts'
import { unwatched } from '../../src/base/stopwatch.ts'
import type { Asking } from '../../src/sources/metrics/asking.ts'
import type { Ask } from '../../src/sources/metrics/plan.ts'
import { newAskingState } from '../../src/sources/metrics/run-summary.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { partOf } from '../helpers/part-of.ts'
import type { AnsweredRequest } from '../../src/sources/http/request-rows.ts'
import { makeFolder } from '../helpers/folders.ts'

const since = Date.UTC(2024, 0, 1) / 1000
const window = { since, until: since + 864_000 }
const asks: Ask[] = expand(catalogue, [{ assets: ['BTC'], paths: ['*'] }])
  .slice(0, 10)
  .map(({ series, endpoint }) => ({
    series,
    endpoint,
    interval: '24h',
    window,
    settles: window,
    points: 10,
    credits: 1,
  }))

/** A run whose bodies each fill a batch, and how many of them were asked for. */
async function withFullBodies(work: (asking: Asking, asked: () => number) => Promise<void>): Promise<void> {
  const folder = makeFolder('ask-all')
  const file = join(folder, 'body.json')
  writeFileSync(file, '[]')
  let asked = 0
  const connection = {
    base: 'http://127.0.0.1',
    spool: { file: () => file },
    ask: async () => {
      asked++
      await setTimeout(1)
      return partOf<AnsweredRequest>({
        outcome: { kind: 'body', status: 200, file, bytes: batchBytes, date: null },
        row: { id: `r${asked}` },
      })
    },
  }
  const settings = resolveSettings({ flags: {}, env: {}, cwd: folder }).metrics
  const nothing = (): void => undefined
  const asking = partOf<Asking>({
    run: 'r',
    state: newAskingState(),
    purpose: { name: 'fetch', budget: null },
    tell: nothing,
    tally: { answered: nothing },
    connection,
    wire: catalogue.wire,
    settings,
    now: () => 0,
  })
  try {
    await work(asking, () => asked)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('L5: requests continue while a batch is committed, and batches are committed one after the other', () =>
  withFullBodies(async (asking, asked) => {
    const committed: number[] = []
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    let at = 0
    let most = 0
    const commitNow = async (batch: readonly unknown[]): Promise<readonly never[]> => {
      most = Math.max(most, ++at)
      await held
      committed.push(batch.length)
      at--
      return []
    }
    const done = askAll(asking, asks, { concurrency: 2, during: unwatched, commitNow, onSettled: () => undefined })
    await setTimeout(100)
    // The first batch is being committed, two more wait, and with them both who ask.
    expect([asked(), committed]).toEqual([3, []])
    release()
    await done
    expect([asked(), most]).toEqual([10, 1])
    expect(committed.reduce((sum, size) => sum + size, 0)).toBe(10)
  }))

test('L5: no further request is sent once a batch could not be committed', () =>
  withFullBodies(async (asking, asked) => {
    const full = new Error('the disk is full')
    const commitNow = async (): Promise<never> => await Promise.reject(full)
    const done = askAll(asking, asks, { concurrency: 2, during: unwatched, commitNow, onSettled: () => undefined })
    await expect(done).rejects.toBe(full)
    expect(asked()).toBeLessThanOrEqual(3)
  }))
