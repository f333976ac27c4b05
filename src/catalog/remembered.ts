import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { readYaml, type YamlText } from './document.ts'

/** What a text says and where: the line of each value by its path as JSON. */
interface Remembered {
  readonly value: unknown
  readonly lines: Readonly<Record<string, number>>
}

/** Raised when what is kept of a text becomes another. */
const shape = 1

/**
 * A text that comes with the program, read once for all runs: parsing takes most of the time of a short command. What it
 * says is kept by its digest, with a digest of its own, beside what the program's modules were compiled to, and nowhere
 * where these are not kept.
 */
export function readShipped(name: string, text: string): YamlText {
  const folder = getCompileCacheDir()
  if (folder === undefined) return readYaml(name, text)
  const file = join(folder, 'pitlake', `${digestOf(`${shape}\0${text}`)}.json`)
  const kept = recall(file)
  if (kept) return fromMemory(name, text, kept)
  const read = readYaml(name, text)
  if (read.complaints.length === 0) keep(file, read)
  return read
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function fromMemory(name: string, text: string, { value, lines }: Remembered): YamlText {
  const lineOf = (path: readonly (string | number)[]): number =>
    lines[JSON.stringify(path)] ?? (path.length === 0 ? 1 : lineOf(path.slice(0, -1)))
  return {
    name,
    value,
    complaints: [],
    where: (path) => `${name}:${lineOf(path)}`,
    written: (path) => readYaml(name, text).written(path),
  }
}

/** A file that is not there, or holds other bytes than were written, is none. */
function recall(file: string): Remembered | undefined {
  let kept: string
  try {
    kept = readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
  const [digest = '', text = ''] = kept.split('\n')
  return digest === digestOf(text) ? (JSON.parse(text) as Remembered) : undefined
}

/** Keeps what can be kept whole; a folder that cannot be written is no reason to stop. */
function keep(file: string, { name, value, where }: YamlText): void {
  const lines = Object.fromEntries(
    pathsOf(value).map((path) => [JSON.stringify(path), Number(where(path).slice(name.length + 1))]),
  )
  const text = JSON.stringify({ value, lines } satisfies Remembered)
  if (!isDeepStrictEqual((JSON.parse(text) as Remembered).value, value)) return
  try {
    mkdirSync(join(file, '..'), { recursive: true })
    const own = mkdtempSync(`${file}-`)
    writeFileSync(join(own, 'text'), `${digestOf(text)}\n${text}`)
    renameSync(join(own, 'text'), file)
    rmdirSync(own)
  } catch {}
}

/** The paths of everything that a value holds. */
function pathsOf(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  const below = Array.isArray(value)
    ? value.flatMap((item, i) => pathsOf(item, [...path, i]))
    : Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, key]))
  return path.length === 0 ? below : [path, ...below]
}
