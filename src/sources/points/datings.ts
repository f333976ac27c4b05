import type { Interval, Micros } from '../../base/time.ts'
import { quote } from '../../lake/store/engine.ts'
import { type FileEntry, type Json, type Rules, sha256 } from '../../lake/ledger/entry.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'

/** The points of a partition as they were dated in the half-open span `[from, until)` of commits. */
export interface EarlierDating {
  readonly metric: string
  readonly interval: Interval
  /** The commit that dated them so, microseconds; null if they were dated so from the start. */
  readonly from: Micros | null
  /** The commit that redated them, microseconds. */
  readonly until: Micros
  /** Files with this dating, relative to the lake. */
  readonly paths: readonly string[]
}

/**
 * Label of the files with an earlier dating, which are listed in the table `redated`: the time of the commit that ended
 * it.
 */
export function redatedLabel(until: Micros): string {
  return String(until).padStart(16, '0')
}

/** Finds every earlier dating among the files of a version, sorted by partition and time. */
export function earlierDatings(
  files: readonly Pick<FileEntry, 'table' | 'label' | 'metric' | 'interval' | 'path'>[],
): EarlierDating[] {
  const groups = new Map<string, { metric: string; interval: Interval; until: Micros; paths: string[] }>()
  for (const { table, metric, interval, label, path } of files) {
    if (table !== 'redated' || metric === null || interval === null) continue
    const key = `${metric} ${interval} ${label}`
    const group = groups.get(key) ?? { metric, interval, until: Number(label), paths: [] }
    groups.set(key, group)
    group.paths.push(path)
  }
  const sorted = [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
  return sorted.map((group, i) => {
    const before = sorted[i - 1]
    const same = before?.metric === group.metric && before.interval === group.interval
    return { ...group, from: same ? before.until : null }
  })
}

/** A relation over points files by path, with the columns metric and interval. */
type Read = (paths: readonly string[]) => string

/**
 * SQL of the points as they were dated at a certain time, for FROM: until a partition was redated, its earlier files
 * replace the newest. `at` is SQL of a time that folds to a constant; while it is NULL only the newest files are read.
 * `newest` is the relation over them.
 */
export function datedPointsSql(newest: string, datings: readonly EarlierDating[], read: Read, at: string): string {
  if (datings.length === 0) return newest
  const spans = Map.groupBy(datings, ({ from, until }) => `${from} ${until}`)
  const overtaken = new Map<string, EarlierDating>()
  for (const dating of datings) overtaken.set(`${dating.metric} ${dating.interval}`, dating)
  const guards = [...Map.groupBy(overtaken.values(), ({ until }) => until)].map(
    ([until, parts]) => `NOT (${at} < ${instant(until)} AND (newest.metric, newest."interval") IN (${pairs(parts)}))`,
  )
  const earlier = [...spans.values()].flatMap((group) => {
    const [first] = group
    if (!first) return []
    const since = first.from === null ? '' : ` AND ${at} >= ${instant(first.from)}`
    const paths = group.flatMap((dating) => dating.paths)
    return [`SELECT * FROM ${read(paths)} WHERE ${at} IS NOT NULL AND ${at} < ${instant(first.until)}${since}`]
  })
  return `(SELECT newest.* FROM ${newest} AS newest WHERE ${at} IS NULL OR (${guards.join(' AND ')})
  UNION ALL BY NAME ${earlier.join('\n  UNION ALL BY NAME ')})`
}

function instant(at: Micros): string {
  return `make_timestamptz(${at}::BIGINT)`
}

function pairs(parts: readonly EarlierDating[]): string {
  return parts.map(({ metric, interval }) => `(${quote(metric)}, ${quote(interval)})`).join(', ')
}

/**
 * Returns the availability rules of a catalogue in the form of the journal. They are sorted by path: the order of the
 * endpoints is no rule, and must not change the digest.
 */
export function rulesOf({ endpoints }: Catalogue): Rules {
  const sorted = [...endpoints].toSorted(([one], [other]) => (one < other ? -1 : 1))
  const text = JSON.stringify(Object.fromEntries(sorted.map(([path, { rules }]) => [path, rules])))
  return { digest: sha256(text), rules: JSON.parse(text) as Json }
}
