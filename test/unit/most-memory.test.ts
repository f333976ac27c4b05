import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const peak = fileURLToPath(new URL('../bench/peak.ts', import.meta.url))

test('the memory of a process is measured without that of its parent', () => {
  const held = Buffer.alloc(400_000_000, 1)
  const done = spawnSync(process.execPath, [peak, '--version'], { encoding: 'utf8' })
  expect(held.at(-1)).toBe(1)
  const { megabytes } = JSON.parse(done.stdout.trim().split('\n').at(-1) ?? '') as { megabytes: number }
  expect(megabytes).toBeGreaterThan(20)
  expect(megabytes).toBeLessThan(300)
})
