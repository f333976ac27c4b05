import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type Equivalent, equivalents } from './mutants/rooms.ts'
import { allMutants, digest, type Mutant, sampled } from './mutants/sql-mutants.ts'
import { roomOf, testsOf } from './mutants/sql-rooms.ts'
import { type Asked, Tree, type Verdict } from './mutants/sql-tree-run.ts'

/** What became of a mutant. */
interface Outcome extends Omit<Verdict, 'status'> {
  readonly file: string
  readonly line: number
  readonly kind: string
  readonly mutant: string
  readonly status: Verdict['status'] | 'equivalent'
  readonly only?: Equivalent['only']
}

/** What is kept of an earlier run: it holds while the mutated file and the tests that spoke are the same. */
type Kept = Record<string, Verdict & { readonly tests: string; readonly quick?: boolean }>

const folder = '.cache/mutants'
const keptPath = `${folder}/sql-kept.json`
const texts = new Map<string, string>()

function hashOf(paths: readonly string[]): string {
  for (const path of paths)
    if (!texts.has(path)) texts.set(path, digest(existsSync(path) ? readFileSync(path, 'utf8') : ''))
  return digest(paths.map((path) => texts.get(path)).join('\n'))
}

/** Cases are read by one test file. */
const cases = 'test/views/cases.test.ts'

/** The tests whose word counts: of a killed mutant the one that noticed, else all. */
function restsOn({ status, by }: Verdict, tests: readonly string[]): string {
  if (status === 'invalid') return ''
  const own = status === 'killed' && by !== undefined && tests.includes(by) ? [by] : tests
  return hashOf(status === 'survived' && own.includes(cases) ? [...own, ...caseFiles] : own)
}

const caseFiles = globSync('test/views/cases/*.sql').toSorted()

function keyOf({ file, mutant, source }: Mutant): string {
  return digest(`${file}\n${mutant}\n${digest(source)}`)
}

/** Tries what nothing is known of, and answers what is known of each then; what is equivalent is not tried. */
async function judge(chosen: readonly Mutant[]): Promise<ReadonlyMap<Mutant, Verdict>> {
  const kept: Kept = existsSync(keptPath) ? (JSON.parse(readFileSync(keptPath, 'utf8')) as Kept) : {}
  const verdicts = new Map<Mutant, Verdict>()
  // What is noticed is noticed by the tests as they are now, whoever edits them meanwhile.
  hashOf([...caseFiles, ...chosen.flatMap(({ file }) => testsOf(file).flat())])
  const open: Asked[] = []
  for (const [n, mutant] of chosen.entries()) {
    const known = kept[keyOf(mutant)]
    const [quick, dear] = testsOf(mutant.file)
    const holds = known && known.tests === restsOn(known, known.quick === true ? quick : [...quick, ...dear])
    if (holds) verdicts.set(mutant, known)
    if (!holds || (known.quick === true && !onlyQuick)) open.push({ id: `m${n}`, mutant, tests: [] })
  }
  console.log(`${chosen.length} mutants, ${open.length} to be tried`)
  if (open.length === 0) return verdicts
  const tree = new Tree(open)
  // Ended from outside, it ends what it started.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  process.once('exit', () => tree.close())
  for (const stage of onlyQuick ? ([0] as const) : ([0, 1] as const)) {
    const survived = ({ mutant }: Asked): boolean => verdicts.get(mutant)?.status === 'survived'
    const stages = open.filter((one) => survived(one) === (stage === 1))
    const asked = stages.map((one) => ({ ...one, tests: testsOf(one.mutant.file)[stage] }))
    const tell = ({ mutant }: Asked, verdict: Verdict): void => {
      verdicts.set(mutant, verdict)
      const [tests, dear] = testsOf(mutant.file)
      const quick = stage === 0 && verdict.status === 'survived' && dear.length > 0
      kept[keyOf(mutant)] = { ...verdict, quick, tests: restsOn(verdict, quick ? tests : [...tests, ...dear]) }
      writeFileSync(keptPath, JSON.stringify(kept))
      if (verdict.status === 'survived') console.log(`survived${quick ? ' the quick tests' : ''}: ${said(mutant)}`)
    }
    await tree.run(asked, tell, (text) => console.log(text))
  }
  return verdicts
}

function said({ file, line, kind, mutant }: Pick<Mutant, 'file' | 'line' | 'kind' | 'mutant'>): string {
  return `${file}:${line}: ${kind}: ${mutant}`
}

function count(outcomes: readonly Outcome[]) {
  const of = (status: Outcome['status']): number => outcomes.filter((one) => one.status === status).length
  const [survived, equivalent, invalid, timeouts] = [of('survived'), of('equivalent'), of('invalid'), of('timeout')]
  const only = outcomes.filter((one) => one.only !== undefined).length
  return { sampled: outcomes.length, killed: of('killed') + timeouts, survived, only, equivalent, invalid, timeouts }
}

function table(outcomes: readonly Outcome[]): string[] {
  const rooms = [...Map.groupBy(outcomes, ({ file }) => roomOf(file))].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [
    '| room | sampled | killed | survived | of these only speed | equivalent | cannot be bound | of killed, without an end | % |',
    ...[...rooms, ['all', outcomes] as const].map(([room, own]) => {
      const { sampled, killed, survived, only, equivalent, invalid, timeouts } = count(own)
      const share = ((100 * killed) / Math.max(1, killed + survived)).toFixed(1)
      return `| ${room} | ${sampled} | ${killed} | ${survived} | ${only} | ${equivalent} | ${invalid} | ${timeouts} | ${share} |`
    }),
  ]
}

/** Whether what survives the quick tests is left at that: a first look. */
const onlyQuick = process.env['PITLAKE_MUTANTS'] === 'quick'
const [given = 'sql', number = '', seed = '22'] = process.argv.slice(2).map((word) => (word === '' ? undefined : word))
mkdirSync(folder, { recursive: true })
const mutants = allMutants(given === 'sql' ? undefined : given.replace(/^sql:/, ''))
const chosen = sampled(mutants, Number(number || mutants.length), seed)
const proved = new Map(equivalents('.').map((one) => [`${one.file}\n${one.mutant}`, one]))
const provenOf = ({ file, mutant }: Mutant): Equivalent | undefined => proved.get(`${file}\n${mutant}`)
const verdicts = await judge(chosen.filter((one) => provenOf(one) === undefined))
const outcomes = chosen.map((one): Outcome => {
  const { file, line, kind, mutant } = one
  const only = provenOf(one)?.only
  const known = only === undefined ? ({ status: 'equivalent' } as const) : ({ status: 'survived', only } as const)
  return { file, line, kind, mutant, ...(verdicts.get(one) ?? known) }
})
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
const report = { room: given, seed, commit, made: mutants.length, ...count(outcomes), mutants: outcomes }
writeFileSync(`${folder}/${given.replaceAll(':', '-')}.json`, JSON.stringify(report, null, 1))
for (const one of outcomes)
  if (one.status === 'survived') console.log(`survived${one.only ? ` (only ${one.only})` : ''}: ${said(one)}`)
for (const line of table(outcomes)) console.log(line)
