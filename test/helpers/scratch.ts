import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'

/** A folder for the tests of a file, there before the first of them and gone after the last. */
export function scratch(name: string, home = tmpdir()): string {
  const folder = join(home, `pitlake-${name}-${randomUUID().slice(0, 8)}`)
  beforeAll(() => void mkdirSync(folder, { mode: 0o700 }))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A folder for each test of a file, told to whoever takes it and gone after the test. */
export function freshFolder(name: string, take: (folder: string) => void): void {
  let folder = ''
  beforeEach(() => take((folder = mkdtempSync(join(tmpdir(), `pitlake-${name}-`)))))
  afterEach(() => rmSync(folder, { recursive: true, force: true }))
}
