import { type MetricSize, metricSizes } from '../points/sizes.ts'
import { compact, type MergeSummary, mergeVerdict } from '../upkeep/compact.ts'
import { redate, type RedateSummary } from '../upkeep/redate.ts'
import { lakeWorld, openedLake, viewingWorld } from './world.ts'
import { bytes, whole } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { answering } from './spec.ts'

/** `compact`: merges every partition into one file, proves it and puts it in place of the old ones. */
export const compactCommand = answering({
  recorded: true,
  options: {
    '--report': 'then print bytes per point and column of every metric',
    '--redate': 'first date stored points by the availability rules of today, as a version of its own',
  },
  details:
    'Rows and content digest of old and new files are compared before they are exchanged; the old files stay on\ndisk until vacuum. Waits for no job: fetches and readers go on meanwhile. docs/compaction.md tells more.',
  answer: async (call) => {
    const { settings, options, catalogue } = call
    const root = settings.data
    await openedLake(call)
    const redated = options.redate ? await redate(root, catalogue, lakeWorld(call, 'compact')) : null
    const merged = await compact(root, viewingWorld(call, 'compact'))
    const sizes = options.report ? await metricSizes(root) : null
    const report = { ...merged, ...(redated && { redated }), ...(sizes && { sizes }) }
    const words = () => [redated ? dated(redated) : '', inWords(merged), sizes ? sizeTable(sizes) : ''].join('')
    return { document: report, words, error: mergeVerdict(merged) }
  },
})

function inWords(summary: MergeSummary): string {
  const { partitions, files_removed, files_added, rows, bytes_before, bytes_after, version } = summary
  if (partitions === 0) return `nothing to merge (version ${version})\n`
  return `version ${version}: ${whole(files_removed)} files of ${partitions} partitions became ${files_added}
${whole(rows)} rows, ${bytes(bytes_before)} became ${bytes(bytes_after)}; the old files stay until \`pitlake vacuum --yes\`
`
}

function dated({ partitions, made, version, unknown }: RedateSummary): string {
  const left = unknown.length === 0 ? '' : `not in the catalogue, dates kept: ${unknown.join(', ')}\n`
  if (!made || partitions.length === 0) return `every point is dated by the rules of today\n${left}`
  const rows = partitions.map(({ metric, interval, points, redated }) => [metric, interval, points, redated] as const)
  return `version ${version}: points dated anew\n${table(['metric', 'interval', 'points', 'redated'], rows)}${left}`
}

/** The columns that cost anything, each with its bytes a point. */
function sizeTable(sizes: readonly MetricSize[]): string {
  const points = sizes.reduce((sum, one) => sum + one.points, 0)
  const size = sizes.reduce((sum, one) => sum + one.bytes, 0)
  const rows = sizes.map(({ metric, points: own, bytes_per_point, columns }) => {
    const dear = Object.entries(columns).map(([name, each]) => `${name} ${each.toFixed(each < 0.1 ? 3 : 2)}`)
    return [metric, own, bytes_per_point.toFixed(2), dear.join('  ')] as const
  })
  const total = points === 0 ? 0 : size / points
  return `\n${table(['metric', 'points', 'bytes a point', 'by column'], rows)}all: ${whole(points)} points, ${bytes(size)}, ${total.toFixed(2)} bytes a point\n`
}
