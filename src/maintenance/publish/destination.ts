import { dirname, join, resolve } from 'node:path'
import { LakeError, usage } from '../../base/errors.ts'
import type { AskingDeps } from '../../sources/http/connection.ts'
import { codeOf, type Disk, entriesIn, liesIn, makeFolder, statOf } from '../../lake/store/disk.ts'
import { copy, readBytes } from '../../lake/store/files.ts'
import { inLake } from '../../lake/store/layout.ts'
import type { Instant } from '../../base/time.ts'

/** A file of a destination. */
export interface Published {
  /** Relative to the destination, with `/`. */
  readonly path: string
  readonly bytes: number
  readonly modified: Instant
}

/** Destination of published tables: a folder or a bucket. Paths are relative to it, with `/`. */
export interface Destination {
  /** Address that people see and readers open; it never contains a key. */
  readonly uri: string
  /** Reads the bytes of a small file; undefined if there is none. */
  read(path: string): Promise<Buffer | undefined>
  /** Downloads a file of any size to this machine; false if there is none. */
  get(path: string, file: string): Promise<boolean>
  /** Lists every file below a folder at any depth, in any order; none if there is no folder. */
  list(folder: string): Promise<readonly Published[]>
  /** Creates a file with these bytes, whole and durable, or leaves an existing file of the name as it is. */
  create(path: string, body: Buffer | string): Promise<'created' | 'exists'>
  /**
   * Uploads a local file, whole and durable, under a name that no other writer uses; the local one may be gone then.
   */
  put(path: string, file: string): Promise<void>
  /** Writes a file that is only a hint to readers, whole, over any file of the name. */
  replace(path: string, body: Buffer | string): Promise<void>
  /** Removes a file; one that is not there is fine. */
  remove(path: string): Promise<void>
}

/** Dependencies of opening a destination. */
export interface DestinationDeps {
  readonly disk: Disk
  /** Part of the names of files in transfer; no other process uses it. */
  readonly mark: string
  /** Folder in which relative paths begin; the process's working directory by default. */
  readonly cwd?: string
  /** Left out where only folders can be meant. */
  readonly web?: Web
}

/** Dependencies of requests to a bucket. */
export interface Web extends Pick<AskingDeps, 'now' | 'wait' | 'random' | 'signal' | 'proxy'> {
  /** Environment with keys, region and address, as AWS's own programs read them. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Whether a place is a folder of this machine. */
export function isLocal({ uri }: Destination): boolean {
  return !uri.includes('://')
}

/** Refuses to copy between a folder and itself, or one in the other. */
export function requireApart(root: string, place: Destination, what: string): void {
  if (!isLocal(place) || !(liesIn(root, place.uri) || liesIn(place.uri, root))) return
  throw usage(`${what} ${place.uri}`, { expected: 'a folder apart from the lake', got: `one with or in ${root}` })
}

/** Returns a folder of a place as a separate place. */
export function below(place: Destination, folder: string): Destination {
  const at = (path: string): string => (path === '' ? folder : `${folder}/${path}`)
  return {
    uri: `${place.uri}/${folder}`,
    read: async (path) => await place.read(at(path)),
    get: async (path, file) => await place.get(at(path), file),
    list: async (path) =>
      (await place.list(at(path))).map((file) => ({ ...file, path: file.path.slice(folder.length + 1) })),
    create: async (path, body) => await place.create(at(path), body),
    put: async (path, file) => await place.put(at(path), file),
    replace: async (path, body) => await place.replace(at(path), body),
    remove: async (path) => await place.remove(at(path)),
  }
}

/** Stops copying to or from a place if the user interrupted it. */
export function stopAt(signal: AbortSignal, subject: string): void {
  if (!signal.aborted) return
  const next = 'run the same command again: what has come is kept'
  throw new LakeError('stopped', { subject, got: 'an interrupt', next })
}

/** Prefix of the names of files in transfer: readers pass over them, `--vacuum` removes those that a kill left. */
export const onTheWay = '.tmp-'

/** Opens a folder of this machine, or of anything mounted there. */
export function folderAt(text: string, { disk, mark, cwd = '.' }: DestinationDeps): Destination {
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

/** Awaits the reading of a file; undefined if the file was removed since it was looked at. */
async function unlessGone<T>(path: string, reading: Promise<T>): Promise<T | undefined> {
  return await reading.catch(async (error: unknown) => {
    if (await statOf(path)) throw error
    return undefined
  })
}

/** Renames a file if one disk has both paths, else copies it. */
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
