import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import {
  holderOf,
  isFree,
  lockCommit,
  lockJob,
  pin,
  pinnedSince,
  tryLock,
  waitForLock,
} from '../../src/lake/store/lock.ts'
import { holderFile, inLake, lockFile } from '../../src/lake/store/layout.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { test as it } from '../helpers/lake-test.ts'

const holder = { pid: 7, host: 'here', command: 'pitlake fetch', since: 1_700_000_000_000_000 }

async function heldByChild(root: string): Promise<ChildProcess> {
  const module = new URL('../../src/lake/store/lock.ts', import.meta.url).href
  const code = `const { lockJob } = await import(${JSON.stringify(module)})
    await lockJob(${JSON.stringify(root)}, 'metrics', { pid: process.pid, host: 'h', command: 'child', since: 1 })
    console.log('held'); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  if (child.stdout) await once(child.stdout, 'data')
  return child
}

describe('locks', () => {
  it('a lock has one holder, and a second job gets the name of the first', async ({ root }) => {
    const lock = await lockJob(root, 'metrics', holder)
    await expect(lockJob(root, 'metrics', holder)).rejects.toMatchObject({
      kind: 'busy',
      message: expect.stringMatching(/process 7 on here \(pitlake fetch\) since 2023-11-14T22:13:20/),
    })
    const other = await lockJob(root, 'registry', holder)
    await other.release()
    await lock.release()
    expect(await holderOf(root, 'metrics')).toBeUndefined()
    await (await lockJob(root, 'metrics', holder)).release()
  })
  it('die with their process, and of many takers one wins', async ({ root }) => {
    const child = await heldByChild(root)
    await expect(lockJob(root, 'metrics', holder)).rejects.toThrow(new RegExp(`process ${child.pid} on h`))
    expect(isFree(root, 'metrics')).toBe(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(isFree(root, 'metrics')).toBe(true)
    const takers = await Promise.all(Array.from({ length: 20 }, () => tryLock(root, 'metrics', holder)))
    expect(takers.filter((lock) => lock !== undefined)).toHaveLength(1)
    for (const lock of takers) await lock?.release()
  })
  it('a lock that is only looked at can be taken by a job', async ({ root }) => {
    await (await lockJob(root, 'metrics', holder)).release()
    const module = new URL('../../src/lake/store/database.ts', import.meta.url).href
    const code = `const { holdFile } = await import(${JSON.stringify(module)})
        const hold = holdFile(${JSON.stringify(inLake(root, lockFile('metrics')))})
        console.log('held')
        process.stdin.once('data', () => setTimeout(() => { hold.release(); process.exit() }, 20))`
    const looker = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(looker.stdout, 'data')
    looker.stdin.write('go')
    // This thread waits in the lock itself, however long the looker takes.
    const lock = await lockJob(root, 'metrics', holder, 200_000)
    expect(await holderOf(root, 'metrics')).toEqual(holder)
    await lock.release()
  })
  it('are looked at again soon, however long they are waited for', async ({ root }) => {
    await using _lock = await lockJob(root, 'commit', holder)
    const pauses: number[] = []
    const sleep = async (ms: number): Promise<void> => void pauses.push(ms)
    const waiting = { sleep, random: () => 0.5, seconds: 2 }
    expect(await waitForLock(root, 'commit', holder, waiting)).toBeUndefined()
    expect(pauses.slice(0, 4)).toEqual([2, 3, 4.5, 6.75])
    expect(Math.max(...pauses)).toBe(100)
    const waited = pauses.reduce((sum, ms) => sum + ms, 0)
    expect([waited > 2000, waited <= 2100]).toEqual([true, true])
  })
  it('name no holder, and no time, where their file is not whole', async ({ root }) => {
    const lock = await lockJob(root, 'metrics', holder)
    await using _lock = await pin(root, 'r', { ...holder, since: 5 })
    for (const left of ['{"pid":7,"host":"here","command":"pitlake fetch"}', '{"pid":7,"since":"x"}', '7', '{']) {
      for (const name of ['metrics', 'pin-r']) writeFileSync(inLake(root, holderFile(name)), left)
      await expect(lockJob(root, 'metrics', holder), left).rejects.toMatchObject({
        kind: 'busy',
        message: expect.stringContaining('a process that has not said its name yet'),
      })
      expect(await pinnedSince(root), left).toBe(0)
    }
    await lock.release()
  })
  it('make commits wait for each other, and give up with a name', async ({ root }) => {
    const deps = commitDeps()
    let inside = 0
    const work = async (): Promise<void> => {
      const lock = await lockCommit(root, holder, deps)
      expect(++inside).toBe(1)
      await deps.sleep(3)
      inside--
      await lock.release()
    }
    await Promise.all(Array.from({ length: 10 }, work))
    const lock = await lockCommit(root, holder, deps)
    await expect(lockCommit(root, holder, { ...deps, sleep: async () => undefined }, 1)).rejects.toThrow(/process 7/)
    await lock.release()
  })
})
