import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { concernOf } from './mutants/concerned.ts'
import type { Line } from './mutants/inside.ts'
import { digest, instrument, sample } from './mutants/instrument.ts'
import type { Mutant } from './mutants/instrument.ts'
import { tryAlone, tryTogether } from './mutants/judge.ts'
import type { Killed, Place } from './mutants/judge.ts'
import { run } from './mutants/process.ts'
import { equivalents, roomsOf } from './mutants/rooms.ts'
import type { Equivalent, Room } from './mutants/rooms.ts'

/** What became of one mutant. */
interface Judged {
  readonly file: string
  readonly line: number
  /** The line as it stands. */
  readonly at: string
  readonly mutant: string
  readonly status: 'killed' | 'timeout' | 'equivalent' | 'survived'
  /** What alone a survivor changes, where that is proved. */
  readonly only?: Equivalent['only'] | undefined
  readonly by?: string | undefined
  readonly key: string
  /** What the verdict rests on: the digest of the test file that killed it, or of those that did not, stage by stage. */
  readonly rests: readonly string[]
}

interface Report {
  readonly room: string
  readonly seed: number
  readonly commit: string
  readonly sampled: number
  readonly killed: number
  readonly survived: number
  readonly equivalent: number
  readonly timeouts: number
  readonly mutants: readonly Judged[]
  readonly seen: Seen
}

/** What each test file came by, with the digest of it and of the room. */
type Seen = Readonly<Record<string, { readonly of: string; readonly lines: readonly Line[] }>>

const root = join(import.meta.dirname, '..')
const cache = join(root, '.cache/mutants')
const say = (text: string): void => console.log(text)
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const listed = (patterns: readonly string[]): readonly string[] => globSync([...patterns], { cwd: root }).toSorted()

/** Judges a sample of a room: by its quick tests, and what survives these by its dear ones, where it has any. */
async function judgeRoom(name: string, room: Room, count: number, seed: number): Promise<Report> {
  const [work, tree] = [join(cache, name), join(cache, name, 'tree')]
  const mutants = sample(await instrument(root, tree, room.files), count, seed)
  const file = join(cache, `${name}.json`)
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Report) : undefined
  const known = new Map((before?.mutants ?? []).map((one) => [one.key, one]))
  const killed: Killed = new Map()
  for (const { id, key } of mutants) {
    const { by, rests, status } = known.get(key) ?? {}
    if (by !== undefined && rests?.[0] === digestOf([by.split(': ')[0] ?? ''])) {
      killed.set(id, { by, timeout: status === 'timeout' })
    }
  }
  say(`${name}: ${mutants.length} mutants; ${killed.size} were killed before by tests that did not change`)
  const rests = new Map<string, string[]>(mutants.map(({ id }) => [id, []]))
  let seen: Seen = before?.seen ?? {}
  const place: Place = { tree, work, say, keep: () => void save(verdicts(mutants, killed, new Map())) }
  const all: Line[] = []
  const unsure = new Set<string>()
  // What is proved to change nothing is not tried.
  const proved = verdicts(mutants, new Map(), new Map()).flatMap(({ status, only }, n) =>
    status === 'equivalent' || only !== undefined ? [mutants[n]?.id] : [],
  )
  for (const [stage, tests] of [listed(room.tests), listed(room.dear ?? [])].entries()) {
    const open = mutants.filter(({ id }) => !killed.has(id) && !proved.includes(id))
    if (open.length === 0 || tests.length === 0) continue
    seen = await look(place, room, tests, seen)
    const lines = tests.flatMap((test) => seen[test]?.lines ?? [])
    const concern = concernOf(lines)
    for (const { id } of open) {
      const tried = [concern.direct.get(id) ?? [], concern.beside.get(id) ?? []].flat()
      rests.get(id)?.push(digestOf(tried.map((one) => one.file)))
    }
    const fresh = open.filter(({ id, key }) => known.get(key)?.rests[stage] !== rests.get(id)?.[stage])
    all.push(...lines)
    for (const { id } of fresh) unsure.add(id)
    await tryTogether(place, [...unsure], concern, killed)
  }
  await tryAlone(place, [...unsure], concernOf(all), killed)
  say(`  ${killed.size} of ${mutants.length} killed`)
  return save(verdicts(mutants, killed, rests))

  function save(judged: readonly Judged[]): Report {
    const report = reportOf(name, seed, judged, seen)
    writeFileSync(file, JSON.stringify(report, null, 1))
    return report
  }
}

/** What the tests come by; those are not run again that neither changed themselves nor in what they stand on. */
async function look(place: Omit<Place, 'keep'>, room: Room, tests: readonly string[], seen: Seen): Promise<Seen> {
  const ground = listed(['test/helpers/**/*.ts', ...room.files])
  const of = (file: string): string => digestOf([...ground, file])
  const files = tests.filter((file) => seen[file]?.of !== of(file))
  if (files.length === 0) return seen
  const env = { PITLAKE_MUTANTS_SEEN: join(place.work, 'seen.jsonl') }
  const { lines } = await run({ ...place, todo: { files }, env, testTimeout: 300_000, silence: 300_000 })
  const found = files.map(
    (file) => [file, { of: of(file), lines: lines.filter((line) => 'file' in line && line.file === file) }] as const,
  )
  for (const [file, { lines: none }] of found) if (none.length === 0) say(`  ${file}: no test of it passed`)
  say(`  looked at ${files.length} test files`)
  return { ...seen, ...Object.fromEntries(found) }
}

function digestOf(files: readonly string[]): string {
  return digest(
    [...new Set(files)]
      .toSorted()
      .map((file) => (existsSync(join(root, file)) ? read(file) : ''))
      .join('\n'),
  )
}

function verdicts(
  mutants: readonly Mutant[],
  killed: Killed,
  rests: ReadonlyMap<string, readonly string[]>,
): readonly Judged[] {
  const proved = equivalents(root)
  return mutants.map(({ id, file, line, text, key }) => {
    const at = read(file).split('\n')[line - 1]?.trim() ?? ''
    const death = killed.get(id)
    if (death !== undefined) {
      const { by, timeout } = death
      const of = [digestOf([by.split(': ')[0] ?? ''])]
      return { file, line, at, mutant: text, status: timeout ? 'timeout' : 'killed', by, key, rests: of }
    }
    const same = proved.find((one) => one.file === file && one.mutant === text && at.includes(one.at ?? ''))
    const status = same && same.only === undefined ? 'equivalent' : 'survived'
    return { file, line, at, mutant: text, status, only: same?.only, key, rests: rests.get(id) ?? [] }
  })
}

function reportOf(room: string, seed: number, mutants: readonly Judged[], seen: Seen): Report {
  const count = (status: Judged['status']): number => mutants.filter((one) => one.status === status).length
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  const timeouts = count('timeout')
  const killed = count('killed') + timeouts
  const told = { killed, survived: count('survived'), equivalent: count('equivalent'), timeouts }
  return { room, seed, commit, sampled: mutants.length, ...told, mutants, seen }
}

async function main([which = '', count = '', seed = '', quick = '']: readonly string[]): Promise<number> {
  const rooms = roomsOf(root)
  const names = Object.keys(rooms)
  const chosen = which === '' ? names.filter((_, n) => quick === '' || n % 2 === Number(seed) % 2) : which.split(',')
  mkdirSync(cache, { recursive: true })
  const reports: Report[] = []
  for (const name of chosen) {
    const room = rooms[name]
    if (room === undefined) {
      console.error(`no room ${name}; there are ${Object.keys(rooms).join(', ')} and sql`)
      return 2
    }
    const { dear: _, ...own } = room
    const unit = quick === 'unit' ? listed(own.tests).filter((file) => file.startsWith('test/unit/')) : []
    const tried = quick === '' ? room : unit.length > 0 ? { ...own, tests: unit } : own
    reports.push(await judgeRoom(name, tried, Number(count || 150), Number(seed || 22)))
  }
  for (const { mutants } of reports) {
    for (const { file, line, mutant, status, only } of mutants) {
      if (status === 'survived') say(`survived${only ? ` (only ${only})` : ''}: ${file}:${line}: ${mutant}`)
    }
  }
  say(
    '| room | sampled | killed | survived | of these only words, logs, speed | equivalent | of killed, without an end | % |',
  )
  for (const { room, sampled, killed, survived, equivalent, timeouts, mutants } of reports) {
    const only = mutants.filter((one) => one.only !== undefined && one.status === 'survived').length
    const share = ((100 * killed) / Math.max(1, sampled - equivalent)).toFixed(1)
    say(`| ${room} | ${sampled} | ${killed} | ${survived} | ${only} | ${equivalent} | ${timeouts} | ${share} |`)
  }
  const sum = (count: (report: Report) => number): number => reports.reduce((all, report) => all + count(report), 0)
  const [noticed, all] = [sum(({ killed }) => killed), sum(({ sampled, equivalent }) => sampled - equivalent)]
  say(`${noticed} of ${all} changes were noticed`)
  // Few places and quick tests: less than this is a defect of the tool, not chance.
  return noticed < all / 4 ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
