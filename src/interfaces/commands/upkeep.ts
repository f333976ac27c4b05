import { inLake, places } from '../../lake/store/layout.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { buildViews } from '../../query/views/build.ts'
import { bytes, filesInWords, formatLabelled, table, several } from '../../base/figures.ts'
import { answering } from '../cli/spec.ts'
import { lakeWorld, openedLake, requireLake } from '../cli/world.ts'
import { metricSizes, type MetricSize } from '../../sources/points/sizes.ts'
import type { BuildViews } from '../../maintenance/upkeep/doctor.ts'
import { compact, type MergeSummary, mergeVerdict } from '../../maintenance/upkeep/merge-jobs.ts'
import { redate, type RedateSummary } from '../../maintenance/upkeep/redate.ts'
import { vacuum, type VacuumSummary } from '../../maintenance/upkeep/vacuum.ts'
import { formatDuration, formatMicros } from '../../base/time.ts'
import { versionChanges, type VersionChange } from '../../lake/ledger/run-queries.ts'

export const viewsCommand = answering({
  details: `Every command that writes does this at its end. Both files have only views and macros, and are replaced as a whole. Open sessions keep
what they opened. docs/reference/views.md describes every object.`,
  answer: async (call) => {
    const { catalogue } = call
    const { data } = call.settings
    requireLake(data)
    using ledger = await Ledger.open(data)
    const built = await buildViews(ledger, { catalogue, force: true, deps: lakeWorld(call, 'views') })
    const { version, objects, files, bytes: size } = built
    const paths = [places.database, places.script].map((place) => `  ${inLake(data, place)}\n`)
    const of = `${several(objects, 'object')} over ${several(files, 'file')} of version ${version} (${bytes(size)})`
    return { document: built, words: () => `${of}:\n${paths.join('')}` }
  },
})

export const compactCommand = answering({
  viewsAfter: true,
  recorded: true,
  options: {
    '--report': 'also print bytes per point and column of every metric',
  },
  details: `compact compares rows and content digest of the old and new files before it exchanges them. The old files stay on disk until vacuum.
Fetches and queries can run at the same time. docs/how-to/compact-and-vacuum.md describes the details.`,
  answer: async (call) => {
    const { settings, options } = call
    await openedLake(call)
    const merged = await compact(settings.data, lakeWorld(call, 'compact'))
    const sizes = options.report ? await metricSizes(settings.data) : null
    const report = { ...merged, ...(sizes && { sizes }) }
    const words = () => `${mergedInWords(merged)}${sizes ? sizeTable(sizes) : ''}`
    return { document: report, words, error: mergeVerdict(merged) }
  },
})

export const redateCommand = answering({
  viewsAfter: true,
  recorded: true,
  details: `Makes a version in which stored points have the \`available_at\`, basis and rule of today's catalogue and pitlake.yaml. Values do
not change. With observed_as_of you still get the earlier dates. docs/how-to/compact-and-vacuum.md describes the details.`,
  answer: async (call) => {
    await openedLake(call)
    const redated = await redate(call.settings.data, call.catalogue, lakeWorld(call, 'redate'))
    return { document: redated, words: () => redatedInWords(redated) }
  },
})

function mergedInWords(summary: MergeSummary): string {
  const { partitions, files_removed, files_added, rows, bytes_before, bytes_after, version } = summary
  if (partitions === 0) return `nothing to merge (version ${version})\n`
  return `version ${version}: ${several(files_removed, 'file')} of ${several(partitions, 'partition')} became ${files_added}
${several(rows, 'row')}, ${bytes(bytes_before)} became ${bytes(bytes_after)}; the old files stay until \`pitlake vacuum --yes\`
`
}

function redatedInWords({ partitions, made, version, unknown }: RedateSummary): string {
  const left = unknown.length === 0 ? '' : `not in the catalogue, dates kept: ${unknown.join(', ')}\n`
  if (!made || partitions.length === 0) return `every point is dated by the rules of today\n${left}`
  const rows = partitions.map(({ metric, interval, points, redated }) => [metric, interval, points, redated] as const)
  return `version ${version}: points with new dates\n${table(['metric', 'interval', 'points', 'redated'], rows)}${left}`
}

/** Formats the columns that cost anything, each with its bytes a point. */
function sizeTable(sizes: readonly MetricSize[]): string {
  const points = sizes.reduce((sum, row) => sum + row.points, 0)
  const size = sizes.reduce((sum, row) => sum + row.bytes, 0)
  const rows = sizes.map(({ metric, points: pointCount, bytes_per_point, columns }) => {
    const dear = Object.entries(columns).map(([name, each]) => `${name} ${each.toFixed(each < 0.1 ? 3 : 2)}`)
    return [metric, pointCount, bytes_per_point.toFixed(2), dear.join('  ')] as const
  })
  const total = points === 0 ? 0 : size / points
  return (
    `\n${table(['metric', 'points', 'bytes a point', 'by column'], rows)}all: ${several(points, 'point')}, ` +
    `${bytes(size)}, ${total.toFixed(2)} bytes a point\n`
  )
}

export const vacuumCommand = answering({
  viewsAfter: true,
  options: {
    '--keep DURATION': ['keep files that were in use within this time, such as 7d or 12h', '7d'],
    '--keep-requests DURATION': ['keep requests, runs and their logs that are younger than this', '400d'],
    '--yes': 'remove the files, not only list them',
  },
  details: `vacuum keeps the files of the newest version, of versions that were in use within --keep, and of stamped results. No stored point is
lost, because newer files contain the same rows. Without --yes vacuum only prints what it would remove.`,
  answer: async (call) => {
    const { settings, catalogue, options } = call
    await openedLake(call)
    const { keep: keepSeconds, keepRequests: keepRequestsSeconds, yes: really } = options
    const deps = lakeWorld(call, 'vacuum')
    const what = { root: settings.data, keepSeconds, keepRequestsSeconds, really }
    const views: BuildViews = async (ledger) => await buildViews(ledger, { catalogue, deps })
    const summary = await vacuum(what, { ...deps, buildViews: views })
    return { document: summary, words: () => vacuumedInWords(summary, keepSeconds) }
  },
})

function vacuumedInWords(summary: VacuumSummary, keepSeconds: number): string {
  const { dry_run, data, journal, exports, requests, stamped, version } = summary
  const total = data.bytes + journal.bytes + exports.bytes
  const rows = formatLabelled(
    [
      ['superseded data files', filesInWords(data)],
      ['journal entries', filesInWords(journal)],
      ['old exports', filesInWords(exports)],
      requests.files > 0 && ['old requests, runs, logs', filesInWords(requests)],
      stamped.files > 0 && ['kept for stamped results', filesInWords(stamped)],
    ],
    26,
  )
  const verb = dry_run ? 'would be freed; run it with --yes' : `freed (version ${version})`
  return `${rows}${bytes(total)} ${verb}; kept: what was in use within ${formatDuration(keepSeconds)}\n`
}

export const versionsCommand = answering({
  details: `Replaced files were superseded by files with the same rows. Removed files were deleted by vacuum. observed_as_of selects a version
by its time.`,
  answer: async ({ settings }) => {
    using ledger = await Ledger.openToRead(settings.data)
    const versions = versionChanges(ledger).map((version) => ({
      ...version,
      committed_at: formatMicros(version.committed_at),
    }))
    const words = () => (versions.length === 0 ? 'no version yet\n' : table(header, versions.map(line)))
    return { document: versions, words }
  },
})

const header = ['version', 'committed at', 'job', 'points added', 'added', 'replaced', 'removed', 'also']

function line(one: Omit<VersionChange, 'committed_at'> & { readonly committed_at: string }): (string | number)[] {
  const { version, committed_at, job, points_added, added, replaced, removed } = one
  const also = [
    ...(['violations', 'stamps'] as const).flatMap((name) => (one[name] > 0 ? [`${one[name]} ${name}`] : [])),
    ...(one.rules ? ['rules'] : []),
  ]
  const changes = [added, replaced, removed].map((change) => (change.files === 0 ? '' : filesInWords(change)))
  return [version, committed_at, job, points_added, ...changes, also.join(', ')]
}
