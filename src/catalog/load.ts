import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { z } from 'zod'
import { type Complaint, LakeError, unreadable } from '../errors.ts'
import { assemble } from './assemble.ts'
import type { Catalogue } from './catalogue.ts'
import { describeIssues, readYaml, utf8Text } from './document.ts'
import { readShipped } from './remembered.ts'
import { catalogueFile, type SourceFile } from './schema.ts'
import { wireOf } from './wire.ts'

/** The built-in catalogue's folder: beside `src` in the repository, beside `dist` in the package. */
export const builtinFolder = fileURLToPath(new URL('../../catalog/', import.meta.url))

/** Reads the built-in catalogue, the user's files and texts that are no files yet; every problem of all of them in one LakeError. */
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

/** The file without the top-level keys or rows that hold a problem, so that the rest can still be checked. */
function salvage(value: unknown, issues: readonly z.core.$ZodIssue[]): Omit<SourceFile, 'yaml'> | undefined {
  const copy = structuredClone(value) as Record<string, unknown>
  for (const { path, ...issue } of issues) {
    const [key, row] = path
    const list = key === undefined ? undefined : copy[String(key)]
    if (issue.code === 'unrecognized_keys' && path.length === 0) for (const unknown of issue.keys) delete copy[unknown]
    else if (typeof row === 'number' && Array.isArray(list)) list[row] = undefined
    else if (key !== undefined) delete copy[String(key)]
  }
  const kept = new Map<string, readonly number[]>()
  for (const [key, list] of Object.entries(copy)) {
    if (!Array.isArray(list)) continue
    kept.set(
      key,
      [...list.keys()].filter((i) => list[i] !== undefined),
    )
    copy[key] = list.filter((row) => row !== undefined)
  }
  const content = catalogueFile.safeParse(copy).data
  return content && { content, row: (key, i) => kept.get(key)?.[i] ?? i }
}

function readUserFile(file: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch (cause) {
    throw unreadable(file, 'a readable catalogue file', cause)
  }
  return utf8Text(file, bytes)
}
