import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestLake } from './lakes/lake-recipe.ts'

/** Makes a temporary folder; whoever makes it removes it. */
export function makeFolder(name: string): string {
  return realpathSync(mkdtempSync(join(tmpdir(), `pitlake-${name}-`)))
}

/** Removes a folder and everything in it; none there is fine. */
export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true })
}

/** A folder that is gone at the end of the block that uses it. */
export function temporaryFolder(name: string): Disposable & { readonly path: string } {
  const path = makeFolder(name)
  return { path, [Symbol.dispose]: () => removeFolder(path) }
}

/** Runs the work with a folder that is removed afterwards. */
export async function inFolder(work: (root: string) => Promise<void>): Promise<void> {
  using folder = temporaryFolder('test')
  await work(folder.path)
}

/** A folder with a place for a lake in it, which is empty yet. */
export function testFolder(name: string): TestLake {
  const home = makeFolder(name)
  const remove = (): void => removeFolder(home)
  return { home, root: join(home, 'lake'), remove, [Symbol.dispose]: remove }
}
