import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where groups of processes are limited: version 2 of the kernel's interface, then version 1. */
const kinds = [
  { folder: '/sys/fs/cgroup', limit: 'memory.max' },
  { folder: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes' },
] as const

/** A group of processes of which the kernel ends one when all together need more memory. */
interface Group extends Disposable {
  /** What runs a command line within it. */
  readonly prefix: readonly string[]
}

/** A group that may hold so many bytes; undefined where none can be made. */
export function limitedGroup(bytes: number): Group | undefined {
  for (const { folder, limit } of kinds) {
    const own = join(folder, `pitlake-test-${randomUUID()}`)
    try {
      mkdirSync(own)
    } catch {
      continue
    }
    try {
      if (!existsSync(join(own, limit))) throw new Error('no limit')
      writeFileSync(join(own, limit), String(bytes))
      const prefix = ['sh', '-c', `echo $$ > ${own}/cgroup.procs && exec "$@"`, 'sh']
      return { prefix, [Symbol.dispose]: () => rmdirSync(own) }
    } catch {
      rmdirSync(own)
    }
  }
  return undefined
}
