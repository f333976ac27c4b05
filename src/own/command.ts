import type { Catalogue } from '../catalog/catalogue.ts'
import { mappingRow, type SourceMapping } from '../catalog/sources.ts'
import { usage } from '../errors.ts'
import type { JobDeps } from '../ledger/job.ts'
import { hint } from '../suggestion.ts'
import { type Taken, importOwn } from './import.ts'

type Texts = Exclude<keyof SourceMapping, 'components' | 'revisable' | 'available_at'> | 'as' | 'availableAt'

/** What a command line says of a mapping, by the names of its flags. */
type Said = Readonly<Partial<Record<Texts, string | undefined>>> & {
  readonly components?: readonly string[] | undefined
  readonly revisable?: boolean
}

/** What an import is told. */
export interface Asked {
  readonly root: string
  readonly files: readonly string[]
  readonly options: Said
  readonly catalogue: Catalogue
  readonly cwd: string
  readonly maxBytes: number
}

/** The mapping that flags say; what is wrong with it is told by the flag. */
function mappingOf({ availableAt: available_at, revisable, ...said }: Said): SourceMapping {
  const keys = Object.keys(mappingRow.shape)
  const all = { ...said, available_at, ...(revisable === true && { revisable }) }
  const own = Object.entries(all).filter(([key, value]) => value !== undefined && keys.includes(key))
  const read = mappingRow.safeParse(Object.fromEntries(own))
  if (read.success) return read.data
  const [issue] = read.error.issues
  const key = String(issue?.path[0] ?? '')
  const got = all[key as keyof typeof all]
  throw usage(`--${key.replace('_', '-')}`, { expected: issue?.message, got: String(got) })
}

/** Imports files under a name. */
export async function importNamed(asked: Asked, deps: JobDeps): Promise<Taken> {
  const mapping = mappingOf(asked.options)
  return await importOwn({ ...asked, name: asked.options.as ?? '', mapping, whole: false }, deps)
}

/** Imports what the catalogues map, all of it or what is named; one after the other, each by itself. */
export async function importSources(asked: Asked, deps: JobDeps): Promise<Taken[]> {
  const { catalogue, options } = asked
  const names = [...catalogue.sources.keys()]
  const chosen = options.as === undefined ? names : names.filter((name) => name === options.as)
  if (chosen.length === 0)
    throw usage(options.as === undefined ? 'import' : `--as ${options.as}`, {
      expected: names.length === 0 ? 'a file, or `sources:` in a catalogue' : `one of ${names.join(', ')}`,
      got: options.as ?? 'neither',
      next: options.as === undefined ? 'pitlake import FILE --as NAME' : hint(options.as, names),
    })
  const ended: Taken[] = []
  for (const name of chosen) {
    const found = catalogue.sources.get(name)
    if (!found) continue
    const { files, ...mapping } = found.source
    ended.push(await importOwn({ ...asked, name, files, mapping, whole: true }, deps))
  }
  return ended
}
