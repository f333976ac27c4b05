import { gravestOf } from '../../base/errors.ts'
import { kinds } from '../../base/option-kinds.ts'
import { withFeatures } from './follow.ts'
import { importOwn } from '../../sources/user-files/import.ts'
import { intervals } from '../../base/time.ts'
import { formatCount, several } from '../../base/figures.ts'
import { answering } from '../cli/spec.ts'
import { askingWorld } from '../cli/world.ts'

export const importCommand = answering({
  viewsAfter: true,
  recorded: true,
  args: { '[file...]': 'Parquet, CSV, JSON lines or Arrow: paths, globs, folders; or a SELECT' },
  options: {
    '--as NAME': 'what it becomes: the series own/NAME',
    '--guess': 'import nothing: propose a mapping of the file, with what cannot be known from it as questions',
    '--asset COL': ['the column that names the asset, or =BTC for all (default: asset)', kinds.text],
    '--t COL': 'the column of the instant that each row is about (default: t)',
    '--value COL': 'the column of the value (default: value)',
    '--components LIST': 'instead, the columns that make up the value, by comma: open,high,low,close',
    '--interval NAME': [`${intervals.join(', ')} (default: the distance of the rows)`, kinds.choice(intervals)],
    '--timestamp WORD': [
      'what t marks: interval_start (default) or interval_end',
      kinds.choice(['interval_start', 'interval_end']),
    ],
    '--available-at COL': 'the column of the instant from which the value was known',
    '--available RULE':
      'when it was known: end, end+15m, start; open=start,close=end of parts; export: by the day in the name of the file',
    '--zone NAME': 'the zone of times without one, and of days (default: UTC)',
    '--ambiguous WORD': [
      'which is meant of a time that the clocks of the zone show twice: earlier or later (default: refused)',
      kinds.choice(['earlier', 'later']),
    ],
    '--unit WORD': ['of instants that are numbers: s, ms, us or ns', kinds.choice(['s', 'ms', 'us', 'ns'])],
    '--null TEXT': 'the text that stands for a missing value, such as . (an empty cell does in any case)',
    '--expected WORD': [
      'weekdays: no points are expected on Saturdays and Sundays (UTC), which are no gaps then',
      kinds.choice(['weekdays']),
    ],
    '--vintage COL': 'the column of the instant at which this vintage of the value was published',
    '--revisable': 'values may be revised: each change is a further vintage, and no violation',
    '--currency COL': 'the column of the currency, or =usd for all',
    '--exchange COL': 'the column of the exchange, or =NAME for all',
    '--network COL': 'the column of the network, or =NAME for all',
    '--max-bytes SIZE': ['refuse to begin with more', kinds.size, '64GB'],
  },
  details:
    'Without a file, imports all `sources:` of the catalogues that pitlake.yaml names; --as picks one. How a series was mapped\nis kept in the lake: the next import needs no more than the file and --as. All of the files is taken, or nothing where a\nrow cannot be used. The same again changes nothing, a changed value is a violation (exit 4), what a file lacks stays.\nDeclared features that are due are computed afterwards.',
  answer: async (call) => {
    const { args, options, settings, catalogue, cwd, stderr } = call
    const importInput = { root: settings.data, maxBytes: options.maxBytes, files: args, catalogue, cwd, options }
    if (options.guess) {
      const { guessed } = await import('../../sources/user-files/guess.ts')
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

/** Summary of one import. */
type Imported = Awaited<ReturnType<typeof importOwn>>[number]['summary']

function inWords({
  name,
  rows,
  points_added,
  vintages_added,
  left_because,
  late,
  violations,
  version,
}: Imported): string {
  const left = Object.entries(left_because).filter(([, count]) => count > 0)
  const because = left.map(([why, count]) => `${formatCount(count)} ${why}`).join(', ')
  const vintages = vintages_added === 0 ? '' : `, ${formatCount(vintages_added)} vintages`
  const tardy = late === 0 ? '' : `, ${formatCount(late)} late`
  return `own/${name}: ${several(points_added, 'point')} added${vintages}${tardy} of ${several(rows, 'row')}${because && ` (left: ${because})`}, ${several(violations, 'violation')}, version ${version}\n`
}
