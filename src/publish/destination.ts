import type { AskingDeps } from '../ledger/connection.ts'
import type { Instant } from '../time.ts'
import type { Disk } from '../store/disk.ts'

/** A file of a destination. */
export interface Published {
  /** Relative to the destination, with `/`. */
  readonly path: string
  readonly bytes: number
  readonly modified: Instant
}

/** Where tables are published: a folder or a bucket. Paths are relative to it, with `/`. */
export interface Destination {
  /** What a person is shown and readers open; never holds a key. */
  readonly uri: string
  /** The bytes of a small file; undefined where there is none. */
  read(path: string): Promise<Buffer | undefined>
  /** Brings a file of any size to this machine; false where there is none. */
  get(path: string, file: string): Promise<boolean>
  /** Every file below a folder at any depth, in any order; none where the folder is not there. */
  list(folder: string): Promise<readonly Published[]>
  /** Makes a file with these bytes, whole and durable, or leaves the one that bears the name as it is. */
  create(path: string, body: Buffer | string): Promise<'created' | 'exists'>
  /** Brings a local file there, whole and durable, under a name that nobody else uses; the local one may be gone then. */
  put(path: string, file: string): Promise<void>
  /** Writes a file that is only a hint to readers over whatever bears its name, whole. */
  replace(path: string, body: Buffer | string): Promise<void>
  /** Removes a file; one that is not there is fine. */
  remove(path: string): Promise<void>
}

/** What opening a destination needs of the world. */
export interface Reach {
  readonly disk: Disk
  /** Part of the names of what is on the way; no other process uses it. */
  readonly mark: string
  /** Where the path of a folder begins; the process's own folder where it is left out. */
  readonly cwd?: string
  /** Left out where only folders can be meant. */
  readonly web?: Web
}

/** What asking a bucket needs of the world. */
export interface Web extends Pick<AskingDeps, 'now' | 'wait' | 'random' | 'signal' | 'proxy'> {
  /** Where keys, region and address are said, as AWS's own programs read them. */
  readonly env: Readonly<Record<string, string | undefined>>
}
