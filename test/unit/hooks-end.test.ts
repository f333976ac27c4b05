import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'vitest'
import { withHooks } from '../../src/interfaces/commands/frame.ts'
import type { Deps, Input } from '../../src/interfaces/cli/spec.ts'
import { LakeError, usage } from '../../src/base/errors.ts'
import { test } from '../helpers/lake-test.ts'
import { partOf } from '../helpers/part-of.ts'

test('a hook gets the exit code of an ended job; a call refused before its start runs no hook', async ({
  root: home,
}) => {
  writeFileSync(join(home, 'pitlake.yaml'), 'hooks: { on_done: cat >> told }\n')
  const deps = partOf<Deps>({
    now: () => 0,
    elapsed: () => 0,
    random: Math.random,
    cwd: home,
    isTerminal: false,
    env: { PATH: process.env['PATH'] },
    signal: new AbortController().signal,
    sleep: async () => await setImmediate(),
    stderr: (text: string) => void said.push(text),
  })
  const said: string[] = []
  const input: Input = {
    args: [],
    options: { data: join(home, 'data'), config: undefined, memory: undefined, verbose: false },
  }
  const ended = async (work: () => Promise<number | undefined>): Promise<void> =>
    void (await withHooks('fetch', { ...input, ...deps }, work).catch(() => undefined))
  const next = 'wait'
  for (const refused of [usage('--x'), new LakeError('busy', { subject: 'another job', next })]) {
    await ended(() => Promise.reject(refused))
    expect([existsSync(join(home, 'told')), said]).toEqual([false, []])
  }
  await ended(async () => await Promise.resolve(undefined))
  await ended(() => Promise.reject(new LakeError('integrity', { subject: 'a file', next })))
  const told = readFileSync(join(home, 'told'), 'utf8').trimEnd().split('\n')
  expect(told.map((line) => JSON.parse(line) as unknown)).toEqual(
    [
      [0, null],
      [4, 'a file; wait'],
    ].map(([exit_code, error]) => expect.objectContaining({ command: 'fetch', exit_code, error }) as unknown),
  )
  expect(said).toEqual([])
})
