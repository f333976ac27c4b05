import { loadCoverage } from '../../src/lake/ledger/index-queries.ts'
import { reading } from './ledgers.ts'
import type { OwnProvider } from './provider.ts'

type CoverageRow = NonNullable<ReturnType<ReturnType<typeof loadCoverage>['get']>>[number]

const day = 86_400

/** Those of the points that lie in the asked window. */
export function inWindow<Point extends { readonly t: number }>(query: URLSearchParams, points: readonly Point[]) {
  const since = Number(query.get('s'))
  const until = Number(query.get('u'))
  return points.filter(({ t }) => t >= since && t < until)
}

/** The windows of what was asked for since the last look but of listings, in days since `start`. */
export function askedDays(own: OwnProvider, start: number, name: (url: URL) => string = () => ''): string[] {
  const urls = own.seen.splice(0).filter((url) => !url.endsWith('/assets'))
  return urls.map((text) => {
    const url = new URL(text, 'http://x')
    const [since, until] = ['s', 'u'].map((key) => (Number(url.searchParams.get(key)) - start) / day)
    return `${name(url)}${since}..${until}`
  })
}

/**
 * What the ledger of a lake says of windows, in days since `start`: what is known of each, or what else `say` tells.
 */
export async function heldDays(
  root: string,
  start: number,
  say: (row: CoverageRow) => string = ({ reason, state }) => reason ?? state,
): Promise<string[]> {
  const rows = await reading(root, (ledger) => [...loadCoverage(ledger).values()].flat())
  return rows.map((row) => `${(row.since - start) / day}..${(row.until - start) / day} ${say(row)}`)
}
