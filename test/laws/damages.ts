import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { seal } from '../../src/lake/ledger/entry.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { pitlake } from '../helpers/command.ts'
import type { Rig } from '../helpers/fetching.ts'
import { fetchKey, otherKey } from '../helpers/fetching.ts'
import { writing } from '../helpers/ledgers.ts'
import { entryText, writeEntryText } from '../helpers/entries.ts'

/*
 * A small lake with a file of every kind, and what may happen to each kind: lost, torn, of another lake, older, newer,
 * or such that nobody can read it (a folder in its place: root may read everything else).
 */

/** A lake, the same a few versions earlier, and another lake of the same shape. */
export interface Lakes {
  readonly sound: string
  readonly older: string
  readonly other: string
}

const day = 86_400
const since = '2024-03-20'
const metrics = 'blockchain/block_height_pit,supply/current_pit'

/** The names below a folder that fit, sorted. */
export const named = (root: string, pattern: string): string[] => globSync(pattern, { cwd: root }).toSorted()

/** What a command in the lake of a rig is given. */
export function placeOf(rig: Rig) {
  const env = {
    PITLAKE_METRICS_URL: rig.url,
    PITLAKE_METRICS_KEY: fetchKey,
    PITLAKE_REGISTRY_URL: `${rig.url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: otherKey,
  }
  return async (root: string, ...argv: string[]) =>
    await pitlake(root, [...argv, '--data', root], env, { now: () => rig.clock.now * 1000 })
}

/** What a lake of these asks for. */
export const fetchWords = ['fetch', '--paths', metrics, '--assets', 'BTC,ETH', '--since', since]

/**
 * Versions of fetches and of the registry, merged once, three of them folded into a checkpoint that stands for their
 * entries, with a stamped result; the last one a fetch.
 */
async function begin(rig: Rig, root: string, keep: () => void): Promise<void> {
  const run = placeOf(rig)
  const ok = async (...argv: string[]): Promise<void> => {
    const { code, message } = await run(root, ...argv)
    if (code !== 0) throw new Error(`${argv.join(' ')}: ${code} ${message}`)
    rig.clock.now += day
  }
  await ok(...fetchWords)
  await ok('registry', 'sync')
  await ok(...fetchWords)
  const folded = await writing(root, async (ledger) => await writeCheckpoint(realDisk, ledger))
  for (const name of named(root, 'journal/*[0-9].json.gz'))
    if (Number(name.slice(8, 18)) <= folded) rmSync(join(root, name))
  await ok('compact')
  writeFileSync(join(root, '..', 'q.sql'), 'SELECT count(*) AS n FROM points')
  await ok('stamp', '../q.sql', '--out', '../r.parquet')
  keep()
  await ok(...fetchWords)
  await ok('registry', 'sync')
  await ok(...fetchWords)
}

/** Makes the lakes below a folder; views name where they were made, which is `lake`. */
export async function makeLakes(rig: Rig, home: string): Promise<Lakes> {
  const root = join(home, 'lake')
  const older = join(home, 'older')
  const { now } = rig.clock
  for (const name of ['other', 'sound']) {
    rig.clock.now = now
    mkdirSync(root)
    await begin(rig, root, () => name === 'sound' && cpSync(root, older, { recursive: true }))
    renameSync(root, join(home, name))
  }
  return { sound: join(home, 'sound'), older, other: join(home, 'other') }
}

type Harm = (root: string, lakes: Lakes) => void

const first = (root: string, pattern: string): string => {
  const [name] = named(root, pattern)
  if (name === undefined) throw new Error(`nothing there is ${pattern}`)
  return name
}
const last = (root: string, pattern: string): string => named(root, pattern).at(-1) ?? first(root, pattern)

const entries = 'journal/*[0-9].json.gz'
const checkpoints = 'journal/*.checkpoint.jsonl'
/** Those that the newest version reads: merged ones are the last of their folders. */
const partition = 'points/metric=supply*/**/*.parquet'
const recent = 'points/recent/*.parquet'

/** Takes a path away, with what SQLite keeps beside an index. */
const lose =
  (find: (root: string) => string): Harm =>
  (root) => {
    const path = find(root)
    for (const ending of ['', '-wal', '-shm']) rmSync(join(root, path + ending), { recursive: true, force: true })
  }
const cut =
  (find: (root: string) => string, bytes: number): Harm =>
  (root) =>
    existsSync(join(root, find(root))) && truncateSync(join(root, find(root)), bytes)
/** Nobody can read it, not even root. */
const block =
  (find: (root: string) => string): Harm =>
  (root, lakes) => {
    const path = find(lakes.sound)
    lose(() => path)(root, lakes)
    mkdirSync(join(root, path, 'inside'), { recursive: true })
  }
const bring =
  (from: keyof Lakes, find: (root: string) => string): Harm =>
  (root, lakes) => {
    const path = find(lakes.sound)
    lose(() => path)(root, lakes)
    mkdirSync(join(root, path, '..'), { recursive: true })
    copyFileSync(join(lakes[from], find(lakes[from])), join(root, path))
  }
const is = (path: string) => () => path
/** What stands there when the harm is done, or stood there in the sound lake. */
const at =
  (pattern: string, pick: (names: readonly string[]) => string | undefined) =>
  (root: string): string =>
    pick(named(root, pattern)) ?? 'nothing'

const middle = at(entries, (names) => names[Math.floor(names.length / 2)])
const lastEntry = at(entries, (names) => names.at(-1))

/** Another text of an entry, sealed. */
const rewriteEntry =
  (find: (root: string) => string, changes: object): Harm =>
  (root, lakes) => {
    const path = find(lakes.sound)
    const { sha256: _, ...entry } = JSON.parse(entryText(join(lakes.sound, path))) as { sha256: string }
    mkdirSync(join(root, 'journal'), { recursive: true })
    writeEntryText(join(root, path), seal(JSON.stringify({ ...entry, ...changes })).text)
  }

/** What may happen to each kind of file, by name: tried in pairs. */
export const harms: Readonly<Record<string, Harm>> = {
  'first entry lost': lose(at(entries, (names) => names[0])),
  'middle entry torn': cut(middle, 200),
  'middle entry of another lake': bring('other', middle),
  'last entry emptied': cut(lastEntry, 0),
  'last entry lost': lose(lastEntry),
  'last entry of a newer program': rewriteEntry(lastEntry, { schema_version: 99, program: 'pitlake 99.0.0' }),
  'checkpoint lost': lose(at(checkpoints, (names) => names[0])),
  'journal lost': lose(is('journal')),
  'ledger lost': lose(is('ledger.sqlite')),
  'ledger of another lake': bring('other', is('ledger.sqlite')),
  'ledger older': bring('older', is('ledger.sqlite')),
  'ledger misses a row': (root) => {
    if (!existsSync(join(root, 'ledger.sqlite'))) return
    const database = new DatabaseSync(join(root, 'ledger.sqlite'))
    try {
      database.exec(`DELETE FROM files WHERE tbl = 'points' AND path LIKE '%recent%' AND removed_version IS NULL`)
    } catch {
      // torn by the other harm
    } finally {
      database.close()
    }
  },
  'ledger unreadable': block(is('ledger.sqlite')),
  'marker of another lake': bring('other', is('lake.json')),
  'merged points lost': lose(at(partition, (names) => names.at(-1))),
  'recent points torn': cut(
    at(recent, (names) => names.at(-1)),
    100,
  ),
  'registry history lost': lose(at('registry/history.products/*.parquet', (names) => names.at(-1))),
  'registry body torn': cut(
    at('registry/raw/feed/*', (names) => names[0]),
    20,
  ),
  'runs lost': lose(is('runs')),
  'stamp torn': cut(
    at('stamps/*.json', (names) => names[0]),
    30,
  ),
  'views unreadable': block(is('lake.duckdb')),
  'views older': (root, { older }) => {
    for (const name of ['lake.duckdb', 'lake.sql', 'lake.manifest.json']) {
      rmSync(join(root, name), { recursive: true, force: true })
      copyFileSync(join(older, name), join(root, name))
    }
  },
  'exports lost': lose(is('exports')),
  'locks of a killed process': (root) => {
    mkdirSync(join(root, 'locks'), { recursive: true })
    writeFileSync(join(root, 'locks/metrics.json'), '{"pid":1,')
    mkdirSync(join(root, 'spool/20240101t000000000z-1'), { recursive: true })
    appendFileSync(join(root, 'spool/20240101t000000000z-1/left'), 'x')
  },
}

/** More of the kind: tried alone. */
export const others: Readonly<Record<string, Harm>> = {
  'checkpoint torn': cut(
    at(checkpoints, (names) => names[0]),
    900,
  ),
  'ledger torn': (root, lakes) => {
    lose(is('ledger.sqlite'))(root, lakes)
    writeFileSync(join(root, 'ledger.sqlite'), 'no database'.repeat(400))
  },
  'marker lost': lose(is('lake.json')),
  'marker unreadable': block(is('lake.json')),
  'merged points unreadable': block(at(partition, (names) => names.at(-1))),
  'recent points of another lake': (root, { sound, other }) =>
    copyFileSync(join(other, last(other, recent)), join(root, last(sound, recent))),
  'assets lost': lose(at('assets/*.parquet', (names) => names.at(-1))),
  'stamp lost': lose(at('stamps/*.json', (names) => names[0])),
  'what a stamp keeps lost': lose(at('stamps/coverage*', (names) => names[0])),
  'views lost': lose(is('lake.duckdb')),
  'list of the views torn': cut(is('lake.manifest.json'), 50),
}
