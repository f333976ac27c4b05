import { LakeError } from '../errors.ts'

type Severity = 'damage' | 'notice'
type Row = readonly [severity: Severity, remedy: string]
const damage = (remedy: string): Row => ['damage', remedy]
/** What costs nothing, or not yet. */
const notice = (remedy: string): Row => ['notice', remedy]

const copy = 'put it back from a copy of the lake'
const rebuild = 'run pitlake doctor --rebuild-ledger'
const orCopy = `${rebuild}; if it stays, put the file back from a copy of the lake`
const entry = `${copy}, or run pitlake doctor: it says what can be done without it`
const stamp =
  'put it back from a copy; without one pitlake doctor --forget-lost goes on: no point is lost, and its result cannot be replayed'
const views = 'run pitlake views'

/**
 * What can be wrong with a lake, how grave it is and what to do about it, where the finding says nothing else (`instead`); in
 * the order in which it is to be done: what a journal or an index does not know cannot be mended by it, and views are made
 * of all the others.
 */
const kinds = {
  newer_version: damage('this lake was written by a newer pitlake: update the program'),
  journal_lost: damage(
    'put journal/ back from a copy of the lake; without one pitlake doctor --adopt makes a journal anew for the files that hold together and moves the others, and pitlake doctor --repair moves all of it to a folder found-<instant>, so that a new lake can be begun; neither removes anything',
  ),
  entry_unfit: damage(
    'run pitlake doctor --repair: it moves this one entry to journal/aside/, and what it brought is asked for again',
  ),
  entry_lost: damage(entry),
  entry_torn: damage(entry),
  checkpoint_torn: damage('run pitlake doctor --repair'),
  ledger_lost: damage(rebuild),
  ledger_torn: damage(rebuild),
  ledger_differs: damage(rebuild),
  marker_differs: damage(
    'put the one that came from elsewhere, lake.json or journal/, back from a copy; where all data here are of the lake that the journal names, pitlake doctor --repair writes lake.json anew',
  ),
  file_linked: damage(
    'put the folder or file itself in place of the link, or mount it there: what a link leads to is not read',
  ),
  file_denied: damage('give this user the right to read it: nothing is lost'),
  file_lost: damage(copy),
  file_torn: damage(copy),
  file_changed: damage(copy),
  footer_differs: damage(orCopy),
  rows_differ: damage(orCopy),
  series_differs: damage(orCopy),
  calendar_differs: damage('run pitlake fetch --gaps, then pitlake verify again'),
  runs_lost: damage(
    'put them back from a copy; while the ledger is sound, pitlake doctor --repair keeps what it knows. No point is lost',
  ),
  clock_ahead: damage('see that the clock of this machine is right, then run pitlake doctor --repair'),
  stamp_lost: damage(stamp),
  stamp_torn: damage(stamp),
  views_missing: damage(views),
  views_torn: damage(views),
  views_moved: damage(views),
  entry_stray: notice('nothing reads it; pitlake doctor --repair moves it to journal/aside/'),
  orphans: notice('nothing reads them; the next fetch or pitlake doctor --repair sweeps them away'),
  stale_lock: notice('it holds nothing back; pitlake doctor --repair removes the note'),
  disk_full: notice('make room: pitlake vacuum removes what no kept version needs'),
} as const satisfies Record<string, Row>

type DamageKind = keyof typeof kinds

/** What to do in the place of what the kind of a finding says. */
export const instead = {
  rebuild,
  views,
  stamp,
  copyAt: (newest: number) =>
    `this is a copy that is whole up to version ${newest}: pitlake doctor --rebuild-ledger goes back to it`,
  fold: `${copy}; without one run pitlake doctor --repair: the ledger knows what the journal lost`,
  backTo: (version: number) =>
    `${copy}; without one run pitlake doctor --repair: version ${version} stands again, and fetch asks for what was lost after it`,
  adopt: `${copy}; without one run pitlake doctor --adopt: a journal is made anew for the data files, which stay; coverage, requests and versions are lost, and violations of entries that cannot be read`,
  laterData:
    'put the entries back from a copy of the lake; without one pitlake doctor --repair moves these files to swept/, and fetch asks again',
  superseded:
    'it has left the view and only results stamped before may need it: put it back from a copy if you have one',
  asked: `${copy}, or run pitlake doctor --repair --forget-lost and fetch again`,
  refolded:
    'run pitlake doctor --repair: it is rebuilt from registry/raw while the bodies are there; else put it back from a copy',
  beyond: (why: string) => `${copy}: registry/raw cannot make it (${why})`,
  folder: 'run pitlake doctor --repair: it moves the folder aside and makes the views anew',
}

/** One thing that is wrong, where, and what to do about it. */
export interface Damage {
  readonly kind: DamageKind
  /** `damage` is lost or unreadable; a `notice` costs nothing, or not yet. */
  readonly severity: Severity
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
  const [severity, remedy] = kinds[kind]
  return { kind, severity, path, found, remedy, ...own }
}

/** The findings in the order in which they are to be mended, damage before notices. */
export function inOrder(findings: readonly Damage[]): Damage[] {
  const order = Object.keys(kinds)
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
