import { createHash } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Instrumenter } from '@stryker-mutator/instrumenter'
import { wordsOnly } from './words.ts'

/** One change of the source, which the instrumented program makes while its id is active. */
export interface Mutant {
  readonly id: string
  readonly file: string
  readonly line: number
  /** What stands there and what stands there instead, on one line: `a < b -> a <= b`. */
  readonly text: string
  /** The same for as long as the file is the same. */
  readonly key: string
}

const silent: Readonly<Record<string, () => void>> = Object.fromEntries(
  ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].flatMap((level) => [
    [level, () => undefined],
    [`is${level[0]?.toUpperCase()}${level.slice(1)}Enabled`, () => false],
  ]),
)

/**
 * Stands at the head of every instrumented file instead of Stryker's own: a switch that costs one comparison, counts
 * where it is open so that a loop without an end ends, and writes down what a process of its own came by.
 */
const header = `var stryS: any = (globalThis as any).mutants ??= (() => {
  const { __STRYKER_ACTIVE_MUTANT__: active, PITLAKE_MUTANTS_SEEN: file, PITLAKE_MUTANTS_TEST: test } = process.env
  const seen = file === undefined ? undefined : new Set()
  const told = new Set()
  const tell = () => {
    const ids = [...seen].filter((id) => !told.has(id))
    for (const id of ids) told.add(id)
    if (ids.length > 0) process.getBuiltinModule('node:fs').appendFileSync(file, JSON.stringify({ ...JSON.parse(test ?? '{}'), ids, child: true }) + '\\n')
  }
  // What is killed has no end: it tells on its way, too.
  if (seen && file) process.on('exit', tell) && setInterval(tell, 100).unref()
  return { active, hits: 0, seen }
})();
function stryMutAct_9fa48(id: string) {
  if (stryS.active !== id) return false
  if (++stryS.hits > 5_000_000) throw new Error('a loop without an end')
  return true
}
function stryCov_9fa48(...ids: string[]) { if (stryS.seen !== undefined) for (const id of ids) stryS.seen.add(id) }
`

/** A copy of the project at `tree` in which the given files carry all of their mutants, and those mutants. */
export async function instrument(root: string, tree: string, patterns: readonly string[]): Promise<readonly Mutant[]> {
  copyProject(root, tree)
  const names = globSync([...patterns], { cwd: root }).toSorted()
  const given = names.map((name) => ({ name, mutate: true as const, content: readFileSync(join(root, name), 'utf8') }))
  const ignorers = [{ shouldIgnore: (path: object) => wordsOnly(path as Parameters<typeof wordsOnly>[0]) }]
  const options = { plugins: null, excludedMutations: [], noHeader: true, ignorers }
  const made = await new Instrumenter(silent as never).instrument(given, options)
  for (const { name, content } of made.files) {
    writeFileSync(
      join(tree, name),
      content.replace(/^(#!.*\n)?/, (first) => `${first}// @ts-nocheck\n${header}`),
    )
  }
  const sources = new Map(given.map(({ name, content }) => [name, content]))
  return made.mutants
    .filter(({ status }) => status !== 'Ignored')
    .map(({ id, fileName, location, replacement }) => {
      const source = sources.get(fileName) ?? ''
      const lines = source.split('\n')
      const text = `${oneLine(cut(lines, location))} -> ${oneLine(replacement)}`
      const where = `${fileName}:${location.start.line + 1}:${location.start.column}`
      return {
        id,
        file: fileName,
        line: location.start.line + 1,
        text,
        key: digest(`${digest(source)} ${where} ${text}`),
      }
    })
}

/** `count` of the mutants, drawn by a seed: which ones depends on file and place alone. */
export function sample(mutants: readonly Mutant[], count: number, seed: number): readonly Mutant[] {
  const drawn = mutants.map(
    (mutant) => [digest(`${seed} ${mutant.file} ${mutant.line} ${mutant.text}`), mutant] as const,
  )
  return drawn
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, count)
    .map(([, mutant]) => mutant)
}

/** What a text is known by. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 20)
}

function copyProject(root: string, tree: string): void {
  rmSync(tree, { recursive: true, force: true })
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' })
  for (const name of listed.split('\0').filter((path) => path !== '' && existsSync(join(root, path)))) {
    mkdirSync(join(tree, dirname(name)), { recursive: true })
    cpSync(join(root, name), join(tree, name), { force: true })
  }
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
}

interface Place {
  readonly start: { readonly line: number; readonly column: number }
  readonly end: { readonly line: number; readonly column: number }
}

function cut(lines: readonly string[], { start, end }: Place): string {
  const part = lines.slice(start.line, end.line + 1)
  const last = part.length - 1
  return part.map((line, n) => line.slice(n === 0 ? start.column : 0, n === last ? end.column : undefined)).join(' ')
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > 100 ? `${line.slice(0, 80)} … ${line.slice(-15)}` : line
}
