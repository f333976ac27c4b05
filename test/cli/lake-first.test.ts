import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { inFolder } from '../helpers/lakes.ts'
import { type Otherwise, providerKeys, withForeign } from '../helpers/preflight.ts'

const script = fileURLToPath(new URL('../../scripts/lake.sh', import.meta.url))

/** What `make lake` runs, with this provider in the environment and a folder of its own for the lake. */
async function makeLake(data: string, url: string, more: Readonly<Record<string, string>>) {
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

test('a real provider is asked first, and a contradiction ends it before anything is stored', async () =>
  withForeign(sunday, async ({ url, requests }) =>
    inFolder(async (cwd) => {
      const data = join(cwd, 'lake')
      const stopped = await makeLake(data, url, {})
      expect([stopped.code, stopped.out]).toEqual([4, expect.stringMatching(/week_start: sunday\n$/)])
      expect(stopped.err).toMatch(
        /1 assumption contradicted: .*\nNothing was asked beyond that.*make lake PREFLIGHT=0\n$/,
      )
      expect(requests().length).toBeLessThanOrEqual(10)
      expect(existsSync(data)).toBe(false)
      const before = requests().length
      const past = await makeLake(data, url, { PREFLIGHT: '0' })
      // Nothing is selected here: the plan says so, which is what comes next.
      expect([past.code, past.err]).toEqual([2, expect.stringMatching(/nothing is selected/)])
      expect(past.out).not.toContain('assumptions.md')
      expect(requests()).toHaveLength(before)
    }),
  ))
