/** Size of one file of a partition, for the choice of a merge. */
interface Mergeable {
  readonly rows: number
  readonly bytes: number
}

/**
 * Number of times that a row is rewritten before one file more is kept instead: of a year's top-ups five are, of eight
 * years' seven.
 */
const again = 6
/** Minimum and maximum number of files that are kept before the choice becomes less patient. */
const fewest = 5
const most = 7
/** Factor by which it becomes less patient at a time: large steps would rewrite large files for want of one. */
const impatience = 1.25
/** A file of this size is left alone: merging it again would gain nothing. */
const fullBytes = 1 << 30

/**
 * Chooses the files of a partition to be merged into one, smallest first; empty if they may stay as they are. Every
 * file that stays has more rows than all smaller ones together, so that their number is logarithmic in the rows, and a
 * rewritten row ends up in a file of at least twice the size, so that it is rewritten logarithmically often.
 */
export function tieredMerge<T extends Mergeable>(files: readonly T[]): readonly T[] {
  const sorted = mergeable(files)
  let chosen = suffix(sorted, 1)
  const left = (): number => sorted.length - chosen.length + (chosen.length > 0 ? 1 : 0)
  const patience = keepable(sorted)
  for (let factor = impatience; left() > patience; factor *= impatience) chosen = suffix(sorted, factor)
  return chosen
}

/**
 * Computes how many files to keep of rows that came in portions like the smallest: k files, with each row rewritten r
 * times, take in (k + r) over k portions and no more, however cleverly they are merged.
 */
function keepable(sorted: readonly Mergeable[]): number {
  const portions = sorted.reduce((sum, { rows }) => sum + rows, 0) / Math.max(1, sorted[0]?.rows ?? 0)
  let takenFiles = 1
  for (let k = 1; k < most; k++) {
    takenFiles = (takenFiles * (again + k)) / k
    if (k >= fewest && takenFiles > portions) return k
  }
  return most
}

/** Chooses the files of a partition to be merged so that one is left; a single one only if it is not `merged` yet. */
export function filesToMerge<T extends Mergeable>(files: readonly T[], isMerged: (file: T) => boolean = () => true) {
  const sorted = mergeable(files)
  const [only] = sorted
  return sorted.length === 1 && only !== undefined && isMerged(only) ? [] : sorted
}

function mergeable<T extends Mergeable>(files: readonly T[]): readonly T[] {
  return files.filter((file) => file.bytes < fullBytes).toSorted((a, b) => a.rows - b.rows)
}

/** Share of the rows of a history outside its largest file at which it is merged whole. */
const historyShare = 0.25

/**
 * Chooses the files of a history to be merged: only within one file is a step known to be superseded, and its record
 * skipped. Rewriting the whole each time that it has grown by a share is logarithmic too.
 */
export function historyMerge<T extends Mergeable>(files: readonly T[]): readonly T[] {
  const sorted = mergeable(files)
  const largest = sorted.at(-1)?.rows ?? 0
  const others = sorted.slice(0, -1).reduce((sum, { rows }) => sum + rows, 0)
  return others > 0 && others >= largest * historyShare ? sorted : tieredMerge(files)
}

/** Finds the longest run of smallest files whose largest has at most `factor` times the rows of all others in it. */
function suffix<T extends Mergeable>(sorted: readonly T[], factor: number): readonly T[] {
  let smaller = 0
  let count = 0
  for (const [i, file] of sorted.entries()) {
    const rows = Math.max(1, file.rows)
    if (i > 0 && rows <= smaller * factor) count = i + 1
    smaller += rows
  }
  return sorted.slice(0, count)
}

/** Versions between which a file was in the view. The same path may be listed several times. */
interface Listed {
  readonly path: string
  readonly added_version: number
  /** Null while it is in the newest version. */
  readonly removed_version: number | null
}

/** Reasons to keep superseded files. */
interface Keeping {
  /** Versions that a stamped result is pinned to. */
  readonly stamps: readonly number[]
  /** Whether a version is so old that those before it may go. */
  readonly isOld: (version: number) => boolean
}

/**
 * Lists the files whose bytes are no longer needed: out of the view since an old version, and in no stamped one.
 * `stamped` are those that would go but for a stamp. A path goes only when all its listings go.
 */
export function vacuumable<T extends Listed>(files: readonly T[], keeping: Keeping): { going: T[]; stamped: T[] } {
  const going: T[] = []
  const stamped: T[] = []
  for (const listings of Map.groupBy(files, (file) => file.path).values()) {
    const isGone = listings.every(({ removed_version: end }) => end !== null && keeping.isOld(end))
    if (!isGone) continue
    const pinned = listings.some(({ added_version: start, removed_version: end }) =>
      keeping.stamps.some((version) => version >= start && version < (end ?? Number.POSITIVE_INFINITY)),
    )
    ;(pinned ? stamped : going).push(...listings)
  }
  return { going, stamped }
}
