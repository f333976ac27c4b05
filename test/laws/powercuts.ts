import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'

/*
 * What a power cut may leave of a folder. A job runs on a disk that is looked at before and after each of its steps:
 * whatever changed is written down as events, what our own steps force to the disk too. A cut behind the n-th event
 * then leaves every content that was forced, and of what came after it nothing, all, a beginning, or some of its
 * blocks; every name of a folder that was forced, and of the changes after it any. What SQLite writes is taken by its
 * own promise.
 */

/** A file whatever its name, or the word `folder`. */
type File = string

/** Something that happened to the disk, in the order in which it did. */
type Event =
  | { readonly kind: 'bytes'; readonly file: File; readonly bytes: Buffer }
  | { readonly kind: 'forced'; readonly file: File }
  | { readonly kind: 'names'; readonly changes: readonly Change[]; readonly rename: boolean }
  | { readonly kind: 'names forced'; readonly folder: string }
  | { readonly kind: 'index'; readonly path: string; readonly database: Buffer | null; readonly log: Buffer | null }
  | { readonly kind: 'told'; readonly version: number }

/** A name of a folder leads elsewhere from now on; null: it is gone. */
interface Change {
  readonly folder: string
  readonly name: string
  readonly to: File | null
}

/** What is found after a cut: the files by path, null for a folder, and the version that had been told. */
export interface Found {
  readonly files: ReadonlyMap<string, Buffer | null>
  readonly told: number
  readonly after: string
}

/** A disk whose every step is written down. */
export interface Recorder {
  readonly disk: Disk
  /** Notes what changed outside of the disk's own steps, and what the job has told. */
  readonly told: (version: number) => void
  /** How many cuts there may be: one behind each event. */
  readonly events: () => number
  /** One of the states that a cut may leave; one in four comes right after something was told. */
  readonly cut: (random: () => number) => Found
}

const block = 4096
const isIndex = (name: string): boolean => /\.sqlite(?:-wal|-shm|-journal)?$/.test(name)

/** Watches everything below a folder, as it stands now and is safe on the disk. */
export function recorder(base: string): Recorder {
  const events: Event[] = []
  const state = new Scan(base)
  const begin = state.look()
  const look = (rename = false): void => {
    const { bytes, changes, indexes } = state.look()
    for (const [file, content] of bytes) events.push({ kind: 'bytes', file, bytes: content })
    if (changes.length > 0) events.push({ kind: 'names', changes, rename })
    for (const index of indexes) events.push({ kind: 'index', ...index })
  }
  const step =
    <A extends unknown[], R>(act: (...args: A) => Promise<R>, forced?: (...args: A) => Event, rename = false) =>
    async (...args: A): Promise<R> => {
      look()
      const result = await act(...args)
      look(rename)
      if (forced) events.push(forced(...args))
      return result
    }
  const file = (path: string): Event => ({ kind: 'forced', file: state.fileAt(path) })
  const disk: Disk = {
    sync: step(realDisk.sync, file),
    syncFolder: step(realDisk.syncFolder, (folder) => ({ kind: 'names forced', folder })),
    move: step(realDisk.move, undefined, true),
    write: step(realDisk.write, file),
    claim: step(realDisk.claim),
    append: step(realDisk.append, file),
    remove: step(realDisk.remove),
  }
  return {
    disk,
    told: (version) => {
      look()
      events.push({ kind: 'told', version })
    },
    events: () => events.length,
    cut: (random) => {
      const told = events.flatMap(({ kind }, i) => (kind === 'told' ? [i + 1] : []))
      const places = random() < 0.25 ? told : events.map((_, i) => i + 1)
      return new Cut(base, begin, random).behind(events.slice(0, places[Math.floor(random() * places.length)]))
    },
  }
}

interface Look {
  readonly bytes: readonly (readonly [File, Buffer])[]
  readonly changes: readonly Change[]
  readonly indexes: readonly { readonly path: string; readonly database: Buffer | null; readonly log: Buffer | null }[]
}

/** A folder as it was last looked at. */
class Scan {
  readonly #base: string
  #names = new Map<string, File>()
  readonly #standing = new Map<File, string>()
  #indexes = new Map<string, string>()
  readonly #contents = new Map<File, Buffer>()

  constructor(base: string) {
    this.#base = base
  }

  fileAt(path: string): File {
    const { ino, birthtimeMs } = lstatSync(path)
    return `${ino} ${birthtimeMs}`
  }

  look(): Look {
    const names = new Map<string, File>()
    const bytes: [File, Buffer][] = []
    const indexes = new Map<string, string>()
    const visit = (folder: string): void => {
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name)
        if (entry.isDirectory()) {
          names.set(path, 'folder')
          visit(path)
          continue
        }
        const { size, mtimeMs, ctimeMs } = lstatSync(path)
        const file = this.fileAt(path)
        const standing = `${size} ${mtimeMs} ${ctimeMs}`
        if (isIndex(entry.name)) {
          const own = join(folder, entry.name.replace(/-(?:wal|shm|journal)$/, ''))
          if (!/-(?:shm|journal)$/.test(entry.name)) indexes.set(own, `${indexes.get(own) ?? ''} ${file} ${standing}`)
          continue
        }
        names.set(path, file)
        // The time of a file's last change is coarse: young ones are read again.
        if (this.#standing.get(file) === standing && Date.now() - mtimeMs > 50) continue
        const content = readFileSync(path)
        this.#standing.set(file, standing)
        if (this.#contents.get(file)?.equals(content) === true) continue
        this.#contents.set(file, content)
        bytes.push([file, content])
      }
    }
    visit(this.#base)
    const changes: Change[] = []
    for (const [path, to] of names) if (this.#names.get(path) !== to) changes.push(changeOf(path, to))
    for (const path of this.#names.keys()) if (!names.has(path)) changes.push(changeOf(path, null))
    const moved = [...new Set([...indexes.keys(), ...this.#indexes.keys()])]
      .filter((path) => indexes.get(path) !== this.#indexes.get(path))
      .map((path) => ({ path, database: contentOf(path), log: contentOf(`${path}-wal`) }))
    this.#names = names
    this.#indexes = indexes
    return { bytes, changes, indexes: moved }
  }
}

const changeOf = (path: string, to: Change['to']): Change => ({ folder: dirname(path), name: basename(path), to })

function contentOf(path: string): Buffer | null {
  try {
    return readFileSync(path)
  } catch {
    return null
  }
}

interface Index {
  readonly database: Buffer | null
  readonly log: Buffer | null
}

/** One cut: what was safe by then, and a drawn choice among all that was on its way. */
class Cut {
  readonly #base: string
  readonly #random: () => number
  /** How much of what was not forced survives: nothing, all, or a draw for each. */
  readonly #mood: 'nothing' | 'all' | 'some'
  readonly #safe = new Map<File, Buffer>()
  readonly #now = new Map<File, Buffer>()
  readonly #names = new Map<string, Map<string, File>>()
  readonly #pending = new Map<string, (Change & { readonly partner: Change | undefined })[]>()
  readonly #indexes = new Map<string, { readonly before: Index; readonly now: Index }>()
  #told = 0

  constructor(base: string, begin: Look, random: () => number) {
    this.#base = base
    this.#random = random
    const drawn = random()
    this.#mood = drawn < 0.15 ? 'nothing' : drawn < 0.25 ? 'all' : 'some'
    for (const [file, bytes] of begin.bytes) {
      this.#safe.set(file, bytes)
      this.#now.set(file, bytes)
    }
    for (const change of begin.changes) this.#apply(change)
    for (const { path, ...index } of begin.indexes) this.#indexes.set(path, { before: index, now: index })
  }

  behind(events: readonly Event[]): Found {
    for (const event of events) this.#take(event)
    for (const [folder, changes] of this.#pending)
      for (const change of changes) if (this.#survives()) this.#applyInTurn(folder, change)
    const files = new Map<string, Buffer | null>()
    this.#collect(this.#base, files)
    for (const [path, index] of this.#indexes)
      if (files.has(dirname(path)) || dirname(path) === this.#base) this.#restore(path, index, files)
    const last = events.at(-1)
    return { files, told: this.#told, after: `${events.length}: ${last?.kind ?? 'nothing'} (${this.#mood})` }
  }

  #take(event: Event): void {
    switch (event.kind) {
      case 'bytes':
        return void this.#now.set(event.file, event.bytes)
      case 'forced':
        return void this.#safe.set(event.file, this.#now.get(event.file) ?? Buffer.alloc(0))
      case 'names':
        for (const change of event.changes) {
          const partner = event.rename && change.to === null ? event.changes.find(({ to }) => to !== null) : undefined
          const own = this.#pending.get(change.folder) ?? []
          this.#pending.set(change.folder, [...own, { ...change, partner }])
        }
        return
      case 'names forced':
        for (const change of this.#pending.get(event.folder) ?? []) this.#applyInTurn(event.folder, change)
        return void this.#pending.delete(event.folder)
      case 'index':
        return void this.#indexes.set(event.path, {
          before: this.#indexes.get(event.path)?.now ?? { database: null, log: null },
          now: { database: event.database, log: event.log },
        })
      case 'told':
        this.#told = event.version
    }
  }

  #survives(): boolean {
    return this.#mood === 'all' || (this.#mood === 'some' && this.#random() < 0.5)
  }

  /** The old name of what was renamed goes only when the new one is there: no file system loses both. */
  #applyInTurn(folder: string, change: Change & { readonly partner: Change | undefined }): void {
    const { partner } = change
    if (partner && this.#names.get(partner.folder)?.get(partner.name) !== partner.to) {
      if (partner.folder !== folder) return
      this.#apply(partner)
    }
    this.#apply(change)
  }

  #apply({ folder, name, to }: Change): void {
    const own = this.#names.get(folder) ?? new Map<string, File>()
    this.#names.set(folder, own)
    if (to === null) own.delete(name)
    else own.set(name, to)
  }

  #collect(folder: string, files: Map<string, Buffer | null>): void {
    for (const [name, to] of this.#names.get(folder) ?? []) {
      const path = join(folder, name)
      if (to !== 'folder') files.set(path, this.#contentOf(to))
      else {
        files.set(path, null)
        this.#collect(path, files)
      }
    }
  }

  #contentOf(file: File): Buffer {
    const now = this.#now.get(file) ?? Buffer.alloc(0)
    const safe = this.#safe.get(file)
    if (safe === now || (safe && safe.equals(now))) return safe
    if (this.#mood !== 'some') return this.#mood === 'all' ? now : (safe ?? Buffer.alloc(0))
    return this.#torn(safe ?? Buffer.alloc(0), now)
  }

  /** Lost, whole, cut at any byte, or some of the blocks; what was never written reads as zeros. */
  #torn(before: Buffer, now: Buffer): Buffer {
    const drawn = this.#random()
    if (drawn < 0.25) return before
    if (drawn < 0.5) return now
    if (drawn < 0.75) {
      // What was added to a file takes nothing away that was forced before it.
      const least = now.subarray(0, before.length).equals(before) ? before.length : 0
      return now.subarray(0, least + Math.floor(this.#random() * (now.length - least + 1)))
    }
    const mixed = Buffer.alloc(this.#random() < 0.5 ? now.length : before.length)
    before.copy(mixed)
    for (let at = 0; at < mixed.length; at += block)
      if (this.#random() < 0.5) now.subarray(at, at + block).copy(mixed, at)
    return mixed
  }

  /**
   * An index in WAL mode: its file changes by checkpoints only, each of which forces the log first and the file after
   * it. So the file is as it was last seen, and of the log any beginning is left; or, between the two, blocks of both
   * files with the whole log.
   */
  #restore(
    path: string,
    { before, now }: { readonly before: Index; readonly now: Index },
    files: Map<string, Buffer | null>,
  ): void {
    const put = ({ database, log }: Index): void => {
      if (database) files.set(path, database)
      if (database && log) files.set(`${path}-wal`, log)
    }
    const drawn = this.#mood === 'some' ? this.#random() : 0
    // Its name is as little forced as any other.
    if (before.database === null && (drawn > 0.6 || this.#mood === 'nothing')) return
    const changed = before.database !== null && now.database?.equals(before.database) === false
    if (changed && drawn > 0.6) return put(before)
    if (changed && drawn > 0.3 && before.database && now.database && goesOn(before.log, now.log))
      return put({ database: mix(before.database, now.database, this.#random), log: now.log })
    const none = Buffer.alloc(0)
    const left = { nothing: null, all: now.log, some: now.log && this.#torn(none, now.log) }
    put({ database: now.database, log: left[this.#mood] })
  }
}

/** Whether a log holds all that it held before: it was not begun anew. */
function goesOn(before: Buffer | null, now: Buffer | null): boolean {
  if (!before || !now || now.length < before.length) return false
  return before.subarray(0, 32).equals(now.subarray(0, 32))
}

function mix(before: Buffer, now: Buffer, random: () => number): Buffer {
  const mixed = Buffer.from(now)
  for (let at = 0; at < Math.min(before.length, now.length); at += block)
    if (random() < 0.5) before.subarray(at, Math.min(at + block, now.length)).copy(mixed, at)
  return mixed
}

/** Puts what was found in the place of a folder. */
export function putBack(base: string, { files }: Found): void {
  rmSync(base, { recursive: true, force: true })
  mkdirSync(base, { recursive: true })
  for (const [path, bytes] of files) {
    mkdirSync(bytes === null ? path : dirname(path), { recursive: true })
    if (bytes !== null) writeFileSync(path, bytes)
  }
}
