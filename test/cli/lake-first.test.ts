import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { inFolder } from '../helpers/folders.ts'
import { type Otherwise, providerKeys, withForeign } from '../helpers/preflight.ts'

const scripts = fileURLToPath(new URL('../../scripts/', import.meta.url))

/** A checkout of its own: `make lake` writes a configuration into the root. */
function checkoutIn(folder: string): string {
  mkdirSync(join(folder, 'scripts'))
  copyFileSync(join(scripts, 'lake.sh'), join(folder, 'scripts/lake.sh'))
  for (const name of ['launch.cjs', 'fixed-node.cjs', 'data-folder.ts'])
    symlinkSync(join(scripts, name), join(folder, 'scripts', name))
  return join(folder, 'scripts/lake.sh')
}

/** What `make lake` runs, with this provider in the environment and a folder of its own for the lake. */
async function makeLake(script: string, data: string, url: string, more: Readonly<Record<string, string>>) {
  const { PATH = '', HOME = '' } = process.env
  const env = {
    PATH,
    HOME,
    PITLAKE_DATA: data,
    PITLAKE_METRICS_URL: url,
    PITLAKE_METRICS_KEY: providerKeys.metrics,
    ...more,
  }
  return await new Promise<{ code: number; out: string; err: string }>((done) =>
    execFile(script, { env }, (error, out, err) => done({ code: Number(error?.code ?? 0), out, err })),
  )
}

const sunday: Otherwise = { dialect: ['week=sunday'], options: { now: () => Date.now() / 1000 } }

test('the first fetch from a real provider starts with a preflight, and a contradiction ends it before a point is stored', async () =>
  withForeign(sunday, async ({ url, requests }) =>
    inFolder(async (cwd) => {
      const data = join(cwd, 'lake')
      const script = checkoutIn(cwd)
      const stopped = await makeLake(script, data, url, {})
      expect([stopped.code, stopped.out]).toEqual([4, expect.stringMatching(/week_start: sunday\n$/)])
      expect(stopped.err).toMatch(
        /1 assumption contradicted: .*\nNothing was asked beyond that.*make lake PREFLIGHT=0\n$/,
      )
      expect(requests().length).toBeLessThanOrEqual(10)
      expect(existsSync(data)).toBe(false)
      const before = requests().length
      const past = await makeLake(script, data, url, { PREFLIGHT: '0' })
      // Nothing is selected here: a configuration that works is written, and fetched within its budget.
      expect([past.code, past.err]).toEqual([0, expect.stringMatching(/wrote pitlake\.yaml/)])
      expect(past.out).not.toContain('another-provider.md')
      expect(requests().length).toBeGreaterThan(before)
    }),
  ))
