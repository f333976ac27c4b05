import { randomOf } from './random.ts'
import type { Desk } from './importing.ts'
import { expect } from 'vitest'

/* Dated vintages of user data, late, backdated and withdrawn ones among them. */

export const day = 86_400
export const began = Date.UTC(2024, 2, 1) / 1000
export const assets = ['A', 'B']
export const commits = ['2024-03-20T12:00:00Z', '2024-04-05T12:00:00Z', '2024-05-01T12:00:00Z'] as const
export const seconds = (text: string): number => Date.parse(text) / 1000
export const iso = (at: number): string => new Date(at * 1000).toISOString()

/**
 * What a file says of a day of an asset, null for a value that is withdrawn; known from `dated`, stored since
 * `observed`.
 */
export interface Vintage {
  readonly asset: string
  readonly t: number
  readonly v: number | null
  readonly dated: number
  readonly observed: number
}

/** What each import says anew: of days that begin at the fourth of a month on some are far behind all others. */
export function drawVintages(seed: number): Vintage[] {
  const random = randomOf(seed)
  const draw = (most: number): number => Math.floor(random() * most)
  const all: Vintage[] = []
  for (const [n, commit] of commits.entries())
    for (let k = 0; k < 40; k++) {
      const asset = assets[draw(2)] ?? ''
      const t = began + (draw(8) + (n > 0 && draw(3) === 0 ? 20 : 0)) * day
      const dated = t + day + draw(24) * 3600 + draw(30) * day
      if (dated > seconds(commit) || all.some((one) => one.asset === asset && one.t === t && one.dated === dated))
        continue
      all.push({ asset, t, v: random() < 0.3 ? null : draw(4), dated, observed: seconds(commit) })
    }
  return all
}

/** Imports of files that grow, each also as one of two components. */
export async function importAll({ put, take }: Desk, all: readonly Vintage[]): Promise<void> {
  for (const commit of commits) {
    const rows = all.filter(({ observed }) => observed <= seconds(commit))
    const lines = rows.map(
      ({ asset, t, v, dated }) => `${asset},${iso(t)},${iso(dated)},${v ?? ''},${v === null ? '' : v + 1}`,
    )
    const file = put('vintages.csv', `asset,t,told,v,w\n${lines.toReversed().join('\n')}\n`)
    for (const [name, ...value] of [
      ['number', '--value', 'v'],
      ['object', '--components', 'v,w'],
    ]) {
      const argv = [file, '--as', name ?? '', '--interval', '24h', '--vintage', 'told', ...value]
      expect(await take(argv, commit)).toMatchObject({ code: 0, message: '', told: { violations: 0 } })
    }
  }
}
