import { type LakeError, usage } from '../../base/errors.ts'
import type { Sql } from '../../base/intervals-sql.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import { statementsIn } from '../../lake/store/sql.ts'
import { rowsAsNumbers } from '../points/sql.ts'
import { fileColumn, type OwnFiles, selectName } from './files.ts'
import type { RowPlan } from './row-plan.ts'

const statement = statementsIn(new URL('sql/', import.meta.url))

/** The part of a plan that finds a row in the files. */
export type RowSource = Pick<RowPlan, 'given' | 'readings'>

/** A defect of rows. */
export interface RowDefect {
  /** The flag of the value that is refused. */
  readonly flag: string
  /** The expected value, for people. */
  readonly wanted: string
  /** SQL of `wanted`, if it quotes the row; default: the text as it is. */
  readonly wantedSql?: Sql
  /** SQL condition of the defect, over the columns of the files and the readings of them, such as `_read_mark`. */
  readonly bad: Sql
}

/** A row of the files with a defect. */
interface FoundFault {
  /** The file of the row, or what errors call rows without one. */
  readonly file: string
  /** Number of the row in its file, from 1. */
  readonly n: number
  readonly flag: string
  readonly wanted: string
  /** The value as the file writes it; null for none. */
  readonly raw: string | null
}

/** SQL of a value as the files write it. */
export function rawTextSql({ format }: OwnFiles, raw: Sql): Sql {
  return format === 'json' && raw !== 'NULL' ? `(${raw} ->> '$')` : `CAST(${raw} AS VARCHAR)`
}

/** Builds the error for the first row with a value that its reading cannot use; undefined if there is none. */
export async function unusableRow(engine: Engine, source: RowSource): Promise<LakeError | undefined> {
  const branches = source.readings.flatMap(({ bad, flag, wanted, raw }) =>
    bad === 'false' ? [] : [branchSql(source, { flag, bad, raw, wantedSql: wanted })],
  )
  return await faultOf(engine, source, branches, 1)
}

/** Throws the error for the row of the files, the first or a later one, with this defect. */
export async function refuseRow(engine: Engine, source: RowSource, defect: RowDefect, nth = 1): Promise<never> {
  const { flag, wanted, wantedSql = quote(wanted), bad } = defect
  const raw = source.readings.find((reading) => reading.flag === flag)?.raw ?? 'NULL'
  const fault = await faultOf(engine, source, [branchSql(source, { flag, bad, raw, wantedSql })], nth)
  throw fault ?? usage(source.given.files[0]?.path ?? selectName, { expected: wanted, got: 'something else' })
}

/** SQL branch of a CASE that describes a row with a defect. */
function branchSql(
  { given }: RowSource,
  {
    flag,
    bad,
    raw,
    wantedSql,
  }: { readonly flag: string; readonly bad: Sql; readonly raw: Sql; readonly wantedSql: Sql },
): Sql {
  const fault = `{'flag': ${quote(flag)}, 'wanted': ${wantedSql}, 'raw': ${rawTextSql(given, raw)}}`
  return `WHEN ${bad} THEN ${fault}`
}

/** Finds the nth row to which a branch applies, and builds an error of one line; undefined if there is none. */
async function faultOf(
  engine: Engine,
  { given, readings }: RowSource,
  branches: readonly Sql[],
  nth: number,
): Promise<LakeError | undefined> {
  const read = readings.flatMap(({ name, sql }) => (name === null ? [] : [`${sql} AS _read_${name}`]))
  const sql = statement('unusable_row', {
    file: given.files.length === 0 ? quote(given.subject ?? selectName) : fileColumn,
    branches: branches.join('\n    '),
    source: `(SELECT *, ${read.join(', ')} FROM ${given.relation})`,
    nth,
    row: given.row ?? 'row_number() OVER ()',
  })
  const [fault] = await rowsAsNumbers<FoundFault>(engine, sql).catch(() => [])
  if (fault === undefined) return undefined
  const { file, n, flag, wanted, raw } = fault
  return usage(`${file}: row ${n}: ${flag}`, {
    expected: wanted,
    got: raw === null ? 'nothing' : JSON.stringify(raw.slice(0, 60)),
    next: 'correct it, then run the same command again; nothing was taken from the file',
  })
}
