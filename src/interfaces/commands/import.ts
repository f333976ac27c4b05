import { gravestOf } from '../../base/errors.ts'
import { kinds } from '../../base/option-kinds.ts'
import { withFeatures } from './follow.ts'
import { importOwn, type ImportSummary } from '../../sources/user-files/import.ts'
import { intervals } from '../../base/time.ts'
import { formatCount, several } from '../../base/figures.ts'
import { answering } from '../cli/spec.ts'
import { askingWorld } from '../cli/world.ts'

export const importCommand = answering({
  viewsAfter: true,
  recorded: true,
  args: { '[file...]': 'Parquet, CSV, JSON or Arrow: paths, globs, folders; or a SELECT' },
  options: {
    '--as NAME': 'name of the series: own/NAME',
    '--guess': 'import nothing; print a proposed mapping, with a question for everything that the file does not show',
    '--asset COL': ['column with the asset, or =BTC for all rows (default: asset)', kinds.text],
    '--t COL': 'column with the time that each row describes (default: t)',
    '--value COL': 'column with the value (default: value)',
    '--components LIST': 'columns of a value with several parts, by comma: open,high,low,close',
    '--interval NAME': [`${intervals.join(', ')} (default: the distance of the rows)`, kinds.choice(intervals)],
    '--timestamp WORD': [
      'what t marks: interval_start (default) or interval_end',
      kinds.choice(['interval_start', 'interval_end']),
    ],
    '--available-at COL': 'column with the time from which the value was known',
    '--available RULE':
      'when it was known: end, end+15m, start; close+15m with --sessions; open=start,close=end of parts; ' +
      'export: by the day in the name of the file',
    '--zone NAME': 'zone of dates, and of times without a zone (default: UTC)',
    '--ambiguous WORD': [
      'meaning of a local time that occurs twice: earlier or later (default: refused)',
      kinds.choice(['earlier', 'later']),
    ],
    '--unit WORD': ['unit of times that are numbers: s, ms, us or ns', kinds.choice(['s', 'ms', 'us', 'ns'])],
    '--null TEXT': 'text that means a missing value, such as . (an empty cell always does)',
    '--expected WORD': [
      'weekdays: Saturdays and Sundays (UTC) need no points and are no gaps',
      kinds.choice(['weekdays']),
    ],
    '--sessions CODE':
      'exchange of daily values, such as XNYS, XLON or XTKS: a row on a day without a session is refused, and ' +
      'such a day is no gap',
    '--vintage COL': 'column with the time at which this vintage of the value was published',
    '--revisable': 'store each changed value as a vintage instead of a violation',
    '--currency COL': 'column with the currency, or =usd for all rows',
    '--exchange COL': 'column with the exchange, or =NAME for all rows',
    '--network COL': 'column with the network, or =NAME for all rows',
    '--max-bytes SIZE': ['largest size of all files together', kinds.size, '64GB'],
  },
  details: `Without a file, import reads all \`sources:\` of the catalogues that pitlake.yaml names. --as selects one of them. The lake stores
how a series was mapped, so the next import needs only the file and --as.

An import is all-or-nothing: if one row cannot be used, nothing is stored. Importing the same file again changes nothing. A changed
value is a violation (exit 4). Points that the file lacks stay. At its end import computes the due values of declared features.

Example: pitlake import --guess prices.csv

Example: pitlake import prices.csv --as prices --value close --available end+15m

Example: pitlake import shares.csv --as shares --value close --sessions XNYS --available close+15m`,
  answer: async (call) => {
    const { args, options, settings, catalogue, cwd, stderr } = call
    const importInput = { root: settings.data, maxBytes: options.maxBytes, files: args, catalogue, cwd, options }
    if (options.guess) {
      const { guessMapping: guessed } = await import('../../sources/user-files/guess.ts')
      const text = await guessed(importInput)
      return { document: { mapping: text }, words: () => text }
    }
    const done = await importOwn(importInput, askingWorld(call, 'import'))
    for (const { summary } of done) for (const note of summary.notes) stderr(`note: ${summary.name}: ${note}\n`)
    return await withFeatures(call, (version) => {
      const summaries = done.map(({ summary }) => ({ ...summary, version }))
      return {
        document: args.length > 0 ? { ...summaries[0] } : { imports: summaries },
        words: () => summaries.map(inWords).join(''),
        error: gravestOf(done.map(({ error }) => error)),
      }
    })
  },
})

function inWords({
  name,
  rows,
  points_added,
  vintages_added,
  left_because,
  late,
  violations,
  version,
}: ImportSummary): string {
  const left = Object.entries(left_because).filter(([, count]) => count > 0)
  const because = left.map(([why, count]) => `${formatCount(count)} ${why}`).join(', ')
  const vintages = vintages_added === 0 ? '' : `, ${formatCount(vintages_added)} vintages`
  const tardy = late === 0 ? '' : `, ${formatCount(late)} late`
  return (
    `own/${name}: ${several(points_added, 'point')} added${vintages}${tardy} of ` +
    `${several(rows, 'row')}${because && ` (left: ${because})`}, ${several(violations, 'violation')}, version ` +
    `${version}\n`
  )
}
