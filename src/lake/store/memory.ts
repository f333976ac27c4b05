import { totalmem } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { LakeError, usage } from '../../base/errors.ts'
import { mega, sizeText } from '../../base/option-kinds.ts'

/** What Node, the program and the engine hold before there are any data. */
const beside = 208 * mega
/** With less no engine has room to work. */
export const leastMemory: number = 384 * mega
/** How much more than it counts an engine takes: what the allocator keeps, footers, texts on their way. */
const uncounted = 1.4

let keptBytes: number | undefined

/** What a process keeps to where nobody says, of a machine with so many bytes. */
export function usualMemory(machine: number): number {
  return Math.max(machine / 4, 512 * mega)
}

/** From here on this process keeps to so many bytes; `subject` is what named them. */
export function keepMemory(bytes: number, subject: string): void {
  requireMemory(leastMemory, bytes, subject)
  keptBytes = bytes
}

/** Refuses to begin what needs more memory than it may take. */
export function requireMemory(needed: number, available: number, subject: string): void {
  if (available < needed) throw usage(subject, { expected: `at least ${sizeText(needed)}`, got: sizeText(available) })
}

/** How many bytes the process keeps to. */
export function keptMemory(): number {
  return keptBytes ?? usualMemory(totalmem())
}

/**
 * What the process has to keep to so that an engine that may count so many bytes may count as many as it needs, rounded
 * up.
 */
export function memoryWith(has: number, needs: number): number {
  return Math.ceil((beside + ((keptMemory() - beside) * needs) / has) / 64 / mega) * 64 * mega
}

/** What an engine may count, as DuckDB spells it: a part of what all engines of the process may take together. */
export function engineMemory(part = 1, bytes = keptMemory()): string {
  return `${Math.floor(((bytes - beside) / uncounted / mega) * part)}MiB`
}

/** How the engine and Node begin to say that memory, or the disk for what does not fit into it, did not suffice. */
const lacksMemory = /^(?:\w+ Error: )?(?:Out of Memory Error: |std::bad_alloc|Array buffer allocation failed)/
const lacksDisk =
  /^Out of Memory Error: [^]*max_temp_directory_size|^IO Error: [^]*(?:No space left on device|Disk quota exceeded)/

/** What an error of the engine or of Node lacked; undefined for any other error. */
export function lackIn(error: unknown): 'memory' | 'disk' | undefined {
  const words = error instanceof Error ? error.message : ''
  if (lacksDisk.test(words)) return 'disk'
  return lacksMemory.test(words) ? 'memory' : undefined
}

/**
 * The refusal of what needs more memory, or disk, than it may take: words that say what to raise, without those of the
 * engine, which advise settings that are locked. Undefined for any other cause.
 */
export function tooLarge(cause: unknown, doing: string, option = '--memory'): LakeError | undefined {
  const lack = lackIn(cause)
  if (lack === undefined) return undefined
  const raise = lack === 'disk' ? 'leave it more of the disk' : `raise it: ${option} ${sizeText(2 * keptMemory())}`
  return new LakeError('incomplete', {
    subject: `${doing}: more ${lack} than it may take`,
    next: `ask for less at once, or ${raise}`,
    cause,
  })
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (how: { readonly type: 'minor' | 'major' }) => void
/** Has V8 collect what was made lately. */
export const collectYoung = (): void => collect({ type: 'minor' })
/**
 * Has V8 collect all that nobody holds: what outlived two small collections, as handles do where many texts are made,
 * too.
 */
export const collectAll = (): void => collect({ type: 'major' })

/** By default 128 MB: what was freed below that stays with the process. Below 32 MB giving back costs speed. */
export const leanSettings: Readonly<Record<string, string>> = {
  allocator_flush_threshold: '32MB',
  allocator_bulk_deallocation_flush_threshold: '32MB',
  allocator_background_threads: 'true',
}
