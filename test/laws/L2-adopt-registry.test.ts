// @module-tag full
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bytesOf, data, doctor, lose, state } from '../helpers/adopting.ts'
import { answer, questions, registryStory, withPreset } from '../helpers/lakes/written-by-jobs.ts'
import { withRegistryRig } from '../helpers/registry-rig.ts'
import { makeViews, withViews } from '../helpers/views.ts'

const day = 86_400
const start = 1_709_272_800

test('the registry goes on with a snapshot in a new epoch, and what that shows is inferred', async () => {
  let told = registryStory(0).answer
  await withRegistryRig(
    start,
    async ({ root, clock, snapshot, sync }) => {
      await snapshot()
      for (const chapter of [1, 2]) {
        clock.now += day
        told = registryStory(chapter).answer
        await sync()
      }
      const before = await state(root)
      await makeViews(root)
      const ask = async () => await withViews(root, async (engine) => await answer(engine, questions))
      const history = await ask()
      lose(root)
      expect((await doctor(root, clock.now)).findings).toEqual([])
      expect(await ask()).toEqual(history)
      const { cursor, ...rest } = await state(root)
      expect({ ...rest, cursor: before['cursor'] }).toEqual(before)
      expect(cursor).toBe('\uFFFD')
      clock.now += day
      told = registryStory(3).answer
      const next = await sync()
      expect(next).toMatchObject({ source: 'snapshot', opened: 1, closed: 0, new_epoch: true })
      await makeViews(root)
      const [p21] = await withViews(
        root,
        async (engine) => await engine.rows(`SELECT inferred FROM history.products WHERE id = 'p21'`),
      )
      expect(p21?.['inferred']).toBe(true)
      expect(await sync()).toMatchObject({ source: null, opened: 0 })
    },
    { instead: (request) => told(request) },
  )
})

const missing: readonly (readonly [string, RegExp])[] = [
  ['history.products', /the history leads to \d+ products on .*, the snapshot had \d+/],
  ['products/snapshot_date', /the base .* of products on .* is missing/],
  ['snapshots', /no snapshot is left|the snapshot that made .* is missing/],
]

test.each(missing)('a registry of which %s lacks a file is moved whole, the points stay', (place, why) =>
  withPreset('both', async (root, _home, facts) => {
    lose(root)
    const [lost = ''] = data(root).filter((path) => path.startsWith(`registry/${place}`))
    rmSync(join(root, lost))
    writeFileSync(join(root, 'registry/notes.txt'), 'mine')
    const bytes = bytesOf(root)
    const { mended, findings } = await doctor(root, facts.committed_at / 1e6 + day)
    expect([findings, mended.find((line) => line.startsWith('the registry'))]).toEqual([[], expect.stringMatching(why)])
    expect(data(root).filter((path) => path.startsWith('registry/'))).toEqual(['registry/notes.txt'])
    expect(bytesOf(root)).toEqual(bytes)
    expect(Object.values(await state(root)).filter((value) => value !== undefined)).toEqual([])
    const told = facts.asked['points']
    const { points = '' } = questions
    expect(await withViews(root, async (engine) => await answer(engine, { points }))).toEqual({ points: told })
  }),
)

test('a lake of which nothing holds together is left as it is', () =>
  withPreset('registry', async (root) => {
    lose(root)
    for (const path of data(root).filter((one) => one.startsWith('registry/snapshots'))) rmSync(join(root, path))
    const before = data(root)
    await expect(doctor(root, start + 900 * day)).rejects.toThrow('--repair')
    expect(data(root)).toEqual(before)
  }))
