import { afterAll, beforeAll } from 'vitest'
import { type Rig, withRig } from './fetching.ts'

/** One rig for all tests of a file, made ready before the first of them. */
export function rigOfFile(now: number, prepare: (rig: Rig) => Promise<void>): () => Rig {
  let rig: Rig | undefined
  let finish: () => void = () => undefined
  let ended: Promise<void> | undefined
  beforeAll(async () => {
    await new Promise<void>((ready, fail) => {
      ended = withRig(now, async (opened) => {
        rig = opened
        await prepare(opened)
        await new Promise<void>((done) => {
          finish = done
          ready()
        })
      })
      ended.catch(fail)
    })
  })
  afterAll(async () => {
    finish()
    await ended
  })
  return () => {
    if (rig === undefined) throw new Error('no rig is ready')
    return rig
  }
}
