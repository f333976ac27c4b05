import { LakeError } from '../errors.ts'

const rebuild = 'run pitlake doctor --rebuild-ledger'
const orCopy = `${rebuild}; if it stays, put the file back from a copy of the lake`
const entry = 'put it back from a copy of the lake, or run pitlake doctor: it says what can be done without it'
const stamp =
  'put it back from a copy; without one pitlake doctor --forget-lost goes on: no point is lost, and its result cannot be replayed'
const views = 'run pitlake views'

/**
 * What can be wrong with a lake, and what to do about it where the finding says nothing else; in the order in which it is
 * to be done: what a journal or an index does not know cannot be mended by it, and views are made of all the others.
 */
const remedies = {
  newer_version: 'this lake was written by a newer pitlake: update the program',
  journal_lost:
    'put journal/ back from a copy of the lake; without one pitlake doctor --adopt makes a journal anew for the files that hold together and moves the others, and pitlake doctor --repair moves all of it to a folder found-<instant>, so that a new lake can be begun; neither removes anything',
  entry_unfit:
    'run pitlake doctor --repair: it moves this one entry to journal/aside/, and what it brought is asked for again',
  entry_lost: entry,
  entry_torn: entry,
  checkpoint_torn: 'run pitlake doctor --repair',
  ledger_lost: rebuild,
  ledger_torn: rebuild,
  ledger_differs: rebuild,
  marker_differs:
    'put the one that came from elsewhere, lake.json or journal/, back from a copy; where all data here are of the lake that the journal names, pitlake doctor --repair writes lake.json anew',
  file_linked:
    'put the folder or file itself in place of the link, or mount it there: what a link leads to is not read',
  file_denied: 'give this user the right to read it: nothing is lost',
  file_lost: 'put it back from a copy of the lake',
  file_torn: 'put it back from a copy of the lake',
  file_changed: 'put it back from a copy of the lake',
  footer_differs: orCopy,
  rows_differ: orCopy,
  series_differs: orCopy,
  calendar_differs: 'run pitlake fetch --gaps, then pitlake verify again',
  runs_lost:
    'put them back from a copy; while the ledger is sound, pitlake doctor --repair keeps what it knows. No point is lost',
  clock_ahead: 'see that the clock of this machine is right, then run pitlake doctor --repair',
  stamp_lost: stamp,
  stamp_torn: stamp,
  views_missing: views,
  views_torn: views,
  views_moved: views,
  entry_stray: 'nothing reads it; pitlake doctor --repair moves it to journal/aside/',
  orphans: 'nothing reads them; the next fetch or pitlake doctor --repair sweeps them away',
  stale_lock: 'it holds nothing back; pitlake doctor --repair removes the note',
  disk_full: 'make room: pitlake vacuum removes what no kept version needs',
} as const

export type DamageKind = keyof typeof remedies

/** What costs nothing, or not yet. */
const notices: ReadonlySet<DamageKind> = new Set(['entry_stray', 'orphans', 'stale_lock', 'disk_full'])

/** One thing that is wrong, where, and what to do about it. */
export interface Damage {
  readonly kind: DamageKind
  /** `damage` is lost or unreadable; a `notice` costs nothing, or not yet. */
  readonly severity: 'damage' | 'notice'
  /** Relative to the lake. */
  readonly path: string
  readonly found: string
  readonly remedy: string
}

/** A finding, of the weight and with the remedy of its kind where it says no other. */
export function finding(
  kind: DamageKind,
  path: string,
  found: string,
  own: Partial<Pick<Damage, 'severity' | 'remedy'>> = {},
): Damage {
  return { kind, severity: notices.has(kind) ? 'notice' : 'damage', path, found, remedy: remedies[kind], ...own }
}

/** The findings in the order in which they are to be mended, damage before notices. */
export function inOrder(findings: readonly Damage[]): Damage[] {
  const order = Object.keys(remedies)
  const weight = ({ severity, kind }: Damage): number =>
    (severity === 'damage' ? 0 : order.length) + order.indexOf(kind)
  return findings.toSorted((a, b) => weight(a) - weight(b))
}

/** The error of whoever finds these: the first with its remedy, and how many more there are; null where nothing is lost. */
export function damageVerdict(damages: readonly Damage[]): LakeError | null {
  const [first] = damages
  if (!first) return null
  const more = damages.length === 1 ? '' : ` (and ${damages.length - 1} more)`
  // Nothing is wrong with a lake that this program is too old for.
  const kind = first.kind === 'newer_version' ? 'usage' : 'integrity'
  return new LakeError(kind, { subject: `${first.path}: ${first.found}${more}`, next: first.remedy })
}
