import { randomUUID } from 'node:crypto'
import { publish, type PublishSummary } from '../publish/publish.ts'
import { destinationOf } from '../publish/open.ts'
import { bytes } from '../report/page/words.ts'
import { realDisk } from '../store/disk.ts'
import { readContext } from './context.ts'
import { json, table } from './print.ts'
import { type CommandSpec, flagOption } from './spec.ts'
import { besideWorld, lakeWorld, openedLake } from './world.ts'

/** `publish`: the lake as Delta tables, for engines on other machines. */
export const publishCommand: CommandSpec = {
  name: 'publish',
  summary: 'Write the lake as Delta tables for Spark, Trino, ClickHouse, polars and DuckDB; only what changed.',
  args: [{ name: 'dest', about: 'a folder, or s3://bucket/prefix', required: true }],
  options: [{ flags: '--json', about: 'one JSON document on stdout' }],
  details:
    'Each table becomes visible by one commit, `versions` last: it says which version of each table belongs to which\nversion of the lake. Killed at any instant, the same command goes on. docs/publish.md has the tables and who reads them.',
  run: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    await openedLake(deps, settings.data)
    const web = { ...besideWorld(deps), env: deps.env }
    const to = destinationOf(input.args[0] ?? '', { disk: realDisk, mark: randomUUID().slice(0, 13), web })
    const summary = await publish({ root: settings.data, catalogue, to }, lakeWorld(deps, 'publish'))
    if (flagOption(input, 'json')) deps.stdout(json(summary))
    else deps.stdout(inWords(summary))
  },
}

function inWords({ destination, version, tables }: PublishSummary): string {
  const rows = Object.entries(tables).map(
    ([name, { delta_version, files_added, files_removed, bytes_added }]) =>
      [name, delta_version, files_added, files_removed, bytes(bytes_added)] as const,
  )
  if (rows.length === 0) return `${destination} tells of version ${version} already\n`
  return `version ${version} of the lake is at ${destination}\n${table(['table', 'delta version', 'files added', 'files removed', 'bytes'], rows)}`
}
