// @module-tag full
// @module-tag slow
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { compact } from '../../src/maintenance/upkeep/compact.ts'
import { replay } from '../../src/trust/results/stamp.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import type { Ledger } from '../../src/lake/ledger/ledger.ts'
import { parseInstant } from '../../src/base/time.ts'
import type { Selection } from '../../src/catalog/series.ts'
import { world } from '../helpers/adopting.ts'
import { fetchOnce, storedPoints, truthOf } from '../helpers/fetching.ts'
import {
  answer,
  begun,
  frozen,
  type Frozen,
  keptLakes,
  keptSelection,
  ledgerQuestions,
  questions,
  registryStory,
  withKept,
  withProviderOf,
} from '../helpers/kept-lakes.ts'
import { examined } from '../helpers/looking.ts'
import { withRegistryRig } from '../helpers/registry-rig.ts'
import { sample } from '../helpers/tiers.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { reading } from '../helpers/ledgers.ts'

const day = 86_400

/** The answers of now, or by what the lake held at an instant. */
async function ask(root: string, asked: typeof questions, at?: number): Promise<Frozen['asked']> {
  await makeViews(root)
  return await withViews(root, async (engine) => {
    if (at !== undefined) await engine.run(`SET VARIABLE observed_as_of = make_timestamptz(${at})`)
    return await answer(engine, asked)
  })
}

async function damage(root: string, now: number, more: { rebuildLedger?: boolean } = {}): Promise<string[]> {
  const { findings } = await examined(root, now, more, { views: makeViewsOf })
  return findings
    .filter(({ severity }) => severity === 'damage')
    .map(({ kind, path, found }) => `${kind} ${path} ${found}`)
}

const makeViewsOf = async (ledger: Ledger): Promise<unknown> => await makeViews(ledger.root)

/** Results that were stamped, beside the lake. */
const results = (home: string): string[] => readdirSync(home).filter((name) => name.endsWith('.parquet'))

async function replayed(root: string, home: string): Promise<boolean[]> {
  const run = { sleep: async () => await Promise.resolve() }
  return await Promise.all(
    results(home).map(async (name) => (await replay(root, join(home, name), run, 'pitlake test')).same),
  )
}

/** Brings a kept lake up to date by its own provider, some days later; returns what the provider showed. */
async function topUp(name: string, root: string, now: number): Promise<readonly [Selection, number] | undefined> {
  if (name === 'registry') {
    const { answer: told } = registryStory(3)
    await withRegistryRig(now, async (rig) => void (await rig.sync({ root })), { instead: told })
    return undefined
  }
  const seed = name === 'begun' ? 1 : 7
  const paths = ['supply/current_pit', 'addresses/active_count_pit', 'indicators/asol_pit']
  const selection =
    name === 'begun' ? { ...keptSelection, paths, since: parseInstant('2026-08-01') as number } : keptSelection
  await withProviderOf(seed, { now }, async ({ metrics }) => {
    await fetchOnce({ root, url: metrics, now: () => now }, selection)
  })
  return [selection, seed]
}

/** Points that the lakes hold otherwise than the provider shows them now: a rewrite was refused. */
const rewritten = /active_count_pit ETH .* 1709078400 /

describe('L6: a lake of layout', () => {
  test.each(sample(keptLakes(), keptLakes().length))(
    '%s opens and says what it said, also when its ledger is made anew',
    async (kept) => {
      const told = frozen(kept)
      await withKept(kept, async (root) => {
        const all = { ...questions, ...ledgerQuestions }
        await reading(root, (ledger) =>
          expect(ledger.head()).toMatchObject({
            lake: told.lake,
            version: told.version,
            committed_at: told.committed_at,
          }),
        )
        expect(await ask(root, all)).toEqual(told.asked)
        if (told.earlier) expect(await ask(root, questions, told.earlier.at)).toEqual(told.earlier.asked)
        expect(await damage(root, told.committed_at / 1e6)).toEqual([])
        expect(await damage(root, told.committed_at / 1e6, { rebuildLedger: true })).toEqual([])
        expect(await ask(root, all)).toEqual(told.asked)
      })
    },
  )

  test.each(sample(keptLakes().toReversed(), 2))(
    '%s is topped up, merged and vacuumed, and forgets nothing',
    async (kept) => {
      const name = kept.split('/')[1] ?? ''
      const told = frozen(kept)
      await withKept(kept, async (root, home) => {
        const now = Math.max(Math.ceil(told.committed_at / 1e6), begun) + 8 * day
        expect(await replayed(root, home)).toEqual(results(home).map(() => true))
        const shown = await topUp(name, root, now)
        const grown = await ask(root, questions)
        expect(grown['points']?.rows ?? 0).toBeGreaterThan(name === 'registry' ? -1 : (told.asked['points']?.rows ?? 0))
        expect(grown['history.products']?.rows).toBe(
          (told.asked['history.products']?.rows ?? 0) + (name === 'registry' ? 1 : 0),
        )
        const then = async (): Promise<void> => {
          const held = Object.fromEntries(Object.keys(questions).map((key) => [key, told.asked[key]]))
          expect(await ask(root, questions, told.committed_at)).toEqual(held)
          if (told.earlier) expect(await ask(root, questions, told.earlier.at)).toEqual(told.earlier.asked)
        }
        await then()
        if (shown) {
          const known = (lines: readonly string[]): string[] => lines.filter((line) => !rewritten.test(line))
          expect(known(await storedPoints(root))).toEqual(known(truthOf(shown[0], now, shown[1])))
        }
        await compact(root, world(now + 60))
        expect(await ask(root, questions)).toEqual(grown)
        await then()
        const deps = { ...world(now + 120), buildViews: makeViewsOf }
        const freed = await vacuum({ root, keepSeconds: 0, really: true }, deps)
        expect(freed.data.files).toBeGreaterThan(0)
        expect(await ask(root, questions)).toEqual(grown)
        await then()
        expect(await replayed(root, home)).toEqual(results(home).map(() => true))
        expect(await damage(root, now + 180)).toEqual([])
      })
    },
  )
})

test('lakes of every kind are kept of each layout', () => {
  const names = ['begun', 'plain', 'redated', 'registry', 'stamped', 'vacuumed']
  expect(keptLakes().filter((kept) => kept.startsWith('1/'))).toEqual(names.map((one) => `1/${one}`))
  expect(keptLakes().filter((kept) => kept.startsWith('2/'))).toEqual(names.slice(1).map((one) => `2/${one}`))
})
