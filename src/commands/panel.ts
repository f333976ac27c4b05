import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { usage } from '../errors.ts'
import { gridOptions, panelOptions } from '../query/options.ts'
import { type Decisions, panelSpec, panelSql } from '../query/panel.ts'
import { flagsOf, givenOptions } from './flags.ts'
import { queryOptions } from './query.ts'
import { writeAnswer } from './sql.ts'
import { talking } from './spec.ts'

const describedOptions = { ...gridOptions, ...panelOptions }

/** `panel`: decisions × metrics, one column each. */
export const panelCommand = talking({
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
  run: async (call) => {
    const { decisions, explain } = call.options
    const given = givenOptions(describedOptions, call.options)
    const panel = panelSpec(
      given,
      'terminal',
      decisions === undefined ? undefined : decisionsIn(resolve(call.cwd, decisions)),
    )
    const sql = panelSql(panel)
    if (explain) return call.stdout(`${sql.decisions};\n${sql.query};\n`)
    await writeAnswer(call, { panel })
  },
})

/** The file of the decisions. */
function decisionsIn(path: string): Decisions {
  if (!existsSync(path)) throw usage('--decisions', { expected: 'a CSV or Parquet file', got: `no file ${path}` })
  return { kind: 'file', path }
}
