import { join } from 'node:path'
import { entriesIn, statOf } from '../../lake/store/disk.ts'
import { usage } from '../../base/errors.ts'
import { isResearchFile } from './research-items.ts'

/** Folders without research: packages, environments, caches, and all that begin with a dot. */
const passedOver = /^(?:\..*|node_modules|__pycache__|venv|site-packages)$/

/**
 * Finds the files that were named, and those in folders that were, each once and in order; folders are searched to
 * their end.
 */
export async function findResearchFiles(named: readonly string[], at: (path: string) => string): Promise<string[]> {
  const found = new Set<string>()
  for (const path of named) {
    const status = await statOf(at(path))
    if (status === undefined)
      throw usage(path, { expected: 'a file or a folder with queries', got: 'no such file', next: 'name another' })
    if (status.isDirectory()) for (const file of await filesBelow(path, at)) found.add(file)
    else found.add(path)
  }
  return [...found]
}

/** Lists the files below a folder. Links are not followed: one may lead back to its own folder. */
async function filesBelow(folder: string, at: (path: string) => string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await entriesIn(at(folder))) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && !passedOver.test(entry.name)) found.push(...(await filesBelow(path, at)))
    else if (entry.isFile() && isResearchFile(entry.name)) found.push(path)
  }
  return found
}
