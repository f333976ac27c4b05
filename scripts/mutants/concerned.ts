import type { Line } from './inside.ts'

/** A test that comes by a mutant. */
export interface Concerned {
  readonly file: string
  readonly test: string
  readonly ms: number
}

/** Which tests concern which mutant. */
export interface Concern {
  /** By a mutant's id: the tests in whose own process it runs while they run, the quickest first. */
  readonly direct: ReadonlyMap<string, readonly Concerned[]>
  /** By a mutant's id: the tests that could notice it by what is imported, set up before, or runs in a child. */
  readonly beside: ReadonlyMap<string, readonly Concerned[]>
}

/** What the lines of a look say: a mutant met on import or in a hook concerns every test of that file. */
export function concernOf(lines: readonly Line[]): Concern {
  const tests = lines.flatMap((line) => ('ms' in line && line.test !== '' ? [line] : []))
  const unfit = new Set(lines.flatMap((line) => ('unfit' in line ? [`${line.file} ${line.test}`] : [])))
  const fit = tests.filter(({ file, test }) => !unfit.has(`${file} ${test}`))
  const [direct, beside] = [new Map<string, Set<Concerned>>(), new Map<string, Set<Concerned>>()]
  const put = (map: Map<string, Set<Concerned>>, ids: readonly string[], test: Concerned): void => {
    for (const id of ids) map.set(id, (map.get(id) ?? new Set()).add(test))
  }
  const known = new Map<string, Concerned[]>()
  for (const { file, test, ms, ids } of fit) {
    const one = { file, test, ms }
    for (const key of [`file ${file}`, `test ${file} ${test}`]) known.set(key, [...(known.get(key) ?? []), one])
    put(direct, ids, one)
  }
  for (const line of lines) {
    if (!('ids' in line)) continue
    const key = line.test === '' ? `file ${line.file}` : 'child' in line ? `test ${line.file} ${line.test}` : ''
    for (const test of known.get(key) ?? []) put(beside, line.ids, test)
  }
  return { direct: sorted(direct), beside: sorted(beside) }
}

function sorted(map: ReadonlyMap<string, ReadonlySet<Concerned>>): ReadonlyMap<string, readonly Concerned[]> {
  return new Map([...map].map(([id, tests]) => [id, [...tests].toSorted((a, b) => a.ms - b.ms)]))
}
