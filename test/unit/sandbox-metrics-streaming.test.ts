import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { streamPoints } from '../../src/sandbox/metrics-body.ts'
import { ask, at } from './sandbox-metrics-ask.ts'

/** A full collection, so that what is measured is held and not merely not yet swept. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

describe('streaming', () => {
  const far = { now: () => at('2052-01-01'), computedAt: true }

  test('two million points come in chunks, in bounded memory', async () => {
    const body = ask('addresses/active_count_pit', { a: 'BTC', i: '10m' }, far).body
    if (!body) throw new Error('no body')
    let chunks = 0
    let bytes = 0
    let largest = 0
    let count = 0
    let held = 0
    collect()
    const before = process.memoryUsage().heapUsed
    for await (const chunk of body) {
      chunks++
      bytes += chunk.byteLength
      largest = Math.max(largest, chunk.byteLength)
      for (const byte of chunk) if (byte === 123) count++
      if (chunks % 400 === 0) {
        collect()
        held = Math.max(held, process.memoryUsage().heapUsed - before)
      }
    }
    expect(count).toBeGreaterThan(2_000_000)
    expect(largest).toBeLessThan(66 * 1024)
    expect(bytes / chunks).toBeGreaterThan(60 * 1024)
    expect(bytes).toBeGreaterThan(90e6)
    expect(chunks).toBeGreaterThan(1000)
    expect(held).toBeLessThan(4e6)
  }, 300_000)

  test('nothing is made before it is read, nor after the reader left', async () => {
    let made = 0
    function* endless() {
      for (let t = 0; ; t += 600) {
        made++
        yield { t, v: t / 7, computed_at: t + 900 }
      }
    }
    const body = streamPoints(endless(), { csv: false, humanized: false })
    expect(made).toBe(0)
    const reader = body.getReader()
    await reader.read()
    const afterOne = made
    expect(afterOne).toBeGreaterThan(500)
    expect(afterOne).toBeLessThan(3000)
    await reader.cancel()
    expect(made).toBe(afterOne)
  })
})
