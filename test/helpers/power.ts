import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'

/** Thrown at the step at which the power goes. */
export class PowerCut extends Error {}

/** A disk that knows what it has really got, and loses its power before one of its steps. */
export interface PowerDisk extends Disk {
  /** How many steps it has taken. */
  readonly steps: () => number
  /** What is found of a folder after the cut: names and contents that nobody forced to the disk are gone. */
  readonly survivors: (root: string, into: string) => void
}

/**
 * The real disk, with a model of what a power cut leaves at worst: of a folder the names that it had when it was last
 * synced, of a file its bytes if they were synced, else none. A folder that was never synced is as it was at the start.
 */
export function powerDisk(dieAt: number = Number.POSITIVE_INFINITY): PowerDisk {
  const names = new Map<string, Set<string>>()
  const forced = new Set<string>()
  let taken = 0
  const step = (): void => {
    if (++taken >= dieAt) throw new PowerCut(`before step ${taken}`)
  }
  const identity = (path: string): string => {
    const { ino, size } = statSync(path)
    return `${ino} ${size}`
  }
  const around =
    <A extends unknown[], T>(act: (...args: A) => Promise<T>, after: (...args: A) => void = () => undefined) =>
    async (...args: A): Promise<T> => {
      step()
      const result = await act(...args)
      after(...args)
      return result
    }
  const force = (path: string): void => void forced.add(identity(path))
  const survivors = (from: string, into: string): void => {
    mkdirSync(into, { recursive: true })
    const kept = names.get(from)
    for (const entry of readdirSync(from, { withFileTypes: true })) {
      if (kept?.has(entry.name) !== true) continue
      const path = join(from, entry.name)
      const copy = join(into, entry.name)
      if (entry.isDirectory()) survivors(path, copy)
      else if (forced.has(identity(path))) cpSync(path, copy)
      else writeFileSync(copy, readFileSync(path).subarray(0, 0))
    }
  }
  return {
    sync: around(realDisk.sync, force),
    syncFolder: around(realDisk.syncFolder, (path) => void names.set(path, new Set(readdirSync(path)))),
    move: around(realDisk.move),
    write: around(realDisk.write, force),
    claim: around(realDisk.claim),
    append: around(realDisk.append, force),
    remove: around(realDisk.remove),
    steps: () => taken,
    survivors: (root, into) => {
      if (names.get(dirname(root))?.has(root.slice(dirname(root).length + 1)) === true) survivors(root, into)
      else mkdirSync(into, { recursive: true })
    },
  }
}
