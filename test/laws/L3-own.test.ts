import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { times, turn } from '../helpers/shares.ts'

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const kills = times('PITLAKE_KILLS', 1, 4)

/** Imports in a process that dies before a step of the disk; whether it died. */
async function dies(desk: Desk, file: string, dieAt: number): Promise<boolean> {
  const argv = ['import', file, '--as', 'p', '--interval', '24h', '--data', join(desk.folder, 'lake')]
  const child = spawn(
    process.execPath,
    ['--import', path('../helpers/mortal.ts'), path('../../src/main.ts'), ...argv],
    { stdio: 'ignore', env: { ...process.env, DIE_AT: String(dieAt) } },
  )
  const [code] = (await once(child, 'close')) as [number | null]
  return code === null
}

test('killed at a step of an import, and then again: the content is what an undisturbed one gives', async () => {
  await withDesk(async (desk) => {
    const days = Array.from({ length: 20 }, (_, n) => new Date(Date.UTC(2024, 2, 1 + n)).toISOString().slice(0, 10))
    const rows = ['A', 'B', 'C'].flatMap((asset) => days.map((t, n) => `${asset},${t},${n}`))
    const file = desk.put('p.csv', `asset,t,value\n${rows.join('\n')}\n`)
    const content = async () =>
      await desk
        .rows('SELECT * EXCLUDE (observed_at) FROM points ORDER BY ALL')
        .then((all) => JSON.stringify(all, (_, one: unknown) => String(one)))
    await desk.take([file, '--as', 'p', '--interval', '24h'])
    const whole = await content()
    for (let n = 0; n < kills; n++) {
      rmSync(join(desk.folder, 'lake'), { recursive: true })
      const step = 3 + ((Math.floor((n * 22) / kills) + turn) % 22)
      expect(await dies(desk, file, step), `step ${step}`).toBe(true)
      expect((await desk.take([file, '--as', 'p', '--interval', '24h'], '2027-06-01T12:00:00Z')).message).toBe('')
      expect(await content()).toBe(whole)
      expect((await desk.run(['doctor'], '2027-06-02T12:00:00Z')).code).toBe(0)
    }
  })
})
