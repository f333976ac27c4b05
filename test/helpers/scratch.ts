import { randomUUID } from 'node:crypto'
import { mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { makeFolder, removeFolder } from './folders.ts'

/** A folder for the tests of a file, there before the first of them and gone after the last. */
export function scratch(name: string, home = tmpdir()): string {
  const folder = join(realpathSync(home), `pitlake-${name}-${randomUUID().slice(0, 8)}`)
  beforeAll(() => void mkdirSync(folder, { mode: 0o700 }))
  afterAll(() => removeFolder(folder))
  return folder
}

/** A folder for each test of a file, handed to `take` before the test and gone after it. */
export function freshFolder(name: string, take: (folder: string) => void): void {
  let folder = ''
  beforeEach(() => take((folder = makeFolder(name))))
  afterEach(() => removeFolder(folder))
}
