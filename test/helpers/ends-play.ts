import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ListedCommand, optionsOf } from '../../src/interfaces/cli/spec.ts'
import { commandTable } from '../../src/interfaces/commands/table.ts'
import { jsonOf } from '../../src/base/json.ts'
import type { Row } from './ends-rows.ts'
import { files, type Prepared } from './ends-words.ts'
import { openStage, type Played, type Stage } from './ends-stage.ts'
import { sample } from './tiers.ts'

/** Every command by its name. */
export const specs: ReadonlyMap<string, ListedCommand> = new Map(
  await Promise.all(commandTable.map(async ({ name, load }) => [name, await load()] as const)),
)

/** What the text tells to type: each command with its flags. */
function typed(text: string): { readonly command: string; readonly flags: readonly string[] }[] {
  return [...text.matchAll(/pitlake ((?:(?:--)?[a-z][a-z-]*(?: |$|(?=[;,.`:\n])))+)/g)].flatMap(([, words = '']) => {
    const named = words.trim().split(' ')
    const two = named.slice(0, 2).join(' ')
    const command = specs.has(two) ? two : (named[0] ?? '')
    return command.startsWith('--') ? [] : [{ command, flags: named.filter((word) => word.startsWith('--')) }]
  })
}

const nameOf = ([command, rest, scene, code]: Row): string =>
  `${[command, rest].join(' ').trim()} ${JSON.stringify(scene)} ends with ${code}`

/** How a command ended, as the message of a failed expectation: a part of it alone does not tell why it differs. */
function wholeEnd({ code, signal, out, err, left }: Played): string {
  const how = signal === undefined || signal === null ? `with ${code}` : `by ${signal}`
  return `it ended ${how}\nstdout: ${out}\nstderr: ${err}\nleft: ${(left ?? []).join(', ')}`
}

/** Whether the disk fills, or another commit is waited for. */
const isPatient = ([, , scene]: Row): boolean => scene.with === 'full-disk' || scene.with === 'impatient'

/** The first row of each command. */
const firsts = (rows: readonly Row[]): readonly Row[] =>
  rows.filter(([command], n) => rows.findIndex(([other]) => other === command) === n)

/** The first row of each exit code. */
const onesOfCodes = (rows: readonly Row[]): readonly Row[] =>
  [...Map.groupBy(rows, ([, , , code]) => code).values()].map((same) => same[0] as Row)

/**
 * A test a row: the command, where the row says, ends as the row says, and nothing of it is left that would keep a
 * process. The full tier plays every sixth row (`PITLAKE_CASES=all`: each), half of the commands also as a process of
 * their own, and so full disks and held commits; the fast tier plays one row of each exit code.
 */
export function playRows(rows: readonly Row[], prepared: readonly Prepared[], isFull: boolean): void {
  const played = isFull ? sample(rows, rows.length, Math.ceil(rows.length / 6)) : onesOfCodes(rows)
  const alone = new Set(isFull ? sample(firsts(played), 1, Math.ceil(firsts(played).length / 2)) : played)
  for (const row of played) if (isFull && isPatient(row)) alone.add(row)
  let stage: Stage
  beforeAll(async () => (stage = await openStage(files, prepared)))
  afterAll(async () => await stage[Symbol.asyncDispose]())

  test.each(played.map((row) => [nameOf(row), row] as const))('%s', async (_, row) => {
    const [command, rest, scene, code, out, err] = row
    const json = typeof out === 'object' && !(out instanceof RegExp)
    const words = rest.split(' ').filter((word) => word !== '')
    const ended = await stage.play(
      [...command.split(' '), ...words, ...(json ? ['--json'] : [])],
      scene,
      alone.has(row),
    )
    const whole = wholeEnd(ended)
    const said = err === '' ? '' : (expect.stringMatching(err) as string)
    expect([ended.code, ended.err], whole).toEqual([code, said])
    if (json) expect(jsonOf(ended.out), whole).toMatchObject(out)
    else expect(ended.out, whole).toEqual(out === '' ? '' : expect.stringMatching(out))
    expect(ended.left ?? [], whole).toEqual([])
    expect(ended.out + ended.err).not.toContain('ends-metrics-key')
    expect(ended.out + ended.err).not.toContain('ends-registry-key')
    for (const { command: next, flags } of typed(ended.err)) {
      const spec = specs.get(next)
      expect(spec === undefined ? next : 'known', whole).toBe('known')
      const known = spec === undefined ? [] : optionsOf(spec).flatMap(({ flags }) => /--[a-z-]+/.exec(flags) ?? [])
      expect([...known, '--help', '--data'], whole).toEqual(expect.arrayContaining([...flags]))
    }
  })
}
