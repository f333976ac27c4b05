import { several } from '../../base/figures.ts'
import type { SessionVariables } from '../../query/lake.ts'
import type { ChangedPoint, ChangedRecord, PointState } from '../../trust/results/explain-points.ts'
import type { ChangedRow, StampNote } from '../../trust/results/stamped-rows.ts'
import { resolve } from 'node:path'
import { LakeError, usage } from '../../base/errors.ts'
import { assumptionText } from '../../trust/lookahead/assumptions.ts'
import { noteTexts } from '../../query/note-texts.ts'
import { replay, type Replayed, stamp, type Stamped } from '../../trust/results/stamp.ts'
import { outFile } from '../../lake/store/output.ts'
import { readGiven, stampedPath, timeoutOption, withinTime } from '../cli/context.ts'
import { checkEnding, knowledgeFlags, knowledgeOf, variablesOf } from './query.ts'
import { answering, type Call, type Deps, type Input, showLive } from '../cli/spec.ts'
import { programName } from '../cli/process.ts'
import { lakeWorld, openedLake } from '../cli/world.ts'
import { kinds } from '../../base/option-kinds.ts'
import { explainChange, type Explained } from '../../trust/results/explain-change.ts'
import { formatInstant } from '../../base/time.ts'

/** Endings of the names of stamped files. */
export const stampEndings: readonly string[] = ['.parquet', '.parq', '.pq']

export const stampCommand = answering({
  viewsAfter: true,
  args: { '<file>': 'the query; statements before it may set variables' },
  options: { '--out FILE': 'the Parquet file to write', ...knowledgeFlags, ...timeoutOption },
  details: `The footer of the file names the version of the lake, the catalogue, the query, its variables and the digest of the result. vacuum
keeps the files of that version, and \`pitlake replay\` runs the query on exactly these files. Both commands use one thread, so sums
are the same bit for bit.

Example: pitlake stamp q.sql --out result.parquet`,
  answer: async (call) => {
    const [file = ''] = call.args
    const { out } = call.options
    if (out === undefined) throw usage('--out', { expected: 'the Parquet file to write', got: 'nothing' })
    const query = readGiven(call, file, 'a file that can be read')
    const stamped = await stampQuery(call, { query, out, variables: allVariables(call) }, withinTime(call))
    const { version, digest, noted = [] } = stamped
    for (const note of noteTexts(noted, 'terminal')) call.stderr(`note: ${note}\n`)
    const words = () => `${rowsOf(stamped)} of version ${version} stamped into ${out} (SHA-256 ${digest})\n`
    return { document: stamped, words }
  },
})

/** A query to stamp. */
interface StampRequest {
  readonly query: string
  /** The Parquet file to write, from the folder of the call. */
  readonly out: string
  /** Session variables, `as_of` and `observed_as_of` among them. */
  readonly variables: SessionVariables
}

/** Runs a query and stamps its result. */
export async function stampQuery(
  call: Call,
  { query, out, variables }: StampRequest,
  within: Pick<Deps, 'signal' | 'sleep'>,
): Promise<Stamped> {
  checkEnding(out, stampEndings)
  await openedLake(call)
  const { data: root } = call.settings
  const path = resolve(call.cwd, out)
  outFile(path, root).discard()
  const { catalogue } = call
  return await stamp({ root, catalogue, query, out: path, variables }, within, lakeWorld(call, 'stamp'))
}

export const replayCommand = answering({
  args: { '<file>': 'a Parquet file that pitlake stamp wrote' },
  options: { ...timeoutOption },
  details: `Exit 0: every row is the same, bit for bit. Exit 4: a row differs and the output shows the first one, or the file was changed.

Example: pitlake replay result.parquet`,
  answer: async (call) => {
    const { settings, stderr } = call
    const [file = ''] = call.args
    const done = await replay(settings.data, stampedPath(call, file), withinTime(call), programName())
    const { same, version, notes, noted = [] } = done
    for (const note of [...noteTexts(noted, 'terminal'), ...notes]) stderr(`note: ${note}\n`)
    const outcome = same ? `${rowsOf(done)} of version ${version}, the same bit for bit` : 'the result differs'
    return { document: done, words: () => `${outcome}\n`, error: same ? null : differs(done, file) }
  },
})

function rowsOf({ rows, assumes = [] }: StampNote): string {
  const assumption = assumptionText(assumes, rows)
  return assumption === '' ? several(rows, 'row') : `${several(rows, 'row')} (${assumption})`
}

function differs({ difference }: Replayed, file: string): LakeError {
  const place = difference === null ? 'the rows' : `row ${difference.row}, ${difference.column ?? 'the whole row'}`
  return new LakeError('integrity', {
    subject: `${file}: ${place}`,
    expected: difference?.stamped ?? 'the stamped digest',
    got: difference?.replayed ?? 'another',
    next: 'run pitlake doctor to prove the files that it was made from',
  })
}

/** Reads the session variables from the options, `as_of` and `observed_as_of` among them. */
export function allVariables(call: Input<typeof knowledgeFlags>): SessionVariables {
  const { asOf, observedAsOf } = knowledgeOf(call)
  const moments = { ...(asOf && { as_of: asOf }), ...(observedAsOf && { observed_as_of: observedAsOf }) }
  return { ...variablesOf(call), ...moments }
}

export const explainChangeCommand = answering({
  args: {
    '<from>': { kind: kinds.file, about: 'a Parquet file that pitlake stamp wrote' },
    '[to]': ['a second result of the same query (default: the query on the lake now)', kinds.file],
  },
  options: { '--tries N': ['most runs to narrow down the points', '300'], ...timeoutOption },
  details: `The query runs at versions between the two results until one commit is found that changed the rows. Then the output names as few
points and records of that commit as change the first row, each with both values and its time of arrival. If views or catalogue
differ and change rows of the same data, the output names them, too.

Exit 0: the results are the same, or the change is explained. Exit 4: they differ and the lake does not explain it. Exit 6: the
results are of two different queries.`,
  answer: async (call) => {
    const { args, options, settings } = call
    const [from = '', to = null] = args.map((file) => stampedPath(call, file))
    const onRun = ({ runs, about }: { runs: number; about: string }) => showLive(call, `run ${runs}: ${about}`)
    const what = { root: settings.data, from, to, tries: options.tries, program: programName(), onRun }
    const found = await explainChange(what, withinTime(call))
    showLive(call, '')
    return { document: found, words: () => explainedInWords(found), error: doubtOn(found) }
  },
})

function doubtOn({ verdict, reason, from }: Explained): LakeError | null {
  const got = reason ?? undefined
  const subject = `${from.file} differs, and nothing that the lake holds says why`
  const doubt = { subject, got, next: 'run pitlake replay on it, then pitlake doctor' }
  if (verdict === 'unexplained') return new LakeError('integrity', doubt)
  const next = 'stamp the same query again, then compare those'
  const others = { subject: 'two results of different queries', got, next }
  return verdict === 'other query' ? new LakeError('incomplete', others) : null
}

function explainedInWords(explained: Explained): string {
  const { verdict, reason, from, to, versions, runs, text, commit, row, points, records, minimal, notes } = explained
  const names = `version ${from.version} and ${to.file === null ? 'now, version' : 'version'} ${to.version}`
  const lines = [
    `${names}: ${verdict}${verdict === 'other query' ? '' : `, ${several(runs, 'run')} over ${several(versions, 'commit')}`}`,
  ]
  if (reason !== null) lines.push(`note: ${reason}`)
  for (const note of notes) lines.push(`note: ${note}`)
  if (text !== null) {
    lines.push(`the views return the same data differently: ${text.objects.join(', ') || 'which of them is not known'}`)
    for (const change of text.catalogue)
      lines.push(`  ${change.path} ${change.field}: ${asJson(change.from)} -> ${asJson(change.to)}`)
  }
  if (commit !== null) {
    const { version, job, committed_at } = commit
    lines.push(
      `version ${version} changed it: ${job}, ${instant(committed_at)}, ${several(commit.points_added, 'point')} added`,
    )
    if (commit.rules.length > 0) lines.push(`  with changed availability rules for ${commit.rules.join(', ')}`)
    if (commit.further) lines.push('  later commits changed it further')
  }
  if (row !== null)
    lines.push(`row ${row.row}, ${row.column ?? 'the whole row'}: ${side(row, 'from')} -> ${side(row, 'to')}`)
  if (points.length + records.length > 0)
    lines.push(
      minimal ? 'caused by these, none of which can be left out' : 'caused by some of these (search longer: --tries)',
    )
  lines.push(...points.slice(0, most).map(pointLine), ...records.slice(0, most).map(recordLine))
  const more = Math.max(0, points.length - most) + Math.max(0, records.length - most)
  if (more > 0) lines.push(`  and ${more} more (--json)`)
  return `${lines.join('\n')}\n`
}

const most = 20

function pointLine({
  metric,
  asset,
  interval,
  currency,
  exchange,
  network,
  t,
  // The point before and after the commit.
  from,
  to,
}: ChangedPoint): string {
  const series = [metric, asset, interval, currency, exchange, network].filter((part) => part !== null).join(' ')
  const pointText = (point: PointState | null): string =>
    point === null ? 'not there' : `${point.o ?? String(point.v)} known ${point.available_at} (${point.basis})`
  const arrival = (to ?? from)?.observed_at ?? ''
  return `  ${series} t=${t}: ${pointText(from)} -> ${pointText(to)}, came ${arrival}`
}

function recordLine({ table, id, what, at, fields }: ChangedRecord): string {
  const changes = fields.map(({ field, from, to }) => `${field} ${asJson(from)} -> ${asJson(to)}`)
  return `  ${table} ${id} ${what} ${at}${changes.length === 0 ? '' : `: ${changes.join(', ')}`}`
}

function side(row: ChangedRow, which: 'from' | 'to'): string {
  return row[which] ?? (row.column === null ? 'no such row' : 'NULL')
}

const asJson = (value: unknown): string => JSON.stringify(value)
const instant = (micros: number): string => formatInstant(Math.floor(micros / 1_000_000))
