// @module-tag alone
import { readdirSync } from 'node:fs'
import type * as promises from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import { putOut } from '../../src/lake/store/output.ts'
import { temporaryFolder } from '../helpers/folders.ts'

let said = ''
vi.mock('node:fs/promises', async (original) => ({
  ...(await original<typeof promises>()),
  writeFile: () => Promise.reject(Object.assign(new Error(said), { code: said })),
}))

test.each([
  ['ENOSPC', 6],
  ['EDQUOT', 6],
  ['EROFS', 6],
  ['EIO', 6],
  ['EACCES', 2],
  ['ENAMETOOLONG', 2],
])('a disk that says %s to what is written for the user ends with %i, and leaves nothing there', async (code, exit) => {
  said = code
  using homeFolder = temporaryFolder('output')
  const home = homeFolder.path
  const error: unknown = await putOut(join(home, 'page.html'), 'x', null, '--html').catch((caught: unknown) => caught)
  expect([exitCode(error), readdirSync(home)]).toEqual([exit, []])
})
