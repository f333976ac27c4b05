import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { usage } from '../errors.ts'
import { gridOptions, panelOptions } from '../query/options.ts'
import { type Decisions, panelSpec, panelSql } from '../query/panel.ts'
import { flagsOf, givenOptions } from './flags.ts'
import { dataFolder, queryOptions } from './query.ts'
import { writeAnswer } from './sql.ts'
import { type Deps, talking } from './spec.ts'

const describedOptions = { ...gridOptions, ...panelOptions }

/** `panel`: decisions × metrics, one column each. */
export const panelCommand = talking({
  name: 'panel',
  ends: [4, 5, 6],
  options: {
    '--decisions FILE':
      'CSV or Parquet with the columns asset and ts (only ts with --universe); all its columns are kept',
    ...flagsOf(describedOptions),
    '--explain': 'print the SQL instead of running it',
    ...queryOptions,
  },
  details: [
    'A zone-less ts is UTC. Each decision comes back once, in the order of the file.',
    '',
    "Example: pitlake panel --calendar 2024-01-01,2024-07-01,1d --assets BTC,ETH --metrics 'supply/current_pit' --out panel.parquet",
  ].join('\n'),
  run: async (input, deps) => {
    const { decisions, explain } = input.options
    const panel = panelSpec(givenOptions(describedOptions, input.options), 'terminal', decisionsIn(decisions, deps))
    const sql = panelSql(panel)
    if (explain) return deps.stdout(`${sql.decisions};\n${sql.query};\n`)
    await writeAnswer(input, deps, dataFolder(input, deps), { panel })
  },
})

/** The file of the decisions. */
function decisionsIn(file: string | undefined, deps: Deps): Decisions | undefined {
  if (file === undefined) return undefined
  const path = resolve(deps.cwd, file)
  if (!existsSync(path)) throw usage('--decisions', { expected: 'a CSV or Parquet file', got: `no file ${path}` })
  return { kind: 'file', path }
}
