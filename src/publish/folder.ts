import { dirname, join, resolve } from 'node:path'
import { codeOf, type Disk, entriesIn, makeFolder, statOf } from '../store/disk.ts'
import { copy, readBytes } from '../store/files.ts'
import { inLake } from '../store/layout.ts'
import type { Destination, Published, Reach } from './destination.ts'

/** What the names of files on the way begin with: readers pass over them, `--vacuum` takes those away that a kill left. */
export const onTheWay = '.tmp-'

/** A folder of this machine, or of whatever is mounted there. */
export function folderAt(text: string, { disk, mark, cwd = '.' }: Reach): Destination {
  const root = resolve(cwd, text)
  const at = (path: string): string => inLake(root, path)
  let count = 0
  /** Makes the file under a passing name, hands it over for its final step and forces its name to the disk. */
  const place = async <T>(
    path: string,
    make: (temporary: string) => Promise<void>,
    step: (temporary: string, to: string) => Promise<T>,
  ): Promise<T> => {
    const to = at(path)
    const temporary = join(dirname(to), `${onTheWay}${mark}-${++count}`)
    await makeFolder(disk, dirname(to))
    try {
      await make(temporary)
      const done = await step(temporary, to)
      await disk.syncFolder(dirname(to))
      return done
    } catch (error) {
      await disk.remove(temporary).catch(() => undefined)
      throw error
    }
  }
  return {
    uri: root,
    read: async (path) =>
      (await statOf(at(path)))?.isFile() === true ? await unlessGone(at(path), readBytes(at(path))) : undefined,
    get: async (path, file) => {
      if ((await statOf(at(path)))?.isFile() !== true) return false
      const done = copy(at(path), file).then(() => true)
      return (await unlessGone(at(path), done)) ?? false
    },
    list: async (folder) => {
      const files: Published[] = []
      for await (const file of filesBelow(root, folder)) files.push(file)
      return files
    },
    create: async (path, body) =>
      await place(
        path,
        async (temporary) => await disk.write(temporary, body),
        async (temporary, to) => {
          if (await disk.claim(temporary, to)) return 'created'
          await disk.remove(temporary)
          return 'exists'
        },
      ),
    put: async (path, file) => {
      await disk.sync(file)
      await place(path, async (temporary) => await bring(disk, file, temporary), disk.move)
    },
    replace: async (path, body) => await place(path, async (temporary) => await disk.write(temporary, body), disk.move),
    remove: async (path) => await disk.remove(at(path)),
  }
}

/** What reading a file gives; undefined where somebody has taken it away since it was looked at. */
async function unlessGone<T>(path: string, reading: Promise<T>): Promise<T | undefined> {
  return await reading.catch(async (error: unknown) => {
    if (await statOf(path)) throw error
    return undefined
  })
}

/** A rename where one disk holds both, else a copy. */
async function bring(disk: Disk, file: string, temporary: string): Promise<void> {
  try {
    await disk.move(file, temporary)
  } catch (error) {
    if (codeOf(error) !== 'EXDEV') throw error
    await copy(file, temporary)
    await disk.sync(temporary)
  }
}

async function* filesBelow(root: string, folder: string): AsyncGenerator<Published> {
  for (const entry of await entriesIn(inLake(root, folder))) {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) yield* filesBelow(root, path)
    const facts = entry.isFile() ? await statOf(inLake(root, path)) : undefined
    if (facts) yield { path, bytes: facts.size, modified: Math.floor(facts.mtimeMs / 1000) }
  }
}
