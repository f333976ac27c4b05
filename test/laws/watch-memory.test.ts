// @module-tag named
import { expect, test } from 'vitest'
import { withRig } from '../helpers/fetching.ts'
import type { Holds, Life } from '../helpers/lives.ts'
import { begun, type Soak } from '../helpers/soaking.ts'
import { begin } from '../helpers/watching.ts'

const day = 86_400
const days = 7

/**
 * Lets a watch run until an instant; what it held within the day before it, looked at hourly once garbage was gone: of
 * the machine's memory at most, of its own values at least, since what is kept for good is in the least of them.
 */
async function held({ lives }: Soak, life: Life, until: number): Promise<Pick<Holds, 'resident' | 'used'>> {
  while (lives.now < until) {
    await lives.quiet()
    expect(life.code, life.said()).toBe(undefined)
    lives.pass(until)
  }
  const looks = life.holds.filter(({ at }) => at >= until - day)
  expect(looks.length).toBeGreaterThan(20)
  return {
    resident: Math.max(...looks.map(({ resident }) => resident)),
    used: Math.min(...looks.map(({ used }) => used)),
  }
}

test(
  'after seven simulated days a watch holds at most a tenth more than on the first',
  () =>
    withRig(begin, async (rig) => {
      const soak = await begun(rig)
      using _ = soak.lives
      const life = soak.run(['watch'], ['--expose-gc'])
      const first = await held(soak, life, begin + day)
      const last = await held(soak, life, begin + days * day)
      process.stderr.write(`day 1 and day ${days}, MB: ${JSON.stringify({ first, last })}\n`)
      expect(last.resident).toBeLessThanOrEqual(1.1 * first.resident)
      expect(last.used).toBeLessThanOrEqual(1.1 * first.used)
    }),
  3_000_000,
)
