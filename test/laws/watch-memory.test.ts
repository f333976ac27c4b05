import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const soak = fileURLToPath(new URL('../helpers/soak.ts', import.meta.url))
const days = 7

test('after seven simulated days a watch holds at most a tenth more than after the first', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', soak, String(days)])
  const told = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly day: number; readonly resident: number })
  expect(told.map(({ day }) => day)).toEqual(Array.from({ length: days }, (_, i) => i + 1))
  expect(told.at(-1)?.resident).toBeLessThanOrEqual(1.1 * (told[0]?.resident ?? 0))
}, 3_000_000)
