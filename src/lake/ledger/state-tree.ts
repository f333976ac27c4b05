import { type Named, treeValue } from '../../base/merkle/state.ts'
import { canonical, type Entry, type NamedState, type Progress, sha256 } from './entry.ts'
import type { Index } from './index-rows.ts'

/** The parts of an entry that change the signed state of the log. */
type StateChange = Partial<Pick<Entry, 'rules' | 'days'>> & {
  readonly state: NamedState
  readonly progress: readonly Pick<Progress, 'series' | 'digests'>[]
}

/** What of the state an entry changes goes into its tree; the caller has applied the rest of it. */
export function applyTree(index: Index, { rules, state, days, progress }: StateChange): void {
  const touched = new Set<string>()
  const member = index.statement('INSERT OR REPLACE INTO tree (grp, name, value) VALUES (?, ?, ?)')
  const put = (group: string, name: string, value: string): void => {
    member.run(group, name, value)
    touched.add(group)
  }
  if (rules) index.exec("DELETE FROM tree WHERE grp = 'rules'")
  if (rules) touched.add('rules')
  for (const [group, members] of Object.entries({ rules: (rules?.rules ?? {}) as typeof state, state }))
    for (const [name, value] of Object.entries(members)) put(group, name, sha256(canonical(value)))
  // The days of a table stand under its name.
  for (const [table, own] of Object.entries(days ?? {})) {
    for (const [day, value] of Object.entries(own)) member.run(table, day, value)
    index.exec("DELETE FROM tree WHERE value = ''")
    put('registry', table, treeValue(heldMembers(index, table)))
  }
  const changed = progress.flatMap(({ series, digests }) => (digests ? [series] : []))
  for (const group of new Set([...touched, ...putSeries(index, changed)]))
    member.run('', group, treeValue(heldMembers(index, group)))
}

/** The months of series that have points, each with how many and their chain, as their trees take them. */
export function heldChains(index: Index, ids: readonly string[]): Map<string, Named[]> {
  // At once: one question for each of hundreds of series is the most of what a commit pays for the tree.
  const rows = index.statement(
    `SELECT s.id, group_concat(month || ' ' || d.points || ' ' || coalesce(chain, '-'), char(10) ORDER BY month) AS months
     FROM json_each(?) AS e JOIN series AS s ON s.id = e.value LEFT JOIN digests AS d ON d.series = s.n AND d.points > 0 GROUP BY s.n`,
  )
  const named = (one: string): Named => [one.slice(0, 7), one.slice(8)]
  const all = rows.all(JSON.stringify(ids))
  return new Map(
    all.map(({ id, months }) => [String(id), months === null ? [] : String(months).split('\n').map(named)]),
  )
}

function putSeries(index: Index, ids: readonly string[]): string[] {
  const told = [...heldChains(index, ids)].map(([id, months]) => [id, treeValue(months)])
  const put = index.statement(
    `INSERT OR REPLACE INTO tree (grp, name, value)
     SELECT 'series ' || s.metric, s.id, e.value ->> 1 FROM json_each(?) AS e JOIN series AS s ON s.id = e.value ->> 0
     WHERE true RETURNING grp`,
  )
  return put.all(JSON.stringify(told)).map(({ grp }) => String(grp))
}

/** The members of a group of the state, or (`''`) its groups, sorted by their bytes. */
export function heldMembers(index: Index, group = ''): Named[] {
  const rows = index.statement('SELECT name, value FROM tree WHERE grp = ? ORDER BY name').all(group)
  return rows.map(({ name, value }) => [String(name), String(value)])
}

/** The value of the state of the lake. */
export function heldRoot(index: Index): string {
  return treeValue(heldMembers(index))
}

/** The leaves of the log: one for each version from the first on. */
export function heldLeaves(index: Index): string[] {
  const rows = index.statement('SELECT leaf FROM versions ORDER BY version').all()
  return rows.map(({ leaf }) => String(leaf))
}
