import { writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import type { Selection } from '../../src/catalog/series.ts'
import { type Rig, fetchKey, otherKey } from './fetching.ts'
import { type Life, Lives } from './lives.ts'
import { begin, daily, hourly } from './watching.ts'

const day = 86_400

/** Begun three days before the watch: its lag has yet to be learnt. */
export const young = {
  assets: ['BTC'],
  paths: ['breakdowns/addresses_loss_count_by_age_pit'],
  intervals: ['24h'],
  since: begin - 3 * day,
}
const selections: readonly Selection[] = [daily, hourly, young]

/** A lake in a folder, and the command lines that work on it by one clock. */
export interface Soak {
  readonly lives: Lives
  /** Where the lake is. */
  readonly data: string
  readonly run: (argv: readonly string[], node?: readonly string[]) => Life
}

/** A lake that was fetched once, whose watch may begin; the clock is that of the rig. */
export async function begun(rig: Rig): Promise<Soak> {
  const lives = new Lives(rig.clock)
  const { root, url } = rig
  const data = `${root}/lake`
  const select = selections.map((one) => ({ ...one, since: new Date((one.since ?? 0) * 1000).toISOString() }))
  writeFileSync(`${root}/pitlake.yaml`, JSON.stringify({ data, select }))
  const env = {
    PITLAKE_METRICS_URL: url,
    PITLAKE_METRICS_KEY: fetchKey,
    PITLAKE_REGISTRY_URL: `${url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: otherKey,
  }
  const soak: Soak = { lives, data, run: (argv, node = []) => lives.begin(root, env, argv, node) }
  const first = soak.run(['fetch'])
  expect(await finished(soak, first), first.said()).toBe(0)
  return soak
}

/** Lets the clock go on until a process has ended; gives its exit code. */
export async function finished({ lives }: Soak, life: Life): Promise<number | null> {
  while (life.code === undefined) {
    await lives.quiet()
    if (life.code === undefined) lives.pass(lives.now + 60)
  }
  return life.code
}
