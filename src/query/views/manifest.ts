import { z } from 'zod'
import { statOf, codeOf, type Disk, isReadable } from '../../lake/store/disk.ts'
import { textOf, linkAbove, readText } from '../../lake/store/files.ts'
import type { CompiledViews } from './compile.ts'
import { type Catalogue, isOwn } from '../../catalog/catalogue.ts'
import { exportCatalogue } from '../../catalog/export.ts'
import { jsonOf } from '../../base/json.ts'
import { sha256File } from '../../lake/ledger/commit.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import { textsIn } from '../../lake/store/sql.ts'

const names = z.array(z.string()).readonly()

const shape = z.object({
  schema_version: z.literal(2),
  lake: z.string().nullable(),
  version: z.number(),
  program: z.string(),
  templates: z.string(),
  catalogue: z.string(),
  runs: z.string(),
  folder: z.string(),
  script: z.string(),
  database: z.string(),
  objects: z.record(z.string(), names),
  tables: z.record(z.string(), names),
})

/**
 * Manifest of `lake.sql` and `lake.duckdb`, for the program to read: the version, their makers (`Makers`), the folder
 * they were made for (absolute), the tables that each object reads, the files of each table (relative to the lake), and
 * the SHA-256 of both texts, which shows that all three were made together.
 */
export type Manifest = Readonly<z.infer<typeof shape>>

/**
 * Reads the manifest of the views in a folder. Undefined if there is none, or one that is torn or of other views: then
 * it is unknown what the views name, and they are to be rebuilt.
 */
export async function readManifest(
  root: string,
  parts: readonly ('script' | 'database')[] = ['script', 'database'],
): Promise<Manifest | undefined> {
  const text = await textOf(inLake(root, places.manifest))
  const manifest = text === undefined ? undefined : shape.safeParse(jsonOf(text)).data
  for (const part of parts) {
    const path = inLake(root, places[part])
    if (!manifest || !(await statOf(path)) || (await sha256File(path)) !== manifest[part]) return undefined
  }
  return manifest
}

/** Facts by which views of one version may differ. */
export interface Makers {
  /** The program, as entries name it: `pitlake 0.1.0`. */
  readonly program: string
  /** Digest of the texts from which it makes views: two programs of one number may have different ones. */
  readonly templates: string
  /** Digest of the catalogue, without user data. */
  readonly catalogue: string
  /** Position up to which the files of runs had been read (`runsMark`). */
  readonly runs: string
}

/** Builds the manifest of views with these digests of their script and database. */
export function manifestOf(
  { root, lake, version, objects, tables }: CompiledViews,
  makers: Makers,
  script: string,
  database: string,
): Manifest {
  const reads = Object.fromEntries(objects.map((object) => [object.name, [...object.reads]]))
  return { schema_version: 2, lake, version, ...makers, folder: root, script, database, objects: reads, tables }
}

/** Whether a manifest names these makers. */
export function isMadeBy(manifest: Manifest, makers: Makers): boolean {
  return (['program', 'templates', 'catalogue', 'runs'] as const).every((key) => manifest[key] === makers[key])
}

let templates: string | undefined

/** Computes the digest of this program's texts of views, whatever is in their folder. */
export function templatesDigest(): string {
  templates ??= sha256(
    ['./', 'sql/', 'sql/parts/']
      .map((folder) => new URL(folder, import.meta.url))
      .flatMap((folder) => ['.sql', '.ts', '.js'].flatMap((ending) => textsIn(folder, ending)))
      .map(([file, text]) => `${file}\n${text}`)
      .join('\n'),
  )
  return templates
}

const digests = new WeakMap<Catalogue, string>()

/** Computes the digest of what views take from a catalogue; user data come from the lake's journal. */
export function catalogueDigest(catalogue: Catalogue): string {
  const knownDigest = digests.get(catalogue)
  if (knownDigest !== undefined) return knownDigest
  const endpoints = new Map([...catalogue.endpoints].filter(([, endpoint]) => !isOwn(endpoint)))
  const { resources, links, symbolVariants } = catalogue
  const digest = sha256(
    JSON.stringify([exportCatalogue({ ...catalogue, endpoints }), [...resources], links, symbolVariants]),
  )
  digests.set(catalogue, digest)
  return digest
}

/** Lists every file that the views of a manifest name, relative to the lake. */
function namedFiles({ objects, tables }: Manifest): ReadonlySet<string> {
  return new Set(Object.values(objects).flatMap((read) => read.flatMap((table) => tables[table] ?? [])))
}

/**
 * Tests whether the views in a folder name a file; if views exist and it is unknown what they name, each may be named.
 */
export async function namedByViews(root: string): Promise<(path: string) => boolean> {
  const manifest = await readManifest(root)
  const named = manifest && namedFiles(manifest)
  const stand = (await statOf(inLake(root, places.database))) ?? (await statOf(inLake(root, places.script)))
  return (path) => named?.has(path) ?? stand !== undefined
}

/** A file that the views read. */
interface ViewFile {
  readonly path: string
  /** Size; null for an export, whose name contains the checksum only. */
  readonly bytes: number | null
  /** The beginning of the SHA-256, hex. */
  readonly checksum: string
}

/** Path of the record of files that were proved in their place: not part of the lake, and rewritten with the views. */
const notes = `${places.exports}/proved.json`

/**
 * Lists the files that the views of a version read: data that the index names, and what is made for the views as far as
 * it is known.
 */
export function readByViews(ledger: Ledger, manifest: Manifest | undefined, version?: number): ViewFile[] {
  const listed = liveFiles(ledger, version === undefined ? {} : { version })
  const data = new Map(listed.map(({ path, bytes, sha256 }) => [path, { path, bytes, checksum: sha256 }]))
  return [...data.values(), ...(manifest ? exportsOf(manifest) : [])]
}

/** Lists the exports that views name; their names begin with the checksum of their bytes. */
export function exportsOf(manifest: Manifest): ViewFile[] {
  const named = [...namedFiles(manifest)].filter((path) => path.startsWith(`${places.exports}/`))
  return named.map((path) => ({ path, bytes: null, checksum: /-([0-9a-f]{16})-\d{10,}-/.exec(path)?.[1] ?? '' }))
}

/** State of a file by its entry in the folder alone. */
interface FileState {
  readonly size: number
  /** Text that changes when the file is replaced or written to, so that this is recognised without reading. */
  readonly fingerprint: string
}

/** Reads the state of a file; null if there is none. */
async function stateOf(root: string, path: string): Promise<FileState | 'denied' | null> {
  const facts = await statOf(inLake(root, path)).catch(deniedOnly)
  if (facts === undefined) return null
  if (facts === 'denied' || !isReadable(inLake(root, path))) return 'denied'
  const { ino, size, mtimeMs, ctimeMs } = facts
  return { size, fingerprint: `${ino} ${size} ${mtimeMs} ${ctimeMs}` }
}

function deniedOnly(error: unknown): 'denied' {
  if (codeOf(error) === 'EACCES') return 'denied'
  throw error
}

/** Proves what of these files is new or was touched since, and writes down those that are as they should be. */
export async function noteProved(root: string, files: readonly ViewFile[], disk: Disk, mark: string): Promise<void> {
  const before = await readNotes(root)
  const states = await Promise.all(files.map(async ({ path }) => await stateOf(root, path)))
  const proved: Record<string, string> = {}
  for (const [i, file] of files.entries()) {
    const now = states[i]
    const fingerprint = now === 'denied' ? undefined : now?.fingerprint
    if (fingerprint !== undefined && (before.get(file.path) === fingerprint || (await holds(root, file, fingerprint))))
      proved[file.path] = fingerprint
  }
  const text = JSON.stringify(proved)
  if (text === JSON.stringify(Object.fromEntries(before))) return
  const temporary = inLake(root, `${places.exports}/.tmp-${mark}-proved.json`)
  await disk.write(temporary, text)
  await disk.move(temporary, inLake(root, notes))
}

/** Whether a file has its bytes, and was not touched meanwhile. */
async function holds(root: string, { path, checksum }: ViewFile, fingerprint: string): Promise<boolean> {
  if (!(await sha256File(inLake(root, path))).startsWith(checksum)) return false
  const now = await stateOf(root, path)
  return now !== 'denied' && now?.fingerprint === fingerprint
}

/** A file that is not what it should be. */
interface ChangedFile extends ViewFile {
  readonly expected: string
  readonly got: string
}

/**
 * Finds the first of these files that differs from what was written. A file that was not touched since it was proved is
 * not read; of the others so many bytes are, beyond them sizes must do until views are made again.
 */
export async function firstChanged(
  root: string,
  files: readonly ViewFile[],
  most: number,
): Promise<ChangedFile | undefined> {
  const proved = await readNotes(root)
  const states = await Promise.all(files.map(async ({ path }) => await stateOf(root, path)))
  let bytesLeft = most
  for (const [i, file] of files.entries()) {
    const now = states[i]
    const origin = file.bytes === null ? 'made for the views' : 'committed'
    const wrong = (bytes: string, got: string): ChangedFile => ({
      ...file,
      expected: `the ${bytes} that were ${origin}`,
      got,
    })
    const link = linkAbove(root, file.path)
    if (link !== undefined) return wrong('file itself, in the lake', `a link at ${link}`)
    if (now === 'denied') return wrong('right to read the bytes', 'none')
    if (!now) {
      // Missing data are an error of the reader of them.
      if (file.bytes === null) return wrong('bytes', 'no such file')
      continue
    }
    if (file.bytes !== null && file.bytes !== now.size) return wrong(`${file.bytes} bytes`, `${now.size} bytes`)
    if (proved.get(file.path) === now.fingerprint || now.size > bytesLeft) continue
    bytesLeft -= now.size
    if (!(await sha256File(inLake(root, file.path))).startsWith(file.checksum)) return wrong('bytes', 'others')
  }
  return undefined
}

/** Reads the record of proved files; empty if it cannot be read. */
async function readNotes(root: string): Promise<Map<string, unknown>> {
  const notesJson = jsonOf(await readText(inLake(root, notes)).catch(() => ''))
  return new Map(Object.entries(notesJson ?? {}))
}
