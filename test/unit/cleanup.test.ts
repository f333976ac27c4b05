import { expect, test } from 'vitest'
import { withCleanup } from '../../src/base/cleanup.ts'

const fails = (words: string) => async (): Promise<never> => await Promise.reject(new Error(words))

test('an error of the work is reported, even if the cleanup fails, too', async () => {
  await expect(withCleanup(fails('full disk'), fails('no transaction'))).rejects.toThrow('full disk')
})

test('an error of the cleanup after sound work is reported', async () => {
  await expect(withCleanup(async () => 1, fails('left over'))).rejects.toThrow('left over')
})

test('the cleanup runs once, after work that ends and after work that fails', async () => {
  let cleanups = 0
  const cleanUp = (): void => void cleanups++
  expect(await withCleanup(async () => cleanups, cleanUp)).toBe(0)
  expect(cleanups).toBe(1)
  await expect(withCleanup(fails('no'), cleanUp)).rejects.toThrow('no')
  expect(cleanups).toBe(2)
})
