import { expect, test } from 'vitest'
import { stopwatch } from '../../src/base/stopwatch.ts'

test('simultaneous work counts once, for the step nearest to the end', async () => {
  let now = 500
  const { during, spent } = stopwatch(() => now)
  let answer = (): void => undefined
  const asked = during('asking', () => new Promise<void>((resolve) => (answer = resolve)))
  now += 1_000
  await during('writing', async () => {
    now += 300
    await during('reading', async () => void (now += 40))
  })
  now += 200
  answer()
  await asked
  now += 60
  const none = { views: 0, committing: 0, proving: 0, reading: 0, waiting: 0 }
  expect(spent()).toEqual({ ...none, asking: 1.2, writing: 0.34, other: 0.56 })
  expect(Object.values(spent()).reduce((sum, seconds) => sum + seconds, 0)).toBeCloseTo(now / 1000, 6)
})

test('work that fails leaves its part', async () => {
  let now = 0
  const { during, spent } = stopwatch(() => now)
  const failed = during('reading', async () => {
    now += 10
    return await Promise.reject(new Error('torn'))
  })
  await expect(failed).rejects.toThrow('torn')
  now += 10
  expect(spent()).toMatchObject({ reading: 0.01, other: 0.01 })
})
