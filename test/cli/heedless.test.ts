// @module-tag full
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compiled } from '../helpers/command.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { openTestLake } from '../helpers/lakes/make-lake.ts'

test('sql: a call that heeds neither cancel nor memory ends with the process, and leaves nothing', async () => {
  const { root: folder, remove } = await openTestLake(hundredFetchedDays)
  const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
  const temporary = join(folder, '..', 'tmp')
  mkdirSync(temporary)
  const call = async (...argv: readonly string[]): Promise<{ code: number; stderr: string }> =>
    await new Promise((done) => {
      const sql = `SELECT length(repeat('x', CAST(4e9 AS BIGINT)) || v) AS n FROM points`
      const env = { ...process.env, ...compiled, TMPDIR: temporary }
      execFile(process.execPath, [main, 'sql', '--data', folder, ...argv, sql], { env }, (error, _, stderr) =>
        done({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, stderr }),
      )
    })
  try {
    const out = join(folder, '..', 'out.csv')
    const slow = await call('--timeout', '1s', '--out', out)
    expect(slow).toMatchObject({ code: 5, stderr: expect.stringMatching(/did not end by itself|took longer than 1s/) })
    const large = await call('--memory', '384MB')
    expect(large).toMatchObject({ code: 5, stderr: expect.stringMatching(/more memory than it may/) })
    expect(readdirSync(temporary).filter((name) => name.startsWith('pitlake-'))).toEqual([])
    expect(readdirSync(join(folder, '..')).toSorted()).toEqual(['lake', 'tmp'])
  } finally {
    remove()
  }
})
