import { entryText, type Named, seriesGroup, treeValue } from '../merkle/state.ts'
import { leafHash } from '../merkle/tree.ts'
import { canonical, type Entry, type Json, sha256 } from './entry.ts'
import { type Index, parsed } from './row.ts'

/** What of the state an entry changes goes into its tree; the caller has applied the rest of it. */
export function applyTree(index: Index, { rules, state, tables, progress }: Entry): void {
  const touched = new Set<string>()
  if (rules) touched.add(putRules(index, rules.rules))
  for (const [key, value] of Object.entries(state)) touched.add(putMember(index, 'state', key, stateValue(value)))
  for (const [table, rows] of Object.entries(tables ?? {})) {
    const before = memberOf(index, 'registry', table) ?? ''
    touched.add(putMember(index, 'registry', table, sha256(`${before}\n${rows}`)))
  }
  for (const { series, digests } of progress) if (digests) touched.add(putSeries(index, series))
  for (const group of touched) putMember(index, '', group, treeValue(heldMembers(index, group)))
}

const stateValue = (value: Json): string => sha256(canonical(value))

function putRules(index: Index, rules: Json): string {
  index.exec("DELETE FROM tree WHERE grp = 'rules'")
  for (const [path, own] of Object.entries(rules as Readonly<Record<string, Json>>))
    putMember(index, 'rules', path, sha256(canonical(own)))
  return 'rules'
}

/** The months of a series, each with how many points it has and their chain, as its tree takes them. */
export function heldChains(index: Index, series: string): Named[] {
  const rows = index
    .statement(
      `SELECT month, points, coalesce(chain, '-') AS chain FROM digests
       WHERE series = (SELECT n FROM series WHERE id = ?) ORDER BY month`,
    )
    .all(series)
  return rows.map(({ month, points, chain }) => [String(month), `${points} ${chain}`])
}

function putSeries(index: Index, series: string): string {
  const row = index.statement('SELECT metric FROM series WHERE id = ?').get(series)
  return putMember(index, seriesGroup(String(row?.['metric'])), series, treeValue(heldChains(index, series)))
}

function putMember(index: Index, group: string, name: string, value: string): string {
  index.statement('INSERT OR REPLACE INTO tree (grp, name, value) VALUES (?, ?, ?)').run(group, name, value)
  return group
}

function memberOf(index: Index, group: string, name: string): string | undefined {
  const row = index.statement('SELECT value FROM tree WHERE grp = ? AND name = ?').get(group, name)
  return row === undefined ? undefined : String(row['value'])
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

/** Makes the tree, and the leaves of the log, where a checkpoint of an older program tells none. */
export function tellTree(index: Index): void {
  for (const { version, digest } of index.statement('SELECT version, digest FROM versions WHERE leaf IS NULL').all()) {
    const told = { version: Number(version), committed_at: 0, digest: String(digest), root: null }
    index.statement('UPDATE versions SET leaf = ? WHERE version = ?').run(leafHash(entryText(told)), Number(version))
  }
  if (index.statement('SELECT 1 FROM tree').get() !== undefined) return
  const rules = index.statement('SELECT rules FROM rules ORDER BY version DESC LIMIT 1').get()
  const groups = new Set(rules === undefined ? [] : [putRules(index, parsed(rules['rules'], 'rules'))])
  for (const { key, value } of index.statement('SELECT key, value FROM state').all())
    groups.add(putMember(index, 'state', String(key), stateValue(parsed(value, String(key)))))
  for (const { id } of index.statement('SELECT id FROM series WHERE n IN (SELECT series FROM digests)').all())
    groups.add(putSeries(index, String(id)))
  for (const group of groups) putMember(index, '', group, treeValue(heldMembers(index, group)))
}

/** The leaves of the log: one for each version from the first on. */
export function heldLeaves(index: Index): string[] {
  return index
    .statement('SELECT leaf FROM versions ORDER BY version')
    .all()
    .map(({ leaf }) => String(leaf))
}
