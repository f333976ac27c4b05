import { LakeError, usage } from '../errors.ts'
import { type Catalogue, isOwn } from '../catalog/catalogue.ts'
import { ownEndpoint } from '../catalog/own-endpoint.ts'
import { exportRule, mappingRow, type OwnRow, ownName, type SourceMapping } from '../catalog/sources.ts'
import { commit, type Version } from '../ledger/commit.ts'
import { heldWeekStart } from '../ledger/held.ts'
import { type JobDeps, type Result, withLake } from '../ledger/job.ts'
import { openSpool } from '../ledger/sweep.ts'
import { differingAtOnce } from '../metrics/tally.ts'
import { ownPrefix, ownRows } from '../points/own-rows.ts'
import { numbered } from '../points/sql.ts'
import { Engine } from '../store/engine.ts'
import { drafted, type Drafted, type Importing, type Portion, startOf } from './draft.ts'
import { exportDay, givenBy, isQuery, type OwnFiles, refuseGrown } from './files.ts'
import { type TakenRows, readRows, refuseRow } from './rows.ts'
import { unfolded } from './triangle.ts'

/** What is imported, and how it is mapped beside what the lake knows of it already. */
interface ImportInput {
  readonly root: string
  readonly name: string
  readonly files: readonly string[]
  readonly mapping: SourceMapping
  /** Whether the mapping says all, and nothing of it is as it was before. */
  readonly whole: boolean
  readonly catalogue: Catalogue
  readonly cwd: string
  readonly maxBytes: number
}

/** What came of an import. */
export interface Imported {
  readonly name: string
  readonly rows: number
  readonly points_added: number
  readonly vintages_added: number
  /** Rows that brought nothing, and why. */
  readonly left: number
  readonly left_because: { readonly held: number; readonly unfinished: number; readonly doubled: number }
  /** Points that the lake holds between the first and the last `t` of the files, and that they lack. */
  readonly lacking: number
  readonly violations: number
  readonly version: number
  readonly notes: readonly string[]
}

/** What came of it, and the error with which a command ends all the same. */
export interface Taken {
  readonly summary: Imported
  readonly error: LakeError | null
}

/** Takes files of the user's into the lake as the series `own/NAME`: all of them, or nothing where a row cannot be used. */
export async function importOwn(input: ImportInput, deps: JobDeps): Promise<Taken> {
  const name = `${ownPrefix}${input.name}`
  refuseName(input, name)
  return await withLake({ root: input.root, name: 'import', lock: 'import' }, deps, async (run) => {
    await using spool = await openSpool(input.root, run.id, deps)
    using engine = await Engine.open(':memory:', { tempDirectory: spool.file('duckdb') })
    const held = ownRows(run.ledger).get(name)
    const { given, mapping: said } = unfolded(await givenBy(engine, input.files, input), input.mapping)
    const { mapping, notes } = mapped({ ...input, mapping: said }, given, held)
    const rows = await readRows(engine, given, mapping, heldWeekStart(run.ledger))
    await refuseGrown(given.files)
    const { catalogue } = input
    const importing = { run, deps, spool, engine, catalogue, rows, path: name, row: rowOf(rows, held, input) }
    await run.begin({ files: given.files.map(({ path }) => path), rows: rows.rows, series: name }, () => ({}))
    return await taken(importing, input.name, [...notes, ...rows.notes])
  })
}

function refuseName({ name, catalogue }: ImportInput, path: string): void {
  if (!ownName.safeParse(name).success)
    throw usage(`--as ${name}`, {
      expected: 'a name of small letters, digits and _, with / between its parts',
      got: name,
    })
  const taken = catalogue.endpoints.get(path)
  if (taken && !isOwn(taken))
    throw usage(`--as ${name}`, {
      expected: 'a name that the catalogue has not',
      got: `${path}, which stands at ${taken.source}`,
    })
}

const clocks = ['available', 'available_at', 'vintage'] as const
const shapes = ['value', 'components'] as const

/** What is said now, over how the lake holds it already: of keys that exclude one another the new one counts. */
function over(before: SourceMapping, said: SourceMapping): SourceMapping {
  const given = (keys: readonly (keyof SourceMapping)[]) =>
    keys.filter(() => keys.some((key) => said[key] !== undefined))
  const dropped = new Set<string>([...given(clocks), ...given(shapes)])
  return { ...Object.fromEntries(Object.entries(before).filter(([key]) => !dropped.has(key))), ...said }
}

/** The mapping that holds for these files, and what there is to say of it. */
function mapped({ mapping: said, name, whole }: ImportInput, { files }: OwnFiles, held?: OwnRow) {
  const before = held?.mapping ?? {}
  const mapping = whole ? said : over(before, said)
  const wrong = mappingRow.safeParse(mapping).error?.issues[0]
  if (wrong) throw usage(`--as ${name}`, { expected: wrong.message, got: 'both' })
  const fixed = ({ components, revisable = false }: SourceMapping): string => JSON.stringify([components, revisable])
  if (held && fixed(mapping) !== fixed(before))
    throw usage(`--as ${name}`, {
      expected: 'the components of what it holds already, and revisable or not as that is',
      got: 'others',
      next: 'import it under another name',
    })
  if (clocks.some((key) => mapping[key] !== undefined)) return { mapping, notes: [] }
  const dated = files.length > 0 && files.every(({ path }) => exportDay(path) !== null)
  if (dated && files.length > 1) {
    const notes = ['dated exports: what each says is known from the end of its day on (--available export)']
    return { mapping: { ...mapping, available: exportRule }, notes }
  }
  const also = dated ? '; if its name is the day of an export, say --available export' : ''
  const assumed =
    'when values were known is assumed: at the end of their intervals (--available-at or --available says it)'
  return { mapping, notes: [`${assumed}${also}`] }
}

/** What the lake will keep of it: the mapping and all that there is of each dimension, what came before included. */
function rowOf({ mapping, interval }: TakenRows, held: OwnRow | undefined, { files, cwd }: ImportInput): OwnRow {
  const named = files.map((file) => (isQuery(file) || file.startsWith('/') ? file : `${cwd}/${file}`))
  const none = { files: [], intervals: [], currencies: [], exchanges: [], networks: [] }
  const { files: before, ...rest } = held ?? none
  return {
    ...none,
    ...rest,
    mapping,
    files: [...new Set([...before, ...named])].slice(-keptFiles),
    intervals: union(rest.intervals, [interval]),
  }
}

/** So many names of files are kept, for whoever compares the lake with them. */
const keptFiles = 200

const union = <T>(one: readonly T[], other: readonly T[]): T[] => [...new Set([...one, ...other])]

/** The series that the rows are, and from where to where each goes. */
export async function portionsOf({ engine, rows }: Importing): Promise<Portion[]> {
  const { keys, columns, constants, interval, mapping } = rows
  const start = startOf(mapping, interval)
  const own = ['asset', 'currency', 'exchange', 'network', 'day'].map((name) => {
    if (keys.some((key) => key === name)) return name
    const constant = name === 'day' ? undefined : constants[name as 'asset']
    return constant === undefined ? `NULL AS ${name}` : `'${constant.replaceAll("'", "''")}' AS ${name}`
  })
  const group = keys.length === 0 ? '' : ` GROUP BY ${keys.join(', ')} ORDER BY ${keys.includes('day') ? 'day' : '1'}`
  const found = await numbered<Portion>(
    engine,
    `SELECT ${own.join(', ')}, count(*) AS points, min(${start}) AS first, max(${start}) AS last,
      ${columns.has('v') ? 'count(*) FILTER (WHERE v = 0 AND signbit(v))' : '0'} AS zeros FROM own_rows${group}`,
  )
  for (const name of ['asset', 'currency', 'exchange', 'network'] as const) {
    const strange = found.map((one) => one[name]).find((text) => text !== null && /\p{Cc}|^\s|\s$/u.test(text))
    if (strange === undefined || strange === null) continue
    await refuseRow(engine, rows, () => `regexp_matches(own_${name}, '[[:cntrl:]]|^[[:space:]]|[[:space:]]$')`, {
      flag: name,
      wanted: 'a name without control signs, or spaces around it',
    })
  }
  return found
}

/**
 * Compares the rows with what is held and commits what is new; what has nothing new makes no version. Nothing is drafted
 * where the lake is not of the version `of` any more.
 */
export async function commitRows(importing: Importing, of?: number) {
  const { run, deps, path } = importing
  const portions = await portionsOf(importing)
  const row = { ...importing.row }
  for (const [many, one] of [
    ['currencies', 'currency'],
    ['exchanges', 'exchange'],
    ['networks', 'network'],
  ] as const)
    row[many] = union(
      row[many],
      portions.flatMap((portion) => portion[one] ?? []),
    )
  const endpoint = ownEndpoint(path, row)
  let done: Drafted | undefined
  const version = await commit(
    run.ledger,
    async (ticket) => {
      if (of !== undefined && ticket.version !== of + 1) return null
      done = await drafted({ ...importing, row }, endpoint, portions, ticket)
      return done.draft
    },
    deps,
  )
  return { done, version }
}

async function taken(importing: Importing, name: string, notes: readonly string[]): Promise<Result<Taken>> {
  const { rows } = importing
  const { done, version } = await commitRows(importing)
  if (!done) throw new RangeError('an import that nobody drafted')
  const told = summary(importing.rows, done, version, { name, notes })
  const error = verdictOf(told, done.incidents, rows)
  return { value: { summary: told, error }, stopped_by: null, error }
}

function verdictOf({ violations }: Imported, incidents: number, { given }: TakenRows): LakeError | null {
  if (violations === 0) return null
  if (incidents > 0) return differingAtOnce(incidents)
  return new LakeError('integrity', {
    subject: `${violations} stored values differ in ${given.files[0]?.path ?? 'the SELECT'}`,
    next: 'nothing stored was changed: see pitlake violations list, then pitlake violations accept',
  })
}

function summary(
  { rows }: TakenRows,
  done: Drafted,
  version: Version,
  { name, notes }: Pick<Imported, 'name' | 'notes'>,
): Imported {
  const { kept, doubled, lacking, violations } = done
  const { vintages_added } = version
  const points_added = version.points_added - vintages_added
  const brought = version.points_added
  const shrunk = `${lacking} points that the lake holds between the first and the last row are not in the files: they stay`
  return {
    name,
    rows,
    points_added,
    vintages_added,
    left: rows - brought,
    left_because: { held: kept - brought, unfinished: rows - doubled - kept, doubled },
    lacking,
    violations,
    version: version.version,
    notes: lacking === 0 ? notes : [...notes, shrunk],
  }
}
