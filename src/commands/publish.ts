import { randomUUID } from 'node:crypto'
import { publish, type PublishSummary } from '../publish/publish.ts'
import { destinationOf } from '../publish/s3.ts'
import type { Destination, Web } from '../publish/destination.ts'
import { type PublishedVacuum, vacuumPublished } from '../publish/vacuum.ts'
import { bytes, several, whole } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { realDisk } from '../store/disk.ts'
import { formatDuration } from '../time.ts'
import { answering, type Deps } from './spec.ts'
import { besideWorld, lakeWorld, openedLake } from './world.ts'

/** `publish`: the lake as Delta tables, for engines on other machines. */
export const publishCommand = answering({
  name: 'publish',
  ends: [3, 4, 5, 6, 7],
  recorded: true,
  args: [{ name: 'dest', about: 'a folder, or s3://bucket/prefix', required: true }],
  options: {
    '--lake': 'also copy journal, stamps and files to DEST/lake, for pitlake pull',
    '--verify': 'also read what is there and compare its checksums, not only names and sizes',
    '--vacuum': 'instead, say which published files no kept version of a table needs',
    '--keep DURATION': {
      about: 'with --vacuum: versions that were the newest within this time can be read afterwards',
      default: '7d',
    },
    '--yes': 'with --vacuum: really remove them',
  },
  details:
    'Each table becomes visible by one commit, `versions` last: it says which version of each table belongs to which\nversion of the lake. Killed at any instant, the same command goes on. docs/publish.md has the tables and who reads them.',
  answer: async (input, { settings, catalogue }, deps) => {
    await openedLake(deps, settings.data)
    const to = destinationNamed(input.args[0], deps)
    const what = { root: settings.data, catalogue, to }
    const world = lakeWorld(deps, 'publish')
    const { lake: withLake, verify, vacuum, keep: keepSeconds, yes: really } = input.options
    if (!vacuum) {
      const summary = await publish({ ...what, withLake, verify }, world)
      return { document: summary, words: () => inWords(summary) }
    }
    const freed = await vacuumPublished({ ...what, keepSeconds, really }, world)
    return { document: freed, words: () => freedInWords(freed, keepSeconds) }
  },
})

/** The real world behind what asks a bucket. */
export function webOf(deps: Deps): Web {
  return { ...besideWorld(deps), env: deps.env }
}

/** The destination of that name, as this call reaches it. */
export function destinationNamed(name = '', deps: Deps): Destination {
  return destinationOf(name, { disk: realDisk, mark: randomUUID().slice(0, 13), cwd: deps.cwd, web: webOf(deps) })
}

function inWords(summary: PublishSummary): string {
  const { lake_copy: copy } = summary
  const files = copy && `${several(copy.files, 'file')}, ${bytes(copy.bytes)}`
  const { missing, changed } = summary.lost
  const found = [
    missing > 0 ? `${several(missing, 'file')} missing or cut` : '',
    changed > 0 ? `${several(changed, 'file')} changed` : '',
  ]
  const lost =
    missing + changed === 0
      ? ''
      : `found there: ${found.filter((text) => text !== '').join(', ')}; all were brought again\n`
  return `${lost}${ofTables(summary)}${copy ? `version ${copy.version} is in lake/: ${files} came\n` : ''}`
}

function ofTables({ destination, version, tables }: PublishSummary): string {
  const rows = Object.entries(tables).map(
    ([name, { delta_version, files_added, files_removed, bytes_added }]) =>
      [name, delta_version, files_added, files_removed, bytes(bytes_added)] as const,
  )
  if (rows.length === 0) return `${destination} tells of version ${version} already\n`
  return `version ${version} of the lake is at ${destination}\n${table(['table', 'delta version', 'files added', 'files removed', 'bytes'], rows)}`
}

function freedInWords({ dry_run, files, bytes: size }: PublishedVacuum, keepSeconds: number): string {
  const verb = dry_run ? 'would be freed; run it with --yes' : 'freed'
  return `${whole(files)} files, ${bytes(size)} ${verb}; kept: what was in use within ${formatDuration(keepSeconds)}\n`
}
