import { readdirSync, readFileSync, mkdirSync, mkdtempSync, renameSync, rmdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { z } from 'zod'
import { type Complaint, LakeError } from '../base/errors.ts'
import { assemble } from './assemble.ts'
import type { Catalogue } from './catalogue.ts'
import { describeIssues, readYaml, utf8Text, type YamlText } from './document.ts'
import { readSettingsFile } from './user-file.ts'
import { catalogueFile, type SourceFile } from './schema.ts'
import { wireOf } from './wire.ts'
import { createHash } from 'node:crypto'
import { getCompileCacheDir } from 'node:module'
import { isDeepStrictEqual } from 'node:util'

/** The built-in catalogue's folder: next to `src` in the repository, next to `dist` in the package. */
const builtinFolder = fileURLToPath(new URL('../../catalog/', import.meta.url))

/**
 * Reads the built-in catalogue, the user's files and texts that are no files yet; every problem of all of them in one
 * LakeError.
 */
export function loadCatalogue(
  userFiles: readonly string[] = [],
  folder: string = builtinFolder,
  unwritten: readonly { name: string; text: string }[] = [],
): Catalogue {
  const builtin = readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .toSorted()
  const texts = [
    ...builtin.map((name) => ({
      name: `catalog/${name}`,
      text: readFileSync(join(folder, name), 'utf8'),
      shipped: true,
    })),
    ...userFiles.map((file) => ({ name: file, text: readUserFile(file) })),
    ...unwritten,
  ]
  return parseCatalogue(texts)
}

/** Builds a catalogue from the texts of its files; pure. */
export function parseCatalogue(texts: readonly { name: string; text: string; shipped?: boolean }[]): Catalogue {
  const complaints: Complaint[] = []
  const files: SourceFile[] = []
  for (const { name, text, shipped = false } of texts) {
    const yaml = shipped ? readShipped(name, text) : readYaml(name, text)
    complaints.push(...yaml.complaints)
    if (yaml.complaints.length > 0) continue
    const parsed = catalogueFile.safeParse(yaml.value ?? {})
    if (!parsed.success) complaints.push(...describeIssues(yaml, parsed.error.issues, catalogueFile))
    const rest = parsed.success
      ? { content: parsed.data, row: (_: string, i: number) => i }
      : salvage(yaml.value, parsed.error.issues)
    if (rest) files.push({ yaml, ...rest })
  }
  const digest = createHash('sha256')
  for (const { name, text } of texts) digest.update(`${basename(name)}\0${text}\0`)
  const assembled = assemble(files, complaints)
  const wire = wireOf(files.flatMap(({ content }) => content.wire ?? []))
  if (!wire) complaints.push({ subject: 'catalog/wire.yaml', expected: 'the key `wire`, whole', got: 'less' })
  if (!wire || complaints.length > 0) throw new LakeError('usage', complaints)
  return { ...assembled, wire, digest: digest.digest('hex') }
}

/**
 * Returns the file without the top-level keys or rows that contain a problem, so that the rest can still be checked.
 */
function salvage(value: unknown, issues: readonly z.core.$ZodIssue[]): Omit<SourceFile, 'yaml'> | undefined {
  const copy = structuredClone(value) as Record<string, unknown>
  for (const { path, ...issue } of issues) {
    const [key, row] = path
    const list = key === undefined ? undefined : copy[String(key)]
    if (issue.code === 'unrecognized_keys' && path.length === 0) for (const unknown of issue.keys) delete copy[unknown]
    else if (typeof row === 'number' && Array.isArray(list)) list[row] = undefined
    else if (key !== undefined) delete copy[String(key)]
  }
  const keptLines = new Map<string, readonly number[]>()
  for (const [key, list] of Object.entries(copy)) {
    if (!Array.isArray(list)) continue
    keptLines.set(
      key,
      [...list.keys()].filter((i) => list[i] !== undefined),
    )
    copy[key] = list.filter((row) => row !== undefined)
  }
  const content = catalogueFile.safeParse(copy).data
  return content && { content, row: (key, i) => keptLines.get(key)?.[i] ?? i }
}

function readUserFile(file: string): string {
  return utf8Text(file, readSettingsFile(file, file, 'a readable catalogue file'))
}

/** A parsed text: its value, and the line of each value by its path as JSON. */
interface Remembered {
  readonly value: unknown
  readonly lines: Readonly<Record<string, number>>
}

/** Version of the cache format; raised with every change to it. */
const shape = 1

/**
 * Reads a YAML text that ships with the program through a cache, because parsing takes most of the time of a short
 * command. The parsed value is cached by the digest of the text, with a digest of its own, in Node's compile cache
 * folder; without that folder nothing is cached.
 */
function readShipped(name: string, text: string): YamlText {
  const folder = getCompileCacheDir()
  if (folder === undefined) return readYaml(name, text)
  const file = join(folder, 'pitlake', `${digestOf(`${shape}\0${text}`)}.json`)
  const remembered = recall(file)
  if (remembered) return fromMemory(name, text, remembered)
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

/** Reads a cached value; undefined if the file is missing or its bytes have changed. */
function recall(file: string): Remembered | undefined {
  let content: string
  try {
    content = readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
  const [digest = '', text = ''] = content.split('\n')
  return digest === digestOf(text) ? (JSON.parse(text) as Remembered) : undefined
}

/** Caches a value if JSON can represent all of it; a folder that cannot be written is not an error. */
function keep(file: string, { name, value, where }: YamlText): void {
  const lines = Object.fromEntries(
    pathsOf(value).map((path) => [JSON.stringify(path), Number(where(path).slice(name.length + 1))]),
  )
  const text = JSON.stringify({ value, lines } satisfies Remembered)
  if (!isDeepStrictEqual((JSON.parse(text) as Remembered).value, value)) return
  try {
    mkdirSync(join(file, '..'), { recursive: true })
    const temporaryFolder = mkdtempSync(`${file}-`)
    writeFileSync(join(temporaryFolder, 'text'), `${digestOf(text)}\n${text}`)
    renameSync(join(temporaryFolder, 'text'), file)
    rmdirSync(temporaryFolder)
  } catch {}
}

/** Lists the paths of all values inside a value. */
function pathsOf(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  const below = Array.isArray(value)
    ? value.flatMap((item, i) => pathsOf(item, [...path, i]))
    : Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, key]))
  return path.length === 0 ? below : [path, ...below]
}
