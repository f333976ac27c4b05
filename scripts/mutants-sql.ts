import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { allMutants, digest, type Mutant, sampled } from './mutants/sql-mutants.ts'
import { roomOf, testsOf } from './mutants/sql-rooms.ts'
import { put, Tree, type Verdict } from './mutants/sql-tree-run.ts'

/** A mutant that changes nothing that can be seen, with the line that proves it; reviewed by people. */
interface Equivalent {
  readonly file: string
  readonly mutant: string
  readonly why: string
}

/** What became of a mutant. */
interface Outcome extends Omit<Verdict, 'status'> {
  readonly file: string
  readonly line: number
  readonly kind: string
  readonly mutant: string
  readonly status: Verdict['status'] | 'equivalent'
}

/** What is kept of an earlier run: it holds while the mutated file and the tests that spoke are the same. */
type Kept = Record<string, Verdict & { readonly tests: string }>

const [given = 'sql', count = '', seed = ''] = process.argv.slice(2)
const room = given === 'sql' ? undefined : given.replace(/^sql:/, '')
const keptPath = '.cache/mutants/sql-kept.json'
/** Beyond this a mutant has made the tests endless. */
const seconds = 420

const kept: Kept = existsSync(keptPath) ? (JSON.parse(readFileSync(keptPath, 'utf8')) as Kept) : {}
const equivalents = listed()

function listed(): ReadonlySet<string> {
  const path = 'test/mutants/equivalent.yaml'
  const list = existsSync(path) ? ((parse(readFileSync(path, 'utf8')) ?? []) as Equivalent[]) : []
  return new Set(list.map(({ file, mutant }) => `${file}\n${mutant}`))
}

const texts = new Map<string, string>()

function hashOf(paths: readonly string[]): string {
  return digest(
    paths
      .map((path) => {
        const text = texts.get(path) ?? digest(existsSync(path) ? readFileSync(path, 'utf8') : '')
        texts.set(path, text)
        return text
      })
      .join('\n'),
  )
}

/** The tests whose word counts: of a killed mutant the one that noticed, else all. */
function spokenBy({ status, by }: Verdict, tests: readonly string[]): readonly string[] {
  if (status === 'invalid') return []
  return status === 'killed' && by !== undefined && tests.includes(by) ? [by] : tests
}

async function judge(tree: () => Promise<Tree>, { file, mutant, text }: Mutant): Promise<Verdict> {
  const tests = testsOf(file)
  const key = digest(`${file}\n${mutant}\n${digest(text)}`)
  const known = kept[key]
  if (known && known.tests === hashOf(spokenBy(known, tests))) return known
  const verdict = await (await tree()).ask(file, text, tests, seconds)
  await refuseRed(await tree(), verdict)
  kept[key] = { ...verdict, tests: hashOf(spokenBy(verdict, tests)) }
  put(keptPath, JSON.stringify(kept))
  return verdict
}

const green = new Set<string>()

/** A test that fails anyway would kill everything: the first time that one notices something it is asked without a mutant. */
async function refuseRed(tree: Tree, { by }: Verdict): Promise<void> {
  if (by === undefined || !existsSync(by) || green.has(by)) return
  const { status, said } = await tree.run([by], seconds)
  if (status !== 'survived') throw new Error(`without any mutant ${by} fails: ${said ?? status}`)
  green.add(by)
}

function print(outcomes: readonly Outcome[]): void {
  const line = (cells: readonly (string | number)[]): string =>
    cells.map((cell, n) => (n === 0 ? String(cell).padEnd(12) : String(cell).padStart(11))).join('')
  console.log(line(['room', 'run', 'killed', 'survived', 'equivalent', 'invalid', 'timeout', '%']))
  const rooms = [...Map.groupBy(outcomes, ({ file }) => roomOf(file)), ['all', outcomes] as const]
  for (const [name, own] of rooms) {
    const of = (status: Outcome['status']): number => own.filter((one) => one.status === status).length
    const noticed = of('killed') + of('timeout')
    const percent = ((100 * noticed) / Math.max(1, noticed + of('survived'))).toFixed(1)
    const counts = (['killed', 'survived', 'equivalent', 'invalid', 'timeout'] as const).map(of)
    console.log(line([name, own.length, ...counts, percent]))
  }
}

const mutants = allMutants(room)
const chosen = sampled(mutants, count === '' ? mutants.length : Number(count), seed === '' ? '1' : seed)
console.log(`${chosen.length} of ${mutants.length} mutants, seed ${seed === '' ? '1' : seed}`)
let tree: Promise<Tree> | undefined
const outcomes: Outcome[] = []
try {
  const made = async (): Promise<Tree> => await (tree ??= Tree.make())
  for (const [n, one] of chosen.entries()) {
    const { file, line, kind, mutant } = one
    const verdict = equivalents.has(`${file}\n${mutant}`) ? { status: 'equivalent' as const } : await judge(made, one)
    outcomes.push({ file, line, kind, mutant, ...verdict })
    if (verdict.status === 'survived')
      console.log(`${n + 1}/${chosen.length} survived ${file}:${line} ${kind}: ${mutant}`)
  }
} finally {
  await (await tree)?.close()
}
const of = (status: Outcome['status']): number => outcomes.filter((one) => one.status === status).length
put(
  `.cache/mutants/${given.replaceAll(':', '-')}.json`,
  JSON.stringify(
    {
      room: given,
      seed: seed === '' ? '1' : seed,
      commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
      made: mutants.length,
      sampled: chosen.length,
      killed: of('killed'),
      survived: of('survived'),
      equivalent: of('equivalent'),
      invalid: of('invalid'),
      timeouts: of('timeout'),
      mutants: outcomes,
    },
    null,
    1,
  ),
)
print(outcomes)
