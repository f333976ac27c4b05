// @module-tag full
// @module-tag slow
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { replay } from '../../src/trust/results/stamp.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import type { Ledger } from '../../src/lake/ledger/ledger.ts'
import { world } from '../helpers/adopting.ts'
import { fetchOnce, storedPoints, truthOf } from '../helpers/fetching.ts'
import {
  answer,
  type Answers,
  begun,
  ledgerQuestions,
  type PresetName,
  presetNames,
  presetSelection,
  questions,
  registryStory,
  withPreset,
  withProviderOf,
} from '../helpers/lakes/written-by-jobs.ts'
import { examined } from '../helpers/looking.ts'
import { withRegistryRig } from '../helpers/registry-rig.ts'
import { sample } from '../helpers/tiers.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { reading } from '../helpers/ledgers.ts'

const day = 86_400

/** The answers of now, or by what the lake held at an instant. */
async function ask(root: string, asked: typeof questions, at?: number): Promise<Answers> {
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

/** Brings a lake up to date by its own providers, some days later. */
async function topUp(name: PresetName, root: string, now: number): Promise<void> {
  if (hasRegistry(name)) {
    const { answer: told } = registryStory(3)
    await withRegistryRig(now, async (rig) => void (await rig.sync({ root })), { instead: told })
  }
  if (hasPoints(name))
    await withProviderOf(7, { now }, async ({ metrics }) => {
      await fetchOnce({ root, url: metrics, now: () => now }, presetSelection)
    })
}

const hasRegistry = (name: PresetName): boolean => name === 'registry' || name === 'both'
const hasPoints = (name: PresetName): boolean => name !== 'registry'

/** Points that the lakes hold otherwise than the provider shows them now: a rewrite was refused. */
const rewritten = /active_count_pit ETH .* 1709078400 /

describe('L6: the lake', () => {
  test.each(presetNames)(
    '%s answers from a copy and from a rebuilt ledger as it did when it was made',
    async (name) => {
      await withPreset(name, async (root, _home, told) => {
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

  test.each(sample(presetNames, 3))(
    '%s that is topped up, merged and vacuumed answers at its old version as before',
    async (name) => {
      await withPreset(name, async (root, home, told) => {
        const now = Math.max(Math.ceil(told.committed_at / 1e6), begun) + 8 * day
        expect(await replayed(root, home)).toEqual(results(home).map(() => true))
        await topUp(name, root, now)
        const grown = await ask(root, questions)
        expect(grown['points']?.rows ?? 0).toBeGreaterThan(hasPoints(name) ? (told.asked['points']?.rows ?? 0) : -1)
        expect(grown['history.products']?.rows).toBe(
          (told.asked['history.products']?.rows ?? 0) + (hasRegistry(name) ? 1 : 0),
        )
        const then = async (): Promise<void> => {
          const held = Object.fromEntries(Object.keys(questions).map((key) => [key, told.asked[key]]))
          expect(await ask(root, questions, told.committed_at)).toEqual(held)
          if (told.earlier) expect(await ask(root, questions, told.earlier.at)).toEqual(told.earlier.asked)
        }
        await then()
        if (hasPoints(name)) {
          const known = (lines: readonly string[]): string[] => lines.filter((line) => !rewritten.test(line))
          expect(known(await storedPoints(root))).toEqual(known(truthOf(presetSelection, now, 7)))
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
