import { several } from '../../base/figures.ts'
import { type LakeError, usage } from '../../base/errors.ts'
import type { Interval } from '../../base/time.ts'
import { type Catalogue, isOwn } from '../../catalog/catalogue.ts'
import { exportRule, mappingRow, type OwnRow, ownName, ownRow, type SourceMapping } from '../../catalog/sources.ts'
import { storedWeekStart } from '../../lake/ledger/index-queries.ts'
import { type JobDeps, withLake } from '../../lake/ledger/job.ts'
import { differingAtOnce, differingPoints } from '../metrics/run-summary.ts'
import { ownPrefix, ownRows } from '../points/own-rows.ts'
import { hint } from '../../base/suggestion.ts'
import { takeRows } from './draft.ts'
import { exportDay, givenBy, isQuery, type OwnFiles } from './files.ts'
import { readRows } from './rows.ts'

/** The input of an import: files, or none if the catalogues name them, and the flags of the command. */
export interface ImportInput {
  readonly root: string
  readonly files: readonly string[]
  readonly options: Readonly<Record<string, unknown>> & { readonly as?: string | undefined }
  readonly catalogue: Catalogue
  readonly cwd: string
  readonly maxBytes: number
}

/** The result of importing one source, for scripts; they rely on the names. */
export interface ImportSummary {
  /** The name without `own/`. */
  readonly name: string
  /** Rows of the files. */
  readonly rows: number
  /** New points. */
  readonly points_added: number
  /** New vintages of points that had a value. */
  readonly vintages_added: number
  /** Rows that added nothing. */
  readonly left: number
  /** Number of these rows by reason: already stored, of an unfinished interval, or repeating a point. */
  readonly left_because: { readonly held: number; readonly unfinished: number; readonly doubled: number }
  /** Stored points between the first and the last `t` of the files that the files lack. */
  readonly lacking: number
  /** Points that an earlier import lacked although they were known by then: they are known from this import on. */
  readonly late: number
  /** Stored values that differ from the files; an incident counts as one. */
  readonly violations: number
  /** The newest version after the import. */
  readonly version: number
  /** Notes for the user. */
  readonly notes: readonly string[]
}

/** The result of importing one source, and the error with which the command ends; null if all is well. */
export interface ImportResult {
  readonly summary: ImportSummary
  readonly error: LakeError | null
}

/** Files to import under a name. */
interface Source {
  readonly name: string
  readonly files: readonly string[]
  readonly mapping: SourceMapping
  /** Whether the mapping is complete, and replaces the stored one. */
  readonly whole: boolean
}

/**
 * Imports user files into the lake as the series `own/NAME`, or the files that the catalogues map, all of them or the
 * named one. One source after the other is imported, each completely, or not at all if a row cannot be used.
 */
export async function importOwn(input: ImportInput, deps: JobDeps): Promise<ImportResult[]> {
  const ended: ImportResult[] = []
  for (const source of sourcesOf(input)) ended.push(await imported({ ...input, ...source }, deps))
  return ended
}

function sourcesOf({ files, options, catalogue }: ImportInput): Source[] {
  const { as: name } = options
  if (files.length > 0) {
    if (name === undefined) throw usage('import', { expected: '--as NAME with the files', got: 'none' })
    return [{ name, files, mapping: saidBy(options), whole: false }]
  }
  const names = [...catalogue.sources.keys()]
  const chosen = [...catalogue.sources].filter(([sourceName]) => sourceName === (name ?? sourceName))
  if (chosen.length === 0)
    throw usage(name === undefined ? 'import' : `--as ${name}`, {
      expected: names.length === 0 ? 'a file, or `sources:` in a catalogue' : `one of ${names.join(', ')}`,
      got: name ?? 'neither',
      next: name === undefined ? 'pitlake import FILE --as NAME' : hint(name, names),
    })
  return chosen.map(([sourceName, { row }]) => {
    const { files, ...mapping } = row
    return { name: sourceName, files, mapping, whole: true }
  })
}

/** Names of options that differ from the key of the mapping; `null` cannot be a key of YAML. */
const optionNames: Readonly<Record<string, string>> = { available_at: 'availableAt', null_text: 'null' }

/** Builds the mapping from flags, which are named after its keys. */
function saidBy(options: ImportInput['options']): SourceMapping {
  const entries = Object.keys(mappingRow.shape).flatMap((key): (readonly [string, unknown])[] => {
    const value = options[optionNames[key] ?? key]
    return value === undefined || value === false ? [] : [[key, value]]
  })
  return checked(Object.fromEntries(entries))
}

/** Checks that a mapping does not contradict itself; an error names the flag. */
function checked(entries: Readonly<Record<string, unknown>>): SourceMapping {
  const { data, error } = mappingRow.safeParse(entries)
  if (data) return data
  const [issue] = error.issues
  const key = String(issue?.path[0])
  throw usage(`--${key === 'null_text' ? 'null' : key.replace('_', '-')}`, {
    expected: issue?.message,
    got: String(entries[key]),
  })
}

async function imported(input: ImportInput & Source, deps: JobDeps): Promise<ImportResult> {
  const { root, name, catalogue } = input
  const path = `${ownPrefix}${name}`
  refuseName(input, path)
  return await withLake({ root, name: 'import', lock: 'import' }, deps, async (run) => {
    const storedRow = ownRows(run.ledger).get(path)
    const notes: string[] = []
    const { rows, done, version } = await takeRows({ run, deps, root, catalogue, path }, async (engine) => {
      const givenFiles = await givenBy(engine, input.files, input, input.mapping)
      const mapping = mapped(input, givenFiles, notes, storedRow)
      const read = await readRows(engine, {
        given: givenFiles,
        mapping,
        weekStart: storedWeekStart(run.ledger),
        storedIntervals: storedRow?.intervals,
        sessions: catalogue.sessions,
      })
      await run.begin({ files: givenFiles.files.map((file) => file.path), rows: read.rows, series: path }, () => ({}))
      return { rows: read, row: keptOf(mapping, read.interval, input, storedRow) }
    })
    if (!done) throw new RangeError('an import that nobody drafted')
    const { storable, doubled, lacking, late, violations, incidents } = done
    const { points_added: pointsAdded, vintages_added } = version
    const span = 'between the first and the last row'
    const shrunk = `${lacking} points that the lake holds ${span} are not in the files: they stay`
    const tardy =
      `${several(late, 'row is late', 'rows are late')}: an earlier import lacked what is late, so it is known ` +
      'from this import on; to load history, give all of its files in the first import'
    const summary = {
      name,
      rows: rows.rows,
      points_added: pointsAdded - vintages_added,
      vintages_added,
      left: rows.rows - pointsAdded,
      left_because: { held: storable - pointsAdded, unfinished: rows.rows - doubled - storable, doubled },
      lacking,
      late,
      violations,
      version: version.version,
      notes: [...notes, ...rows.notes, ...(lacking === 0 ? [] : [shrunk]), ...(late === 0 ? [] : [tardy])],
    }
    const where = `in ${rows.given.files[0]?.path ?? 'the SELECT'}`
    const error = differingAtOnce(incidents) ?? differingPoints(violations, where)
    return { value: { summary, error }, stopped_by: null, error }
  })
}

function refuseName({ name, catalogue }: ImportInput & Source, path: string): void {
  if (!ownName.safeParse(name).success)
    throw usage(`--as ${name}`, {
      expected: 'a name of small letters, digits and _, with / between its parts',
      got: name,
    })
  const endpoint = catalogue.endpoints.get(path)
  if (endpoint && !isOwn(endpoint))
    throw usage(`--as ${name}`, {
      expected: 'a name that the catalogue has not',
      got: `${path}, which stands at ${endpoint.source}`,
    })
}

const clocks = ['available', 'available_at', 'vintage'] as const
/** Groups of keys that exclude one another: a new one replaces those stored in the lake. */
const rivals = [clocks, ['value', 'components']] as const

/** Returns the mapping for these files: the new one over the stored one. Adds notes about assumptions. */
function mapped(
  { name, whole }: Source,
  source: OwnFiles & { mapping: SourceMapping },
  notes: string[],
  storedRow?: OwnRow,
) {
  const { files, mapping: sourceMapping } = source
  const before = storedRow?.mapping ?? {}
  const dropped = rivals.filter((keys) => keys.some((key) => sourceMapping[key] !== undefined)).flat()
  const over = { ...before, ...Object.fromEntries(dropped.map((key) => [key, undefined])), ...sourceMapping }
  const mapping = checked(whole ? sourceMapping : over)
  const fixed = ({ components, revisable = false }: SourceMapping): string => JSON.stringify([components, revisable])
  if (storedRow && fixed(mapping) !== fixed(before))
    throw usage(`--as ${name}`, {
      expected: 'the components of what it holds already, and revisable or not as that is',
      got: 'others',
      next: 'import it under another name',
    })
  if (clocks.some((key) => mapping[key] !== undefined)) return mapping
  const dated = files.length > 0 && files.every(({ path }) => exportDay(path) !== null)
  if (dated && files.length > 1) {
    notes.push('dated exports: what each says is known from the end of its day on (--available export)')
    return { ...mapping, available: exportRule }
  }
  const also = dated ? '; if its name is the day of an export, say --available export' : ''
  notes.push(
    `when values were known is assumed: at the end of their intervals (--available-at or --available says it)${also}`,
  )
  return mapping
}

/** Maximum number of stored file names, for a later comparison of the lake with the files. */
const keptFiles = 200

/** Builds the row that the lake will store: the mapping and all values that occur, including the earlier ones. */
function keptOf(mapping: SourceMapping, interval: Interval, input: ImportInput, storedRow?: OwnRow) {
  const named = input.files.map((file) => (isQuery(file) || file.startsWith('/') ? file : `${input.cwd}/${file}`))
  const before = storedRow ?? ownRow.parse({ mapping })
  const files = [...new Set([...before.files, ...named])].slice(-keptFiles)
  return { ...before, mapping, files, intervals: [...new Set([...before.intervals, interval])] }
}
