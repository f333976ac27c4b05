import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Complaint, LakeError, usage } from '../errors.ts'
import { assemble, type SourceFile } from './assemble.ts'
import type { Catalogue } from './catalogue.ts'
import { describeIssues, readYaml } from './document.ts'
import { catalogueFile } from './schema.ts'

/** The built-in catalogue's folder: beside `src` in the repository, beside `dist` in the package. */
export const builtinFolder = fileURLToPath(new URL('../../catalog/', import.meta.url))

/** Reads the built-in catalogue and the user's files; every problem of all of them in one LakeError. */
export function loadCatalogue(userFiles: readonly string[] = [], folder: string = builtinFolder): Catalogue {
  const builtin = readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .toSorted()
  const texts = [
    ...builtin.map((name) => ({ name: `catalog/${name}`, text: readFileSync(join(folder, name), 'utf8') })),
    ...userFiles.map((file) => ({ name: file, text: readUserFile(file) })),
  ]
  return parseCatalogue(texts)
}

/** Builds a catalogue from the texts of its files; pure. */
export function parseCatalogue(texts: readonly { name: string; text: string }[]): Catalogue {
  const complaints: Complaint[] = []
  const files: SourceFile[] = []
  for (const { name, text } of texts) {
    const yaml = readYaml(name, text)
    complaints.push(...yaml.complaints)
    if (yaml.complaints.length > 0) continue
    const parsed = catalogueFile.safeParse(yaml.value ?? {})
    if (parsed.success) files.push({ yaml, content: parsed.data })
    else complaints.push(...describeIssues(yaml, parsed.error.issues, knownKeys))
  }
  const digest = createHash('sha256')
  for (const { name, text } of texts) digest.update(`${basename(name)}\0${text}\0`)
  const catalogue = assemble(files, digest.digest('hex'), complaints)
  if (complaints.length > 0) throw new LakeError('usage', complaints)
  return catalogue
}

function readUserFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw usage(file, {
      expected: 'a readable catalogue file',
      got: (cause as NodeJS.ErrnoException).code ?? String(cause),
      cause,
    })
  }
}

/** The keys that may stand at a path of a catalogue file, for suggestions. */
function knownKeys(path: readonly (string | number)[]): readonly string[] {
  const shape = catalogueFile.shape
  if (path.length === 0) return Object.keys(shape)
  if (path[0] === 'endpoints' && path.length === 2) return Object.keys(shape.endpoints.unwrap().element.shape)
  if (path[0] === 'availability' && path.length === 2) return Object.keys(shape.availability.unwrap().element.shape)
  return []
}
