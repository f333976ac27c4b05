import { LakeError } from '../../base/errors.ts'
import { checkFeatures, type FeatureChecked } from '../../trust/features/check.ts'
import { bringFeatures, type FeatureTold } from '../../trust/features/features.ts'
import { several, formatCount } from '../../base/figures.ts'
import { timeoutOption, withinTime } from '../cli/context.ts'
import { answering } from '../cli/spec.ts'
import { requireLake, lakeWorld } from '../cli/world.ts'

export const featuresCommand = answering({
  viewsAfter: true,
  recorded: true,
  args: { '[name...]': 'names of features (default: all)' },
  options: {
    '--check': 'compute all values again, as of the time they were computed, and compare bit for bit',
    ...timeoutOption,
  },
  details: `A feature is a query that a catalogue declares under \`features:\`. Its values become the series feature/NAME. pitlake accepts a
feature only if it does not look ahead. Its plan proves that, or tests find no leak; tested values are each computed as of their own time.

Exit 4: the feature looks ahead; the output shows the row that differs. Exit 6: that could not be decided. Running features again
adds nothing.`,
  answer: async (call) => {
    const { args: names, settings, catalogue } = call
    requireLake(settings.data)
    if (call.options.check) {
      const features = await checkFeatures(settings.data, names, withinTime(call))
      const [wrong] = features.filter(({ differing }) => differing > 0)
      const next = 'pitlake doctor proves the files; after a change of rules, declare another version'
      const subject = wrong && `${wrong.differing} values of ${wrong.name} v${wrong.version} are others now`
      const error = subject === undefined ? null : new LakeError('integrity', { subject, next })
      return { document: { features }, words: () => features.map(checkedInWords).join(''), error }
    }
    const input = { root: settings.data, catalogue, names, within: withinTime(call) }
    const { told: reports, error } = await bringFeatures(input, lakeWorld(call, 'features'))
    return { document: { features: reports }, words: () => reports.map(inWords).join(''), error }
  },
})

function checkedInWords({ name, version, rows, differing }: FeatureChecked): string {
  const found = differing === 0 ? 'the same bit for bit' : `${formatCount(differing)} differ`
  return `${name} v${version}: ${several(rows, 'row')}, ${found}\n`
}

/** Summarizes the results of all features, as daily and watch report them. */
export function summarizeFeatures(reports: readonly (FeatureTold | FeatureChecked)[]): string {
  const rows = reports.reduce((sum, report) => sum + ('rows_added' in report ? report.rows_added : 0), 0)
  return `${several(rows, 'row')} of ${several(reports.length, 'feature')} added`
}

/** Formats the state of a feature as a line. */
export function inWords({
  name,
  version,
  status,
  reason,
  rows_added,
  until,
  waits_for,
  recomputed_for,
}: FeatureTold): string {
  const added = `${several(rows_added, 'row')} added${until === null ? '' : `, until ${until}`}`
  const bad = status !== 'proved' && status !== 'tested'
  const anew = recomputed_for && `computed again: the version before was computed without ${recomputed_for}`
  const parts = [bad ? null : added, anew, reason, waits_for && `waits for ${waits_for}`].filter(Boolean)
  return `${name} v${version}: ${status}${parts.map((part) => `, ${part}`).join('')}\n`
}
