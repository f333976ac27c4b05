import { LakeError } from '../../base/errors.ts'
import { fileSql } from '../../query/views/relations.ts'
import type { Add, TableState, Texts } from './log.ts'
import {
  type CountedPiece,
  type StoredPiece,
  type Piece,
  beginning,
  type Mark,
  pieceOf,
  type Portions,
  rewriting,
  tagsOf,
} from './ranges.ts'
import {
  type Portion,
  type PublishedColumn,
  type WrittenRows,
  groupSql,
  microsSql,
  placeFile,
  writeRows,
  type Writing,
} from './write.ts'
import type { PublishedTable, TableGrowth } from './tables.ts'

/** Changes of a publish in one table: files added at the destination, and files that leave the table. */
export interface TableChange {
  readonly add: readonly Add[]
  readonly leave: readonly Add[]
}

/** Versions from and to which a table is published. */
interface Step {
  /** The lake version that it was published from last; undefined if nothing published counts any more. */
  readonly last: Mark | undefined
  readonly now: Mark
}

/** Table with its current columns, and its state at the destination. */
export interface Target {
  readonly table: PublishedTable
  readonly columns: readonly PublishedColumn[]
  readonly state: TableState
  /** Files of it that are missing or changed at the destination: their rows are published again. */
  readonly lost: ReadonlySet<string>
}

/** Publishes what a table lacks at the destination; undefined if it lacks nothing. */
export async function changeOf(writing: Writing, target: Target, step: Step): Promise<TableChange | undefined> {
  const { growth } = target.table
  if (!growth) return await rewritten(writing, target)
  const publishedFiles = [...target.state.files.values()]
  const areKnown = publishedFiles.every((add) => isOpen(add) || pieceOf(add.tags))
  const first = step.last && areKnown ? await grown(writing, target, growth, { ...step, last: step.last }) : null
  if (first !== null) return first
  const { add } = (await grown(writing, { ...target, state: { ...target.state, files: new Map() } }, growth, {
    ...step,
    last: beginning,
  })) ?? { add: [] }
  return { add, leave: publishedFiles }
}

const openTags: Texts = { part: 'open' }
const isOpen = ({ tags }: Add): boolean => tags['part'] === openTags['part']

/** Publishes the rows since the last version; null if the table would then not have as many rows as the lake. */
async function grown(
  writing: Writing,
  target: Target,
  growth: TableGrowth,
  { last, now }: Step & { readonly last: Mark },
) {
  const { engine, portions } = writing
  const files = [...target.state.files.values()]
  const storedPieces = files.flatMap((add): StoredPiece[] => {
    const piece = pieceOf(add.tags)
    return piece ? [{ add, piece, rows: rowsOf(add) }] : []
  })
  const moved = last.version !== now.version
  const fresh = moved ? await growth.fresh(engine, last) : 0
  const stale = moved && last.version > 0 ? ((await growth.stale?.values(engine, last)) ?? []) : []
  const by = growth.stale?.by ?? ''
  const { write: pieces, leave } = rewriting(
    storedPieces,
    { since: last, until: now },
    fresh,
    ({ add }) => target.lost.has(add.path) || mayHold(add, by, stale),
    portions,
  )
  const added: { readonly add: Add; readonly rows: number }[] = []
  let count = 0
  const write = async (folder: string, portion: Portion, tags: Texts): Promise<void> => {
    const name = `${count++}`
    const file = await writeRows(writing, `${target.table.name}-${name}`, portion)
    if (file.rows > 0)
      added.push({ add: await placeFile(writing, target.table.name, `${folder}${name}`, file, tags), rows: file.rows })
  }
  for (const piece of pieces)
    for (const part of partsOf(piece, growth, portions))
      await write(folderOf(part, growth), portionOf(target, growth, part, portions), tagsOf(part))
  const open = growth.open && (fresh > 0 || files.some((file) => isOpen(file) && target.lost.has(file.path)))
  if (open) await write('', openPortion(target, growth), openTags)
  const goneFiles = new Set([...leave.map(({ add }) => add), ...(open ? files.filter(isOpen) : [])])
  const add = added.map((addition) => addition.add)
  const rows = [...files.filter((file) => !goneFiles.has(file)).map(rowsOf), ...added.map((addition) => addition.rows)]
  const sum = rows.reduce((total, rowCount) => total + rowCount, 0)
  if (sum !== (growth.total ?? sum)) return await refused(writing, target, { add, leave: [] }, last)
  return add.length + goneFiles.size === 0 ? undefined : { add, leave: [...goneFiles] }
}

/**
 * Refuses a change whose rows do not add up: rows that changed without notice are written again from the beginning
 * (null); if that does not help, the lake contradicts itself.
 */
async function refused({ to }: Writing, { table }: Target, { add }: TableChange, last: Mark): Promise<null> {
  for (const { path } of add) await to.remove(`${table.name}/${path}`)
  if (last.version > 0) return null
  throw new LakeError('integrity', {
    subject: `the table ${table.name}`,
    expected: 'as many rows as the commits of the lake say',
    got: 'another number',
    next: 'run pitlake doctor',
  })
}

const rowsOf = ({ stats }: Add): number => (JSON.parse(stats) as { readonly numRecords?: number }).numRecords ?? 0

/** Whether a file may contain a row with one of these values; true for a file without bounds. */
function mayHold({ stats }: Add, column: string, values: readonly string[]): boolean {
  const { minValues, maxValues } = JSON.parse(stats) as Record<'minValues' | 'maxValues', Texts | undefined>
  const least = minValues?.[column]
  const most = maxValues?.[column]
  return values.some((value) => (least ?? value) <= value && value <= (most ?? value))
}

function partsOf(piece: CountedPiece, { groups }: TableGrowth, { large }: Portions) {
  if (piece.group !== null || groups.length === 0 || piece.rows <= large) return [piece]
  return groups.map((group) => ({ ...piece, group }))
}

/** Names the folder of the files of a group, which needs no escaping anywhere. */
function folderOf({ group }: Piece, { groups }: TableGrowth): string {
  if (groups.length === 0) return ''
  return `${group?.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '_') ?? 'several'}/`
}

function portionOf(
  { table, columns }: Target,
  { at, groups }: TableGrowth,
  piece: CountedPiece,
  { large }: Portions,
): Portion {
  const { since, until, group, rows } = piece
  const instant = `published."${at}"`
  const where = [
    ...(since.version === 0 ? [] : [`${instant} > ${microsSql(since.at)}`]),
    `${instant} <= ${microsSql(until.at)}`,
    ...(group === null ? [] : [groupSql(group)]),
  ]
  // A large portion stays as the lake's files have it, partition by partition: sorting it would cost more than all
  // else.
  const order = groups.length > 0 && rows > large ? [] : table.order
  return { rows: table.rows(since), columns, where, order }
}

function openPortion({ table, columns }: Target, { at }: TableGrowth): Portion {
  return { rows: table.rows(beginning), columns, where: [`NOT isfinite(published."${at}")`], order: table.order }
}

/** Writes the current table as one file, if it differs from the published one. */
async function rewritten(writing: Writing, { table, columns, state, lost }: Target): Promise<TableChange | undefined> {
  const portion = { rows: table.rows(beginning), columns, where: [], order: table.order }
  const file = await writeRows(writing, table.name, portion)
  const publishedFiles = [...state.files.values()]
  const digest = await digestOf(writing, file)
  const isSame =
    file.rows === 0
      ? publishedFiles.length === 0
      : publishedFiles.length === 1 && publishedFiles[0]?.tags['digest'] === digest
  if (isSame && lost.size === 0) return undefined
  const add = file.rows === 0 ? [] : [await placeFile(writing, table.name, '0', file, { digest })]
  return { add, leave: publishedFiles }
}

/** Computes a digest of the rows of a file that does not depend on their order. */
async function digestOf({ engine }: Writing, { local, rows }: WrittenRows): Promise<string> {
  const sql = `SELECT CAST(sum(CAST(hash(held) AS HUGEINT)) AS VARCHAR) AS digest FROM ${fileSql(local)} AS held`
  const [row] = await engine.rows<{ digest: string | null }>(sql)
  return `${rows}-${row?.digest ?? '0'}`
}
