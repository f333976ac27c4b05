import type { Micros } from '../../base/time.ts'
import type { Add, Texts } from './log.ts'

/** A version of the lake and when it was committed. */
export interface Mark {
  readonly version: number
  readonly at: Micros
}

/** Range of what the lake received after one version and up to another. */
interface Range {
  readonly since: Mark
  readonly until: Mark
}

/** The content of a published file, from which it can be made again from the lake alone. */
export interface Piece extends Range {
  /** First part of the metrics' paths; null: all metrics. */
  readonly group: string | null
}

/** A piece, with the number of its rows. */
export interface CountedPiece extends Piece {
  readonly rows: number
}

/** A published file with its content. */
export interface StoredPiece {
  /** The file as the log lists it. */
  readonly add: Add
  readonly piece: Piece
  /** Number of rows. */
  readonly rows: number
}

/** Files that a publish rewrites. */
interface Rewriting {
  /** Pieces to write, with their expected numbers of rows. */
  readonly write: readonly CountedPiece[]
  /** Files that leave the table. */
  readonly leave: readonly StoredPiece[]
}

/** Mark before the first version. */
export const beginning: Mark = { version: 0, at: 0 }

/** Formats a piece as tags of its file in the log. */
export function tagsOf({ since, until, group }: Piece): Texts {
  const markText = ({ version, at }: Mark): string => `${version}@${at}`
  return { since: markText(since), until: markText(until), ...(group !== null && { group }) }
}

/** Parses a piece from the tags of the log; undefined if they describe none. */
export function pieceOf(tags: Texts): Piece | undefined {
  const mark = (text = ''): Mark | undefined => {
    const [, version, at] = /^(\d+)@(\d+)$/.exec(text ?? '') ?? []
    return version === undefined || at === undefined ? undefined : { version: Number(version), at: Number(at) }
  }
  const since = mark(tags['since'] ?? undefined)
  const until = mark(tags['until'] ?? undefined)
  return since && until && { since, until, group: tags['group'] ?? null }
}

/** Number of rows that make a file. */
export interface Portions {
  /** Number of files so low that each publish writes them again. */
  readonly few: number
  /**
   * Maximum rows in one file for all groups; above it there is a file for each group of metrics, which stays as it is.
   */
  readonly large: number
}

/** A row group; a file that a reader opens for its rows, not for its footer. */
export const usualPortions: Portions = { few: 122_880, large: 1_000_000 }

/**
 * Chooses the files to write and to drop for `fresh` rows between two marks. Small older files are rewritten with them
 * while each has at most twice as many rows as all that are newer: so a table has few files, and a row is written few
 * times. Stale files are made again from the lake as it is now: pieces are written, with about so many rows, and files
 * leave.
 */
export function rewriting(
  pieces: readonly StoredPiece[],
  { since, until }: Range,
  fresh: number,
  isStale: (file: StoredPiece) => boolean,
  { few, large }: Portions,
): Rewriting {
  const leave = new Set<StoredPiece>()
  let rows = fresh
  let start = since
  const ranges = [...Map.groupBy(pieces, ({ piece }) => piece.until.version)].toSorted(([a], [b]) => b - a)
  for (const [, files] of fresh === 0 ? [] : ranges) {
    const rowsInFiles = files.reduce((sum, file) => sum + file.rows, 0)
    if (rowsInFiles > Math.max(2 * rows, few) || rows + rowsInFiles > large) break
    for (const file of files) leave.add(file)
    rows += rowsInFiles
    start = files[0]?.piece.since ?? start
  }
  const stale = pieces.filter((file) => !leave.has(file) && isStale(file))
  return {
    write: [
      ...(fresh === 0 ? [] : [{ since: start, until, group: null, rows }]),
      ...stale.map((file) => ({ ...file.piece, rows: file.rows })),
    ],
    leave: [...leave, ...stale],
  }
}
