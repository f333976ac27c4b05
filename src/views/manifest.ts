import { z } from 'zod'
import { jsonOf } from '../json.ts'
import { sha256File } from '../ledger/commit.ts'
import { statOf } from '../store/disk.ts'
import { textOf } from '../store/files.ts'
import { inLake, places } from '../store/layout.ts'
import type { Statements } from './compile.ts'

const names = z.array(z.string()).readonly()

const shape = z.object({
  schema_version: z.literal(1),
  lake: z.string().nullable(),
  version: z.number(),
  folder: z.string(),
  script: z.string(),
  database: z.string(),
  objects: z.record(z.string(), names),
  tables: z.record(z.string(), names),
})

/**
 * What `lake.sql` and `lake.duckdb` say, for the program to read: the version, the folder that they were made for
 * (absolute), the tables that each object reads, the files of each table (relative to the lake), and the SHA-256 of both
 * texts, by which it is known that all three were made together.
 */
export type Manifest = Readonly<z.infer<typeof shape>>

/** Files of the views that a manifest is held against. */
type Part = 'script' | 'database'

/**
 * The manifest of the views in a folder. Undefined where none stands, or one that is torn or of other views: then nothing
 * is known of what the views name, and they are to be made anew.
 */
export async function readManifest(
  root: string,
  parts: readonly Part[] = ['script', 'database'],
): Promise<Manifest | undefined> {
  const text = await textOf(inLake(root, places.manifest))
  const manifest = text === undefined ? undefined : shape.safeParse(jsonOf(text)).data
  for (const part of parts) {
    const path = inLake(root, places[part])
    if (!manifest || !(await statOf(path)) || (await sha256File(path)) !== manifest[part]) return undefined
  }
  return manifest
}

/** The manifest of views with these digests of their script and database. */
export function manifestOf(
  { root, lake, version, objects, tables }: Statements,
  script: string,
  database: string,
): Manifest {
  const reads = Object.fromEntries(objects.map((object) => [object.name, [...object.reads]]))
  return { schema_version: 1, lake, version, folder: root, script, database, objects: reads, tables }
}

/** Every file that the views of a manifest name, relative to the lake. */
export function namedFiles({ objects, tables }: Manifest): ReadonlySet<string> {
  return new Set(Object.values(objects).flatMap((read) => read.flatMap((table) => tables[table] ?? [])))
}

/** Whether the views in a folder name a file; where views stand and it is not known what they name, each may be named. */
export async function namedByViews(root: string): Promise<(path: string) => boolean> {
  const manifest = await readManifest(root)
  const named = manifest && namedFiles(manifest)
  const stand = (await statOf(inLake(root, places.database))) ?? (await statOf(inLake(root, places.script)))
  return (path) => named?.has(path) ?? stand !== undefined
}
