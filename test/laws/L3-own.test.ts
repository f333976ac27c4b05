import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'
import { mortal } from '../helpers/mortal-steps.ts'
import { rounds } from '../helpers/tiers.ts'

const kills = rounds('PITLAKE_KILLS', 1, 4)

const days = Array.from({ length: 20 }, (_, n) => new Date(Date.UTC(2024, 2, 1 + n)).toISOString().slice(0, 10))
const textOf = (more: number): string => {
  const rows = ['A', 'B', 'C'].flatMap((asset) => days.map((t, n) => `${asset},${t},${n},${n % 3 === 0 ? more : 0}`))
  return `asset,t,value,late\n${rows.join('\n')}\n`
}

/**
 * What is imported: plain values; bars whose parts have clocks of their own, all there already when some are revised.
 */
const imports: Readonly<Record<string, readonly [mapping: readonly string[], revised: boolean]>> = {
  'plain values': [[], false],
  'revised bars': [['--components', 'value,late', '--available', 'value=start', '--revisable'], true],
}

for (const [name, [mapping, revised]] of Object.entries(imports))
  test(`killed at a step of an import, and then again: the content is what an undisturbed one gives, ${name}`, async () => {
    await withDesk(async (desk) => {
      const mapped = [join(desk.folder, 'p.csv'), '--as', 'p', '--interval', '24h', ...mapping]
      // Known is what nobody dated from when it was observed.
      const told = `SELECT * EXCLUDE (observed_at) REPLACE (CASE WHEN basis <> 'observed' THEN available_at END AS available_at) FROM`
      const content = async (): Promise<string> => {
        const all = ['points', 'components', 'vintages'].map(
          async (view) => await desk.rows(`${told} ${view} ORDER BY ALL`),
        )
        return JSON.stringify(await Promise.all(all), (key, one: unknown) =>
          key === 'previous_available_at' ? '' : typeof one === 'bigint' ? `${one}n` : one,
        )
      }
      const begin = async (): Promise<void> => {
        rmSync(join(desk.folder, 'lake'), { recursive: true, force: true })
        desk.put('p.csv', textOf(0))
        if (!revised) return
        await desk.take(mapped, '2026-05-01T12:00:00Z')
        desk.put('p.csv', textOf(7))
      }
      await begin()
      await desk.take(mapped)
      const whole = await content()
      for (let n = 0; n < kills; n++) {
        await begin()
        const step = 3 + Math.floor((n * 22) / kills)
        const argv = ['import', ...mapped, '--data', join(desk.folder, 'lake')]
        expect(await mortal('pitlake', argv, step), `step ${step}`).toBeNull()
        expect((await desk.take(mapped, '2027-06-01T12:00:00Z')).message).toBe('')
        expect(await content()).toBe(whole)
        expect((await desk.run(['doctor'], '2027-06-02T12:00:00Z')).code).toBe(0)
      }
    })
  })
