import { totalmem } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { LakeError, usage } from '../../base/errors.ts'
import { mega, sizeText } from '../../base/option-kinds.ts'

/** Memory of Node, the program and the engine before any data are loaded. */
const beside = 208 * mega
/** Minimum memory with which an engine can work. */
export const leastMemory: number = 384 * mega
/**
 * Ratio of the memory that an engine takes to the memory that it counts; the rest is the allocator's, footers, and
 * texts in transit.
 */
const uncounted = 1.4

let keptBytes: number | undefined

/** Returns the default memory limit of a process on a machine with `machine` bytes. */
export function usualMemory(machine: number): number {
  return Math.max(machine / 4, 512 * mega)
}

/** Sets the memory limit of this process; `subject` names its origin in errors. */
export function keepMemory(bytes: number, subject: string): void {
  requireMemory(leastMemory, bytes, subject)
  keptBytes = bytes
}

/** Refuses work that needs more memory than is available. */
export function requireMemory(needed: number, available: number, subject: string): void {
  if (available < needed) throw usage(subject, { expected: `at least ${sizeText(needed)}`, got: sizeText(available) })
}

/** Returns the memory limit of the process, in bytes. */
export function keptMemory(): number {
  return keptBytes ?? usualMemory(totalmem())
}

/**
 * Computes the memory limit of the process with which an engine that now may count `has` bytes may count `needs`,
 * rounded up.
 */
export function memoryWith(has: number, needs: number): number {
  return Math.ceil((beside + ((keptMemory() - beside) * needs) / has) / 64 / mega) * 64 * mega
}

/**
 * Returns the memory limit of an engine in DuckDB's spelling: a part of what all engines of the process may take
 * together.
 */
export function engineMemory(part = 1, bytes = keptMemory()): string {
  return `${Math.floor(((bytes - beside) / uncounted / mega) * part)}MiB`
}

/**
 * First words of errors of the engine and of Node for a lack of memory, or of disk space for data that do not fit into
 * memory.
 */
const lacksMemory = /^(?:\w+ Error: )?(?:Out of Memory Error: |std::bad_alloc|Array buffer allocation failed)/
const lacksDisk =
  /^Out of Memory Error: [^]*max_temp_directory_size|^IO Error: [^]*(?:No space left on device|Disk quota exceeded)/

/** Returns the resource that an error of the engine or of Node reports as lacking; undefined for any other error. */
export function lackIn(error: unknown): 'memory' | 'disk' | undefined {
  const words = error instanceof Error ? error.message : ''
  if (lacksDisk.test(words)) return 'disk'
  return lacksMemory.test(words) ? 'memory' : undefined
}

/**
 * Builds the error for a query that needs more memory or disk than it may take, with the option to raise; without the
 * engine's own words, which advise settings that are locked. Undefined for any other cause.
 */
export function tooLarge(cause: unknown, doing: string, option = '--memory'): LakeError | undefined {
  return lackError(cause, doing, (more) => `query less data at once, or ${more}`, option)
}

/** Builds the same error for a job, of which a user cannot ask less. */
export function jobTooLarge(cause: unknown, doing: string): LakeError | undefined {
  return lackError(cause, doing, (more) => `${more}, then run the same command again`)
}

function lackError(cause: unknown, doing: string, advice: (more: string) => string, option = '--memory') {
  const lack = lackIn(cause)
  if (lack === undefined) return undefined
  const more = lack === 'disk' ? 'leave it more of the disk' : `raise it: ${option} ${sizeText(2 * keptMemory())}`
  return new LakeError('incomplete', {
    subject: `${doing}: more ${lack} than it may take`,
    next: advice(more),
    cause,
  })
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (how: { readonly type: 'minor' | 'major' }) => void
/** Makes V8 collect recent garbage. */
export const collectYoung = (): void => collect({ type: 'minor' })
/**
 * Makes V8 collect all garbage, with what outlived two small collections; handles do if many texts are created, too.
 */
export const collectAll = (): void => collect({ type: 'major' })

/** DuckDB settings that return freed memory earlier than by default (128 MB). Below 32 MB this costs speed. */
export const leanSettings: Readonly<Record<string, string>> = {
  allocator_flush_threshold: '32MB',
  allocator_bulk_deallocation_flush_threshold: '32MB',
  allocator_background_threads: 'true',
}
