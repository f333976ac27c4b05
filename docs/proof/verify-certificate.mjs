#!/usr/bin/env node
// Checks certificates of pitlake without pitlake; ../proof.md tells their format, and what they prove.
//   node verify-certificate.mjs CERTIFICATE… [--key PUBLIC] [--head FILE] [--tables DIR]
// prints a line each: valid (exit 0), or not valid and why (exit 4). --key: the public key, or its file, as its owner
// gave it to you by another way; else the certificate's own is taken. --head: a head that you kept. --tables: published
// tables, whose points DuckDB (@duckdb/node-api) digests anew; the result beside a certificate gives its figure again.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

class Refused extends Error {}
const refuse = (why) => { throw new Refused(why) }
const must = (fact, why) => fact || refuse(why)
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
const hex = (bytes) => bytes.toString('hex')
const isText = (value) => typeof value === 'string'
const [isCount, isHash] = [(n) => Number.isSafeInteger(n) && n >= 0, (one) => isText(one) && /^[0-9a-f]{64}$/.test(one)]
const unbased = (text) => Buffer.from(text, 'base64')
const base64 = (text, what) => must(unbased(text).toString('base64') === text && unbased(text), `${what} is no base64`)
const proofOf = (list, what) =>
  must(Array.isArray(list) && list.every(isHash) && list, `${what} is no list`).map((one) => Buffer.from(one, 'hex'))
/** JSON in which no object names a key twice. */
function strictJson(text) {
  const [value, open] = [JSON.parse(text), []]
  // The form is proved: of all signs only strings and brackets matter now.
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}[\]]/g)) {
    if (token === '{' || token === '[') open.push(new Set())
    else if (token === '}' || token === ']') open.pop()
    else {
      const word = JSON.parse(token.replace(/\s*:$/, ''))
      must(word.isWellFormed(), 'half of a character stands there')
      must(!token.endsWith(':') || !open.at(-1).has(word), 'a key stands there twice')
      if (token.endsWith(':')) open.at(-1).add(word)
    }
  }
  return value
}

// --- signed notes and checkpoints (C2SP signed-note, tlog-checkpoint) with Ed25519
function readKey(text) {
  const form = /^([!-*,-~]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/
  const [, name, id, told] = form.exec(text) ?? refuse('the key is no public key')
  const bytes = base64(told, 'the key')
  must(bytes.length === 33 && bytes[0] === 1, 'the key is not one of Ed25519')
  must(hex(sha256(`${name}\n`, bytes)).slice(0, 8) === id, 'the key does not have the id that it names')
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes.subarray(1)])
  return { name, id, key: createPublicKey({ key: der, format: 'der', type: 'spki' }) }
}
/** The text of a note that bears a sound signature of the key, and who else signed it. */
function signedText(note, { name, id, key }, what) {
  const at = note.lastIndexOf('\n\n')
  must(at >= 0 && note.endsWith('\n'), `${what} is no signed note`)
  const [text, others] = [note.slice(0, at + 1), []]
  let sound = false
  for (const line of note.slice(at + 2, -1).split('\n')) {
    const [, who, told] = /^— ([!-*,-~]+) ([A-Za-z0-9+/]+={0,2})$/.exec(line) ?? refuse(`${what} is signed otherwise`)
    const bytes = base64(told, `a signature of ${what}`)
    if (who !== name || hex(bytes.subarray(0, 4)) !== id) others.push(who)
    else {
      const right = bytes.length === 68 && verify(null, Buffer.from(text), key, bytes.subarray(4))
      sound = must(right, `the signature of ${what} is wrong`)
    }
  }
  return must(sound, `${what} is not signed by ${name}`) && { text, others }
}

function readHead(note, key, what) {
  const { text, others } = signedText(must(isText(note) && note, `there is no ${what}`), key, what)
  const form = /^([^\n]+)\n(0|[1-9][0-9]{0,8})\n([A-Za-z0-9+/]{43}=)\n$/
  const [, origin, size, told] = form.exec(text) ?? refuse(`${what} is no checkpoint`)
  return { origin, size: Number(size), root: hex(base64(told, what)), others }
}

// --- trees of RFC 6962: a leaf is hashed behind 0, a node behind 1; left stands the largest power of two below n
const [leafOf, nodeOf] = [(text) => sha256('\0', text), (left, right) => sha256('\x01', left, right)]
const split = (n) => 2 ** Math.floor(Math.log2(n - 1))
/** The root to which an inclusion proof leads from a leaf of a tree of so many; it is told from the leaf upwards. */
function fromLeaf(leaf, index, size, proof) {
  const rest = [...proof]
  const rise = (at, n) => {
    if (n === 1) return leaf
    const left = split(n)
    const next = rest.pop() ?? refuse('the proof of the entry is too short')
    return at < left ? nodeOf(rise(at, left), next) : nodeOf(next, rise(at - left, n - left))
  }
  const root = rise(index, size)
  return must(rest.length === 0 && hex(root), 'the proof of the entry is too long')
}
/** The roots of the older and the newer tree to which a consistency proof leads. */
function fromBoth(older, newer, root, proof) {
  const rest = [...proof]
  const next = () => rest.pop() ?? refuse('a proof of consistency is too short')
  const rise = (m, n, whole) => {
    if (m === n) return Array(2).fill(whole ? Buffer.from(root, 'hex') : next())
    const [left, other] = [split(n), next()]
    const [old, now] = m <= left ? rise(m, left, whole) : rise(m - left, n - left, false)
    return m <= left ? [old, nodeOf(now, other)] : [nodeOf(other, old), nodeOf(other, now)]
  }
  const roots = rise(older, newer, true).map(hex)
  return must(rest.length === 0 && roots, 'a proof of consistency is too long')
}
/** The root of a tree of which some leaves are known by their index; the proof tells the rest, from left to right. */
function fromSome(size, known, proof) {
  const [rest, indices] = [[...proof], [...known.keys()]]
  const rise = (from, n) => {
    if (!indices.some((at) => at >= from && at < from + n)) return rest.shift() ?? refuse('a proof is too short')
    if (n === 1) return known.get(from)
    const left = split(n)
    return nodeOf(rise(from, left), rise(from + left, n - left))
  }
  const root = size === 0 ? sha256('') : rise(0, size)
  return must(rest.length === 0 && hex(root), 'a proof is too long')
}
/** Members of a tree of named values, once they are proved: its value tells how many it has, and its root. */
function provenMembers(value, tree, what) {
  const form = /^(0|[1-9][0-9]{0,8}) ([0-9a-f]{64})$/
  const [, count, root] = (isText(value) && form.exec(value)) || refuse(`${what} is no tree`)
  const { members, proof } = tree ?? {}
  must(Array.isArray(members) && members.length > 0, `${what} proves nothing`)
  const known = new Map()
  let last = -1
  for (const { index, name, value: own } of members) {
    must(isCount(index) && index > last && index < Number(count), `${what} has an index that cannot be`)
    must(isText(name) && isText(own) && !own.includes('\n'), `${what} has a member without name and value`)
    known.set(index, leafOf(`${name}\n${own}`))
    last = index
  }
  must(fromSome(Number(count), known, proofOf(proof, `the proof of ${what}`)) === root, `${what} has another root`)
  return members
}
/** The value of a tree over all of its named values. */
function treeOf(members) {
  must(members.flat().every(isText), 'names and values are no texts')
  const known = new Map(members.map(([name, value], index) => [index, leafOf(`${name}\n${value}`)]))
  return `${known.size} ${fromSome(known.size, known, [])}`
}

// --- the certificate
function check(file, asked) {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file))
  const at = text.lastIndexOf(',\n"signature": ')
  const told = strictJson(must(at >= 0 && text, 'there is no signature'))
  const { signature, public: own, entry } = told
  const end = `,\n"signature": ${JSON.stringify(signature)}\n}\n`
  must(isText(signature) && text.slice(at) === end, 'the signature is not the end')
  must(told.pitlake_certificate === 1 && told.algorithms === 'sha256 ed25519', 'a form or algorithms not known here')
  must(isText(own) && (asked.key ?? own) === own, 'it was signed by another key than yours')
  const key = readKey(own)
  const body = `pitlake certificate\nsha256 ${hex(sha256(text.slice(0, at)))}\n`
  must(signedText(signature, key, 'the certificate').text === body, 'a byte of it changed since it was signed')
  const head = readHead(told.head, key, 'the head')
  const { index, version, committed_at: when, sha256: digest, state, inclusion } = entry ?? {}
  const counts = [index, version, when, told.knowledge?.version]
  must(counts.every(isCount) && index < head.size && isHash(digest) && isText(state), 'the entry is not one of the log')
  const leaf = leafOf(`pitlake entry\nversion ${version}\ncommitted_at ${when}\nsha256 ${digest}\nstate ${state}\n`)
  const proof = proofOf(inclusion, 'the proof of the entry')
  must(fromLeaf(leaf, index, head.size, proof) === head.root, 'the entry does not lead to the head')
  const heads = checkHeads(told.consistency, head, asked.head && readHead(asked.head, key, 'the head that you kept'))
  checkState(told, state, provenMembers(state, told.state, 'the state'))
  return { told, head, stamps: stampsOf(told.time_stamps === undefined ? [] : told.time_stamps, heads, key) }
}
/** Older heads lead to the one of the certificate; one that somebody kept must be among them. */
function checkHeads(list, head, kept) {
  const heads = new Map([[head.size, head.root]])
  for (const one of must(Array.isArray(list) && list, 'there are no proofs of consistency')) {
    const { size, root, proof } = one ?? {}
    must(isCount(size) && size > 0 && size < head.size && isHash(root), 'a proof of consistency of no older head')
    const roots = fromBoth(size, head.size, root, proofOf(proof, 'a proof of consistency'))
    must(roots[0] === root && roots[1] === head.root, `the log does not go on from the head of ${size} entries`)
    heads.set(size, root)
  }
  if (!kept) return heads
  must(kept.origin === head.origin, 'the head that you kept is of another log')
  must(kept.size <= head.size, 'the head that you kept is younger: ask for a certificate made since')
  const root = heads.get(kept.size) ?? refuse('no proof leads from the head that you kept: ask for one --since it')
  return must(root === kept.root, 'the head that you kept is of another history') && heads
}
/** How to prove each time stamp (RFC 3161) of a head that it leads from. */
const stampsOf = (all, heads, key) => must(Array.isArray(all) && all, 'no time stamps').map(({ note, reply }) => {
  const [{ size, root }, bytes] = [readHead(note, key, 'a head with a time stamp'), base64(reply, 'a time stamp')]
  must(heads.get(size) === root, 'a time stamp of a head of another history')
  const forms = [note.slice(0, note.lastIndexOf('\n\n') + 1), note].map((form) => sha256(form))
  const digest = hex(forms.find((one) => bytes.includes(one)) ?? refuse('a time stamp of something else'))
  const proof = `openssl ts -verify -digest ${digest} -in ${size}.tsr -CAfile CA.pem`
  return `time stamp of ${size} entries (not checked): base64 -d > ${size}.tsr <<< ${reply} && ${proof}`
})
/** Whether neighbours show that a tree, sorted as it is, has no member of that name. */
const lacks = (value, members, name) => [{ index: -1, name: '' }, ...members, { index: parseInt(value), name: '~' }]
  .some((one, n, all) => one.index + 1 === all[n + 1]?.index && one.name < name && name < all[n + 1].name)
/** What it says of series, tables, rules, the query and tries is what the state tells. */
function checkState({ query, tries }, state, groups) {
  const none = '{"queries":[]}'
  let tried = lacks(state, groups, 'state') && none
  for (const group of groups) {
    const members = provenMembers(group.value, group, `the group ${group.name}`)
    if (group.name === 'state' && lacks(group.value, members, 'tries')) tried = none
    for (const { name, value, text, months } of members) {
      must(text === undefined || (isText(text) && hex(sha256(text)) === value), `the text of ${name} is not in force`)
      must(months === undefined || treeOf(months) === value, `the months of ${name} are not those of the state`)
      if (group.name === 'state' && name === 'tries') tried = text
    }
  }
  must(isText(query?.text) && hex(sha256(query.text)) === query.sha256, 'the query is not the one of its digest')
  const named = strictJson(must(tried, 'nothing shows how many were tried')).queries
  must(tries?.count === named.length, 'the count of tries is not that of the state')
  const own = named.find((one) => one.sha256 === query.sha256)?.version
  must(tries.named_in === null || tries.named_in === own, 'the query was not named when it says')
}
// --- with DuckDB: what the published tables hold, and the figure
async function duckdb() {
  const { DuckDBInstance } = await import('@duckdb/node-api').catch(() => refuse('--tables needs @duckdb/node-api'))
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  return async (sql) => (await connection.runAndReadAll(sql)).getRowObjectsJson()
}
const quoted = (text) => `'${text.replaceAll("'", "''")}'`
/** The files of a Delta table, by its log. */
async function deltaFiles(folder, rows) {
  const [log, mark] = [join(folder, '_delta_log'), join(folder, '_delta_log', '_last_checkpoint')]
  const from = existsSync(mark) ? JSON.parse(readFileSync(mark, 'utf8')).version : -1
  const first = quoted(join(log, `${String(from).padStart(20, '0')}.checkpoint.parquet`))
  const held = from < 0 ? [] : await rows(`SELECT add.path AS path FROM read_parquet(${first}) WHERE add IS NOT NULL`)
  const live = new Set(held.map(({ path }) => path))
  for (const name of readdirSync(log).sort())
    if (/^\d{20}\.json$/.test(name) && Number(name.slice(0, 20)) > from)
      for (const line of readFileSync(join(log, name), 'utf8').split('\n').filter(Boolean)) {
        const { add, remove } = JSON.parse(line)
        if (remove) live.delete(remove.path)
        if (add) live.add(add.path)
      }
  return [...live].map((path) => quoted(join(folder, decodeURIComponent(path))))
}
const columns = 'metric, asset, "interval", currency, exchange, network'
/** A point as ../proof.md tells it: its text, and its record. */
const recordsOf = (points) => `(
  SELECT *, bits(ms(t)) || bits(coalesce(v, 'nan')) || bits(ms(available_at)) || bits(8 * strlen(rest)
    + list_position(['provider', 'observed', 'stated', 'assumed', 'override'], basis) - 1) AS record
  FROM (SELECT *, strftime(make_timestamp(epoch_us(t)), '%Y-%m') AS month, ms(observed_at) AS seen, concat_ws(' ',
    CASE WHEN basis <> 'provider' OR ms(computed_at) <> ms(available_at) THEN 'c' || ms(computed_at) END,
    CASE WHEN ms(available_rule_at) <> ms(available_at) THEN 'r' || ms(available_rule_at) END,
    'o' || strlen(o) || ' ' || o, 'x' || strlen(extra) || ' ' || extra) AS rest FROM ${points}))`
/** Digests the published points of every series that it names, as they were when its entry was committed. */
async function checkTables(folder, { entry, state }, rows) {
  const series = state.members.flatMap(({ members }) => members.filter((one) => one.series !== undefined))
  const files = await deltaFiles(join(folder, 'points'), rows)
  const wanted = [...new Set(series.map((one) => quoted(one.series[0])))]
  await rows('CREATE MACRO ms(x) AS (epoch_us(x) + 999) // 1000')
  await rows('CREATE MACRO bits(x) AS hex(CAST(CAST(CAST(x AS DOUBLE) AS BIT) AS BLOB))')
  const all = wanted.length === 0 || files.length === 0 ? [] : await rows(`
    SELECT to_json([${columns}]) AS series, month, seen, count(*) AS n, sha256(unhex(string_agg(record, '' ORDER BY
      record, rest)) || encode(string_agg(rest, '' ORDER BY record, rest))) AS digest
    FROM ${recordsOf(`read_parquet([${files}]) WHERE metric IN (${wanted})`)}
    WHERE seen <= ${Math.ceil(entry.committed_at / 1000)} GROUP BY ${columns}, month, seen ORDER BY month, seen`)
  const found = new Map()
  for (const { series: of, month, seen, n, digest } of all) {
    const own = JSON.stringify(JSON.parse(of))
    const [points, chain] = found.get(own)?.get(month)?.split(' ') ?? [0, '']
    const next = `${Number(points) + Number(n)} b${hex(sha256(`${chain}\n${seen} ${n} ${digest}`))}`
    found.set(own, (found.get(own) ?? new Map()).set(month, next))
  }
  for (const { name, value, series: own } of series) {
    const months = [...(found.get(JSON.stringify(own)) ?? [])]
    must(treeOf(months) === value, `the points of ${name} are not those that the state tells`)
  }
  return `${series.length} series digested anew`
}
/** The result beside the certificate, or in the folder of the tables: its figure once more. */
async function checkResult(folders, { result, figure }, rows) {
  const there = folders.flatMap((one) => readdirSync(one).map((name) => join(one, name)))
  const path = there.find((name) => /\.par/.test(name) && hex(sha256(readFileSync(name))) === result.file_sha256)
  if (path === undefined || figure === null) return path ? 'the result is the one' : 'the result is not at hand'
  await rows(`CREATE TEMP TABLE result AS FROM read_parquet(${quoted(path)})`)
  await rows('SET enable_external_access = false') // The figure's words are a stranger's.
  const [row] = await rows(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (${figure.sql}\n)`)
  must(JSON.stringify(row) === JSON.stringify(figure.values), 'the figure is another')
  return 'the figure comes again'
}
const [files, asked] = [[], {}]
for (let n = 2; n < process.argv.length; n++) {
  const [, flag] = /^--(key|head|tables)$/.exec(process.argv[n]) ?? []
  flag === undefined ? files.push(process.argv[n]) : (asked[flag] = process.argv[++n])
}
if (existsSync(asked.key ?? '')) asked.key = readFileSync(asked.key, 'utf8').trim()
asked.head &&= readFileSync(asked.head, 'utf8')
for (const file of files) {
  try {
    const { told, head, stamps } = check(file, asked)
    const who = asked.key === undefined ? 'its own key, which nobody named' : 'your key'
    const others = head.others.length === 0 ? '' : `, also by ${head.others.join(', ')} (not checked)`
    const more = [`valid ${file}: version ${told.knowledge.version} of ${head.origin}, by ${who}${others}`, ...stamps]
    const rows = asked.tables && (await duckdb())
    if (rows) more.push(await checkTables(asked.tables, told, rows))
    if (rows) more.push(await checkResult([dirname(file), asked.tables], told, rows))
    console.log(more.join('; '))
  } catch (error) {
    process.exitCode = 4
    const why = `${error instanceof Refused ? '' : 'it cannot be read: '}${error.message}`.replaceAll(/\s+/g, ' ')
    console.log(`not valid ${file}: ${why}`)
  }
}
if (files.length === 0) process.exitCode = 4
