import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'

/** A folder for the tests of a file, there before the first of them and gone after the last. */
export function scratch(name: string): string {
  const folder = join(tmpdir(), `pitlake-${name}-${randomUUID().slice(0, 8)}`)
  beforeAll(() => void mkdirSync(folder, { mode: 0o700 }))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
